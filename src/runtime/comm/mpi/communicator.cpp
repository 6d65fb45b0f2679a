// The communicator over MPI. Calls block unless overlap is wanted, because Open MPI is fastest with
// blocking, in-place collectives between the cores of one node. With overlap, exchanges and
// all-reduces of gradients do not block; poll() or synchronize() completes them, and a thread lets
// them progress during kernels. All other collectives block, and runs_beside_kernels() in
// model/cost/collective_cost.hpp says so to the model.
//
// Reduce-scatter is a pairwise exchange of messages (Thakur, Rabenseifner and Gropp, see
// model/cost/collective_cost.hpp). Open MPI's own reduce-scatter allocates a copy of the whole
// input and a receive buffer in each call (coll_base_reduce_scatter.c). Predicted memory does not
// include these.
#include <fmt/format.h>
#define OMPI_SKIP_MPICXX 1  // only the C interface is used
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/base/hash.hpp"
#include "runtime/comm/mpi.hpp"
#include "runtime/comm/progress_thread.hpp"
#include "runtime/device/float16.hpp"

namespace stratplan {
namespace {

/// One MPI call moves at most INT_MAX items, so longer buffers move in pieces of this many items.
constexpr std::int64_t piece_items = std::int64_t{1} << 30;

/// Number of bytes that a reduce-scatter receives before it adds them. The number is small enough
/// for the cache, and large enough to make the fixed cost of a message negligible.
constexpr std::int64_t reduced_at_once = 512 << 10;

void check(int code, const char* call, int rank) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw CommunicationError(fmt::format("rank {}: {} failed: {}", rank, call,
                                       std::string(text, static_cast<std::size_t>(length))));
}

/// Returns MPI's type. MPI has no 16-bit floating-point types, so F16 and BF16 are sent as 16-bit
/// integers.
MPI_Datatype mpi_type(DataType type) {
  switch (type) {
    case DataType::F32: return MPI_FLOAT;
    case DataType::F64: return MPI_DOUBLE;
    case DataType::I32: return MPI_INT32_T;
    case DataType::F16:
    case DataType::BF16: return MPI_UINT16_T;
  }
  return MPI_DATATYPE_NULL;
}

template <class T>
void add_all(void* terms, void* sums, int* count, MPI_Datatype*) {
  const T* from = static_cast<const T*>(terms);
  T* to = static_cast<T*>(sums);
  for (int i = 0; i < *count; ++i) to[i] = static_cast<T>(to[i] + from[i]);
}
template <class T>
MPI_Op own_sum() {
  static const MPI_Op sum = [] {
    MPI_Op made = MPI_OP_NULL;
    MPI_Op_create(add_all<T>, 1, &made);
    return made;
  }();
  return sum;
}
MPI_Op mpi_sum(DataType type) {
  return type == DataType::F16    ? own_sum<Float16>()
         : type == DataType::BF16 ? own_sum<Bfloat16>()
                                  : MPI_SUM;
}

/// Returns a tag by which MPI_Comm_create_group tells concurrent calls apart. The tag depends only
/// on the group, so all members use the same tag.
int group_tag(const std::vector<int>& ranks) {
  // MPI guarantees tags up to 32767.
  return static_cast<int>(Fnv1a().add_each(ranks).value() % 32767U);
}

template <class T>
void add(const std::byte* terms, std::int64_t count, std::byte* sums) {
  for (std::int64_t i = 0; i < count; ++i) {
    T& sum = reinterpret_cast<T*>(sums)[i];
    sum = static_cast<T>(sum + reinterpret_cast<const T*>(terms)[i]);
  }
}

void add(const std::byte* terms, std::int64_t count, DataType type, std::byte* sums) {
  switch (type) {
    case DataType::F32: return add<float>(terms, count, sums);
    case DataType::F64: return add<double>(terms, count, sums);
    case DataType::I32: return add<std::int32_t>(terms, count, sums);
    case DataType::F16: return add<Float16>(terms, count, sums);
    case DataType::BF16: return add<Bfloat16>(terms, count, sums);
  }
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
    for (MPI_Comm* comm : {&world, &exchanges_}) {
      check(MPI_Comm_dup(MPI_COMM_WORLD, comm), "MPI_Comm_dup", rank_);
      check(MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", rank_);
    }
    std::vector<int> all(static_cast<std::size_t>(size_));
    std::iota(all.begin(), all.end(), 0);
    handles_[all] = 0;
    members_.push_back({world, size_, rank_});
  }

  ~MpiCommunicator() override {
    thread_.reset();
    for (Members& members : members_)
      if (members.comm != MPI_COMM_NULL) MPI_Comm_free(&members.comm);
    MPI_Comm_free(&exchanges_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Group group(const std::vector<int>& ranks) override;
  void exchange(Stream stream, std::span<const Parcel> sends, std::span<const Parcel> receives,
                int tag) override;
  void all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                  DataType type) override;
  void reduce_scatter(Stream stream, Group group, const void* input, void* output,
                      std::span<const std::int64_t> counts, DataType type) override;
  void all_gather(Stream stream, Group group, const void* input, void* output,
                  std::span<const std::int64_t> counts, DataType type) override;
  void barrier() override;
  void synchronize(Stream stream) override;
  void overlap(bool wanted) override;
  bool poll(Stream stream) override;

 private:
  struct Members {
    MPI_Comm comm = MPI_COMM_NULL;  ///< null for a group of one rank, which needs none
    int size = 1;
    int index = 0;  ///< this rank's index among the members
  };

  /// The requests under way on a stream. The vectors are kept, so that only the first calls
  /// allocate memory.
  struct Pending {
    struct Arrival {
      std::size_t request;
      int bytes, tag;
    };
    std::vector<MPI_Request> requests;
    std::vector<MPI_Status> statuses;
    std::vector<Arrival> arrivals;  ///< size and tag that each receiving request expects
    void clear() {
      requests.clear();
      arrivals.clear();
    }
  };
  /// Clears the requests at the end of a scope, even after an error, so that no later call waits
  /// for them again.
  struct Cleared {
    Pending& pending;
    ~Cleared() { pending.clear(); }
  };

  MPI_Comm world() const { return members_[0].comm; }
  /// Returns the lock under which MPI is called, or no lock if this is the only thread that does.
  std::unique_lock<std::mutex> lock() {
    return thread_ ? thread_->lock() : std::unique_lock<std::mutex>();
  }
  /// Lets messages progress. Returns whether some are still under way.
  bool progress();
  Pending& pending(Stream stream) { return pending_[static_cast<std::size_t>(stream)]; }
  const Members& members(Group group) const { return members_[static_cast<std::size_t>(group)]; }
  const Displaced& displace(std::span<const std::int64_t> counts);
  /// Sends `count` elements to member `to`. Meanwhile receives `mine` elements from member `from`,
  /// and adds them to `sums`.
  void add_from(MPI_Comm comm, int from, std::byte* sums, std::int64_t mine, int to,
                const std::byte* theirs, std::int64_t count, DataType type);
  /// Starts one request per piece of a parcel. MPI keeps the order of messages with one tag between
  /// two ranks.
  template <class Start>
  void post(Pending& pending, const Parcel& parcel, const char* call, Start start);
  void check_arrivals(Pending& pending, int code, const char* call) const;

  int rank_ = 0;
  int size_ = 1;
  /// for exchanges only, so that their tags never match the tag of a reduce-scatter
  MPI_Comm exchanges_ = MPI_COMM_NULL;
  std::vector<std::byte> arriving_ = std::vector<std::byte>(reduced_at_once);
  std::map<std::vector<int>, Group> handles_;
  std::vector<Members> members_;
  std::array<Pending, 3> pending_;  ///< by stream
  Displaced displaced_;
  std::optional<ProgressThread> thread_;  ///< with overlap only
};

void MpiCommunicator::overlap(bool wanted) {
  if (wanted == thread_.has_value()) return;
  if (wanted)
    thread_.emplace([this] { return progress(); });
  else
    thread_.reset();
}

bool MpiCommunicator::progress() {
  for (const Pending& moving : pending_)
    for (const MPI_Request request : moving.requests) {
      int done = 0;
      // An error stays with the request, and the call that completes it reports it.
      MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
      if (!done) return true;
    }
  return false;
}

void MpiCommunicator::barrier() {
  const auto held = lock();
  check(MPI_Barrier(world()), "MPI_Barrier", rank_);
}

Communicator::Group MpiCommunicator::group(const std::vector<int>& ranks) {
  const auto held = lock();
  const auto known = handles_.find(ranks);
  if (known != handles_.end()) return known->second;
  SP_ASSERT(std::is_sorted(ranks.begin(), ranks.end()), "the {} ranks of a group are not ascending",
            ranks.size());
  const auto place = std::find(ranks.begin(), ranks.end(), rank_);
  SP_ASSERT(place != ranks.end(), "rank {} asks for a group that does not contain it", rank_);
  Members members{MPI_COMM_NULL, static_cast<int>(ranks.size()),
                  static_cast<int>(place - ranks.begin())};
  if (members.size > 1) {
    MPI_Group all = MPI_GROUP_NULL, chosen = MPI_GROUP_NULL;
    check(MPI_Comm_group(world(), &all), "MPI_Comm_group", rank_);
    check(MPI_Group_incl(all, members.size, ranks.data(), &chosen), "MPI_Group_incl", rank_);
    check(MPI_Comm_create_group(world(), chosen, group_tag(ranks), &members.comm),
          "MPI_Comm_create_group", rank_);
    check(MPI_Comm_set_errhandler(members.comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler",
          rank_);
    MPI_Group_free(&chosen);
    MPI_Group_free(&all);
  }
  const Group handle = static_cast<Group>(members_.size());
  members_.push_back(members);
  handles_[ranks] = handle;
  return handle;
}

template <class Start>
void MpiCommunicator::post(Pending& pending, const Parcel& parcel, const char* call, Start start) {
  for (std::int64_t begin = 0; begin < parcel.bytes.value; begin += piece_items) {
    const int bytes = static_cast<int>(std::min(piece_items, parcel.bytes.value - begin));
    const int code = start(static_cast<std::byte*>(parcel.data) + begin, bytes,
                           &pending.requests.emplace_back(MPI_REQUEST_NULL));
    if (code != MPI_SUCCESS) pending.clear();
    check(code, call, rank_);
  }
}

void MpiCommunicator::exchange(Stream stream, std::span<const Parcel> sends,
                               std::span<const Parcel> receives, int tag) {
  const auto held = lock();
  Pending& under_way = pending(stream);
  for (const Parcel& parcel : receives)
    post(under_way, parcel, "MPI_Irecv", [&](void* data, int bytes, MPI_Request* request) {
      under_way.arrivals.push_back({under_way.requests.size() - 1, bytes, tag});
      return MPI_Irecv(data, bytes, MPI_BYTE, parcel.peer, tag, exchanges_, request);
    });
  for (const Parcel& parcel : sends)
    post(under_way, parcel, "MPI_Isend", [&](void* data, int bytes, MPI_Request* request) {
      return MPI_Isend(data, bytes, MPI_BYTE, parcel.peer, tag, exchanges_, request);
    });
  if (thread_)
    thread_->wake();
  else
    synchronize(stream);
}

void MpiCommunicator::all_reduce(Stream stream, Group group, void* data, std::int64_t count,
                                 DataType type) {
  if (members(group).size == 1) return;
  const auto held = lock();
  const MPI_Comm comm = members(group).comm;
  for (std::int64_t begin = 0; begin < count; begin += piece_items) {
    void* piece = static_cast<std::byte*>(data) + begin * size_of(type);
    const int items = static_cast<int>(std::min(piece_items, count - begin));
    if (thread_ && stream == Stream::Gradient) {
      MPI_Request& request = pending(stream).requests.emplace_back(MPI_REQUEST_NULL);
      check(
          MPI_Iallreduce(MPI_IN_PLACE, piece, items, mpi_type(type), mpi_sum(type), comm, &request),
          "MPI_Iallreduce", rank_);
      thread_->wake();
    } else {
      check(MPI_Allreduce(MPI_IN_PLACE, piece, items, mpi_type(type), mpi_sum(type), comm),
            "MPI_Allreduce", rank_);
    }
  }
}

void MpiCommunicator::synchronize(Stream stream) {
  const auto held = lock();
  Pending& waiting = pending(stream);
  if (waiting.requests.empty()) return;
  waiting.statuses.resize(waiting.requests.size());
  check_arrivals(waiting,
                 MPI_Waitall(static_cast<int>(waiting.requests.size()), waiting.requests.data(),
                             waiting.statuses.data()),
                 "MPI_Waitall");
}

bool MpiCommunicator::poll(Stream stream) {
  const auto held = lock();
  Pending& moving = pending(stream);
  if (moving.requests.empty()) return true;
  moving.statuses.resize(moving.requests.size());
  int done = 0;
  const int code = MPI_Testall(static_cast<int>(moving.requests.size()), moving.requests.data(),
                               &done, moving.statuses.data());
  if (done || code != MPI_SUCCESS) check_arrivals(moving, code, "MPI_Testall");
  return done;
}

/// Checks the requests of a stream, and clears them. All requests have ended. `code` is the result
/// of `call`, which completed them.
void MpiCommunicator::check_arrivals(Pending& ended, int code, const char* call) const {
  const Cleared cleared{ended};
  if (code == MPI_ERR_IN_STATUS)
    for (const MPI_Status& status : ended.statuses)
      if (status.MPI_ERROR != MPI_ERR_PENDING) check(status.MPI_ERROR, call, rank_);
  check(code, call, rank_);
  for (const auto& [request, expected, tag] : ended.arrivals) {
    int bytes = 0;
    check(MPI_Get_count(&ended.statuses[request], MPI_BYTE, &bytes), "MPI_Get_count", rank_);
    if (bytes != expected)
      throw CommunicationError(
          fmt::format("rank {} expects {} bytes with tag {} from rank {}, which sends {} bytes",
                      rank_, expected, tag, ended.statuses[request].MPI_SOURCE, bytes));
  }
}

const Displaced& MpiCommunicator::displace(std::span<const std::int64_t> counts) {
  displaced_.counts.clear();
  displaced_.begins.clear();
  displaced_.total = 0;
  for (std::int64_t count : counts) {
    if (displaced_.total + count > INT_MAX)
      throw CommunicationError(fmt::format(
          "rank {}: a collective has more than {} elements, which MPI calls cannot count", rank_,
          INT_MAX));
    displaced_.counts.push_back(static_cast<int>(count));
    displaced_.begins.push_back(static_cast<int>(displaced_.total));
    displaced_.total += count;
  }
  return displaced_;
}

/// Reduces by pairwise exchange. In round k each rank sends a piece to the member k places after
/// it, and receives a term of its own piece from the member k places before it.
void MpiCommunicator::reduce_scatter(Stream, Group group, const void* input, void* output,
                                     std::span<const std::int64_t> counts, DataType type) {
  const auto held = lock();
  const auto [comm, size, index] = members(group);
  const Displaced& pieces = displace(counts);
  const auto piece = [&, bytes = size_of(type)](int member) {
    return static_cast<const std::byte*>(input) +
           pieces.begins[static_cast<std::size_t>(member)] * bytes;
  };
  const std::int64_t mine = counts[static_cast<std::size_t>(index)];
  if (mine > 0) std::memcpy(output, piece(index), static_cast<std::size_t>(mine * size_of(type)));
  for (int k = 1; k < size; ++k) {
    const int to = (index + k) % size, from = (index - k + size) % size;
    add_from(comm, from, static_cast<std::byte*>(output), mine, to, piece(to),
             counts[static_cast<std::size_t>(to)], type);
  }
}

void MpiCommunicator::add_from(MPI_Comm comm, int from, std::byte* sums, std::int64_t mine, int to,
                               const std::byte* theirs, std::int64_t count, DataType type) {
  const std::int64_t at_once = reduced_at_once / size_of(type);
  for (std::int64_t begin = 0; begin < std::max(mine, count); begin += at_once) {
    const std::int64_t coming = std::clamp<std::int64_t>(mine - begin, 0, at_once),
                       going = std::clamp<std::int64_t>(count - begin, 0, at_once);
    check(
        MPI_Sendrecv(theirs + begin * size_of(type), static_cast<int>(going), mpi_type(type),
                     going > 0 ? to : MPI_PROC_NULL, 0, arriving_.data(), static_cast<int>(coming),
                     mpi_type(type), coming > 0 ? from : MPI_PROC_NULL, 0, comm, MPI_STATUS_IGNORE),
        "MPI_Sendrecv", rank_);
    add(arriving_.data(), coming, type, sums + begin * size_of(type));
  }
}

void MpiCommunicator::all_gather(Stream, Group group, const void* input, void* output,
                                 std::span<const std::int64_t> counts, DataType type) {
  const auto held = lock();
  const Displaced& pieces = displace(counts);
  if (pieces.total == 0) return;
  const auto [comm, size, index] = members(group);
  const auto own = static_cast<std::size_t>(index);
  const bool in_place =
      input == static_cast<std::byte*>(output) + pieces.begins[own] * size_of(type);
  if (size > 1)
    check(MPI_Allgatherv(in_place ? MPI_IN_PLACE : input, pieces.counts[own], mpi_type(type),
                         output, pieces.counts.data(), pieces.begins.data(), mpi_type(type), comm),
          "MPI_Allgatherv", rank_);
  else if (!in_place)
    std::memcpy(output, input, static_cast<std::size_t>(pieces.total * size_of(type)));
}

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator() {
  return std::make_unique<MpiCommunicator>();
}

}  // namespace stratplan
