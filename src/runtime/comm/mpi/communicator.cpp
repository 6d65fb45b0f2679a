// The verbs by MPI calls. They block, so streams need no more; blocking collectives are what Open MPI does best between the cores of
// one node, and in place.
#include <fmt/format.h>
#define OMPI_SKIP_MPICXX 1  // the C interface is all that is used
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <map>
#include <numeric>
#include <string>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "runtime/comm/mpi.hpp"

namespace stratplan {
namespace {

/// One MPI call moves at most INT_MAX items; longer buffers go in pieces of this many.
constexpr std::int64_t piece_items = std::int64_t{1} << 30;

void check(int code, const char* call, int rank) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw CommunicationError(fmt::format("rank {}: {} failed: {}", rank, call, std::string(text, static_cast<std::size_t>(length))));
}

MPI_Datatype mpi_type(DataType type) {
  switch (type) {
    case DataType::F32: return MPI_FLOAT;
    case DataType::F64: return MPI_DOUBLE;
    case DataType::I32: return MPI_INT32_T;
    default: SP_ASSERT(false, "no collectives of {}", name_of(type)); return MPI_DATATYPE_NULL;
  }
}

/// The same on all members, whatever else each of them has called: MPI_Comm_create_group tells concurrent calls apart by it.
int group_tag(const std::vector<int>& ranks) {
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (int rank : ranks) hash = (hash ^ static_cast<std::uint32_t>(rank)) * 16777619u;
  return static_cast<int>(hash % 32767u);  // tags up to 32767 are guaranteed
}

struct Displaced {
  std::vector<int> counts;
  std::vector<int> begins;
  std::int64_t total = 0;
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator() {
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank", -1);
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size", rank_);
    MPI_Comm world = MPI_COMM_NULL;
    check(MPI_Comm_dup(MPI_COMM_WORLD, &world), "MPI_Comm_dup", rank_);
    check(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", rank_);
    std::vector<int> all(static_cast<std::size_t>(size_));
    std::iota(all.begin(), all.end(), 0);
    handles_[all] = 0;
    members_.push_back({world, size_, rank_});
  }

  ~MpiCommunicator() override {
    for (Members& members : members_)
      if (members.comm != MPI_COMM_NULL) MPI_Comm_free(&members.comm);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Group group(const std::vector<int>& ranks) override;
  void exchange(Track track, std::span<const Parcel> sends, std::span<const Parcel> receives, int tag) override;
  void all_reduce(Track track, Group group, void* data, std::int64_t count, DataType type) override;
  void reduce_scatter(Track track, Group group, const void* input, void* output, std::span<const std::int64_t> counts, DataType type) override;
  void all_gather(Track track, Group group, const void* input, void* output, std::span<const std::int64_t> counts, DataType type) override;
  void barrier() override { check(MPI_Barrier(world()), "MPI_Barrier", rank_); }
  void synchronize(Track) override {}

 private:
  struct Members {
    MPI_Comm comm = MPI_COMM_NULL;  ///< null for a group of one, which needs none
    int size = 1;
    int index = 0;  ///< this rank's place among them
  };

  MPI_Comm world() const { return members_[0].comm; }
  const Members& members(Group group) const { return members_[static_cast<std::size_t>(group)]; }
  const Displaced& displace(std::span<const std::int64_t> counts);
  /// Posts one request per piece: MPI keeps the order of messages between two ranks with one tag.
  template <class Start>
  void post(const Parcel& parcel, const char* call, Start start);
  void finish_requests();

  int rank_ = 0;
  int size_ = 1;
  std::map<std::vector<int>, Group> handles_;
  std::vector<Members> members_;
  std::vector<MPI_Request> requests_;  ///< kept, like the next ones, so that only first calls allocate
  std::vector<MPI_Status> statuses_;
  std::vector<int> expected_;  ///< bytes that each receiving request waits for; the first ones in requests_
  Displaced displaced_;
};

Communicator::Group MpiCommunicator::group(const std::vector<int>& ranks) {
  const auto known = handles_.find(ranks);
  if (known != handles_.end()) return known->second;
  SP_ASSERT(std::is_sorted(ranks.begin(), ranks.end()), "{} ranks, not ascending", ranks.size());
  const auto place = std::find(ranks.begin(), ranks.end(), rank_);
  SP_ASSERT(place != ranks.end(), "rank {} is not in its group", rank_);
  Members members{MPI_COMM_NULL, static_cast<int>(ranks.size()), static_cast<int>(place - ranks.begin())};
  if (members.size > 1) {
    MPI_Group all = MPI_GROUP_NULL, chosen = MPI_GROUP_NULL;
    check(MPI_Comm_group(world(), &all), "MPI_Comm_group", rank_);
    check(MPI_Group_incl(all, members.size, ranks.data(), &chosen), "MPI_Group_incl", rank_);
    check(MPI_Comm_create_group(world(), chosen, group_tag(ranks), &members.comm), "MPI_Comm_create_group", rank_);
    check(MPI_Comm_set_errhandler(members.comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", rank_);
    MPI_Group_free(&chosen);
    MPI_Group_free(&all);
  }
  const Group handle = static_cast<Group>(members_.size());
  members_.push_back(members);
  handles_[ranks] = handle;
  return handle;
}

template <class Start>
void MpiCommunicator::post(const Parcel& parcel, const char* call, Start start) {
  for (std::int64_t begin = 0; begin < parcel.bytes.value; begin += piece_items) {
    const int bytes = static_cast<int>(std::min(piece_items, parcel.bytes.value - begin));
    check(start(static_cast<std::byte*>(parcel.data) + begin, bytes, &requests_.emplace_back(MPI_REQUEST_NULL)), call, rank_);
    expected_.push_back(bytes);
  }
}

void MpiCommunicator::finish_requests() {
  statuses_.resize(requests_.size());
  const int code = MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), statuses_.data());
  if (code == MPI_ERR_IN_STATUS)
    for (const MPI_Status& status : statuses_)
      if (status.MPI_ERROR != MPI_ERR_PENDING) check(status.MPI_ERROR, "MPI_Waitall", rank_);
  check(code, "MPI_Waitall", rank_);
}

void MpiCommunicator::exchange(Track, std::span<const Parcel> sends, std::span<const Parcel> receives, int tag) {
  requests_.clear();
  expected_.clear();
  for (const Parcel& parcel : receives)
    post(parcel, "MPI_Irecv",
         [&](void* data, int bytes, MPI_Request* request) { return MPI_Irecv(data, bytes, MPI_BYTE, parcel.peer, tag, world(), request); });
  const std::size_t receiving = requests_.size();
  for (const Parcel& parcel : sends)
    post(parcel, "MPI_Isend",
         [&](void* data, int bytes, MPI_Request* request) { return MPI_Isend(data, bytes, MPI_BYTE, parcel.peer, tag, world(), request); });
  if (requests_.empty()) return;
  finish_requests();
  for (std::size_t i = 0; i < receiving; ++i) {
    int bytes = 0;
    check(MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes), "MPI_Get_count", rank_);
    if (bytes != expected_[i])
      throw CommunicationError(
          fmt::format("rank {} expects {} bytes with tag {} from rank {}, which sends {}", rank_, expected_[i], tag, statuses_[i].MPI_SOURCE, bytes));
  }
}

void MpiCommunicator::all_reduce(Track, Group group, void* data, std::int64_t count, DataType type) {
  if (members(group).size == 1) return;
  for (std::int64_t begin = 0; begin < count; begin += piece_items) {
    void* piece = static_cast<std::byte*>(data) + begin * size_of(type);
    const int items = static_cast<int>(std::min(piece_items, count - begin));
    check(MPI_Allreduce(MPI_IN_PLACE, piece, items, mpi_type(type), MPI_SUM, members(group).comm), "MPI_Allreduce", rank_);
  }
}

const Displaced& MpiCommunicator::displace(std::span<const std::int64_t> counts) {
  displaced_.counts.clear();
  displaced_.begins.clear();
  displaced_.total = 0;
  for (std::int64_t count : counts) {
    if (displaced_.total + count > INT_MAX)
      throw CommunicationError(fmt::format("rank {}: a collective over more than {} elements is beyond what MPI calls can count", rank_, INT_MAX));
    displaced_.counts.push_back(static_cast<int>(count));
    displaced_.begins.push_back(static_cast<int>(displaced_.total));
    displaced_.total += count;
  }
  return displaced_;
}

void MpiCommunicator::reduce_scatter(Track, Group group, const void* input, void* output, std::span<const std::int64_t> counts, DataType type) {
  const Displaced& pieces = displace(counts);
  if (pieces.total == 0) return;
  if (members(group).size == 1)
    std::memcpy(output, input, static_cast<std::size_t>(pieces.total * size_of(type)));
  else
    check(MPI_Reduce_scatter(input, output, pieces.counts.data(), mpi_type(type), MPI_SUM, members(group).comm), "MPI_Reduce_scatter", rank_);
}

void MpiCommunicator::all_gather(Track, Group group, const void* input, void* output, std::span<const std::int64_t> counts, DataType type) {
  const Displaced& pieces = displace(counts);
  if (pieces.total == 0) return;
  const auto [comm, size, index] = members(group);
  if (size == 1)
    std::memcpy(output, input, static_cast<std::size_t>(pieces.total * size_of(type)));
  else
    check(MPI_Allgatherv(input, pieces.counts[static_cast<std::size_t>(index)], mpi_type(type), output, pieces.counts.data(), pieces.begins.data(),
                         mpi_type(type), comm),
          "MPI_Allgatherv", rank_);
}

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator() { return std::make_unique<MpiCommunicator>(); }

}  // namespace stratplan
