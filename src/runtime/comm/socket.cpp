// The communicator over sockets. A call starts all its sends and receives at once and moves the
// bytes of any socket that is ready (poll), so no order of sends and receives can deadlock.
// Collectives exchange pieces directly between all members and add them in rank order. For the few
// ranks of one machine this moves as few bytes as a ring, in fewer rounds.
#include "runtime/comm/socket.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <numeric>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/base/hash.hpp"
#include "model/partition/interval.hpp"
#include "runtime/comm/connection.hpp"
#include "runtime/device/float16.hpp"

namespace stratplan {
namespace {

enum class Verb : std::uint32_t { AllReduce, ReduceScatter, AllGather, Barrier };

/// Returns the channel of a group's collectives. The highest bit separates such channels from the
/// tags of exchanges.
std::uint32_t channel_of(const std::vector<int>& ranks) {
  return Fnv1a().add_each(ranks).folded() | 0x80000000U;
}

std::uint32_t call_of(Verb verb, DataType type, std::span<const std::int64_t> counts) {
  Fnv1a hash;
  hash.add(static_cast<std::uint64_t>(verb)).add(static_cast<std::uint64_t>(type));
  return hash.add_each(counts).folded();
}

/// Computes result[i] = terms[0][i] + terms[1][i] + ..., in that order. `result` may be one of the
/// terms.
template <class T>
void sum(const std::vector<const std::byte*>& terms, std::int64_t count, std::byte* result) {
  for (std::int64_t i = 0; i < count; ++i) {
    Sum<T> total{};
    for (const std::byte* term : terms) total += reinterpret_cast<const T*>(term)[i];
    reinterpret_cast<T*>(result)[i] = static_cast<T>(total);
  }
}

void sum(const std::vector<const std::byte*>& terms, std::int64_t count, DataType type,
         std::byte* result) {
  switch (type) {
    case DataType::F32: return sum<float>(terms, count, result);
    case DataType::F64: return sum<double>(terms, count, result);
    case DataType::I32: return sum<std::int32_t>(terms, count, result);
    case DataType::F16: return sum<Float16>(terms, count, result);
    case DataType::BF16: return sum<Bfloat16>(terms, count, result);
  }
}

class SocketCommunicator final : public Communicator {
 public:
  SocketCommunicator(int rank, const std::vector<int>& sockets) : rank_(rank) {
    for (std::size_t peer = 0; peer < sockets.size(); ++peer)
      connections_.push_back(
          static_cast<int>(peer) == rank
              ? nullptr
              : std::make_unique<Connection>(sockets[peer], rank, static_cast<int>(peer)));
    std::vector<int> all(sockets.size());
    std::iota(all.begin(), all.end(), 0);
    group(all);
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(connections_.size()); }

  Group group(const std::vector<int>& ranks) override {
    const auto [place, fresh] = handles_.try_emplace(ranks, static_cast<Group>(groups_.size()));
    if (fresh) {
      const auto member = std::find(ranks.begin(), ranks.end(), rank_);
      SP_ASSERT(member != ranks.end() && std::is_sorted(ranks.begin(), ranks.end()),
                "rank {} is not one of the group's {} ranks, or they are not sorted", rank_,
                ranks.size());
      groups_.push_back(
          {ranks, static_cast<std::size_t>(member - ranks.begin()), channel_of(ranks)});
    }
    return place->second;
  }

  void exchange(Stream, std::span<const Parcel> sends, std::span<const Parcel> receives,
                int tag) override {
    const auto header = [&](const Parcel& parcel) {
      return Connection::Header{static_cast<std::uint32_t>(tag), 0, parcel.bytes.value};
    };
    for (const Parcel& parcel : receives)
      if (parcel.peer != rank_) connection(parcel.peer).receive(header(parcel), parcel.data);
    for (const Parcel& parcel : sends)
      parcel.peer == rank_ ? keep(parcel, receives, tag)
                           : connection(parcel.peer).send(header(parcel), parcel.data);
    finish();
  }

  void all_reduce(Stream, Group group, void* data, std::int64_t count, DataType type) override {
    const Members& members = groups_[static_cast<std::size_t>(group)];
    const auto parts = static_cast<std::int64_t>(members.ranks.size());
    counts_.clear();
    for (std::int64_t i = 0; i < parts; ++i) counts_.push_back(block(count, parts, i).size());
    const std::uint32_t call = call_of(Verb::AllReduce, type, counts_);
    auto* values = static_cast<std::byte*>(data);
    add_pieces(members, values, values + begin_of(members, counts_, type), counts_, type, call);
    collect_pieces(members, values, counts_, type, call);
  }

  void reduce_scatter(Stream, Group group, const void* input, void* output,
                      std::span<const std::int64_t> counts, DataType type) override {
    const Members& members = groups_[static_cast<std::size_t>(group)];
    add_pieces(members, static_cast<const std::byte*>(input), static_cast<std::byte*>(output),
               counts, type, call_of(Verb::ReduceScatter, type, counts));
  }

  void all_gather(Stream, Group group, const void* input, void* output,
                  std::span<const std::int64_t> counts, DataType type) override {
    const Members& members = groups_[static_cast<std::size_t>(group)];
    const std::int64_t bytes = counts[members.index] * size_of(type);
    auto* values = static_cast<std::byte*>(output);
    std::byte* const own = values + begin_of(members, counts, type);
    if (bytes > 0 && input != own) std::memcpy(own, input, static_cast<std::size_t>(bytes));
    collect_pieces(members, values, counts, type, call_of(Verb::AllGather, type, counts));
  }

  void barrier() override {
    counts_.assign(connections_.size(), 0);
    collect_pieces(groups_[0], nullptr, counts_, DataType::I32,
                   call_of(Verb::Barrier, DataType::I32, {}));
  }
  void synchronize(Stream) override {}

 private:
  struct Members {
    std::vector<int> ranks;
    std::size_t index = 0;  ///< this rank's index among the ranks
    std::uint32_t channel = 0;
  };

  Connection& connection(int peer) {
    if (peer < 0 || peer >= size())
      throw CommunicationError(fmt::format(
          "rank {} communicates with rank {}, but the job has {} ranks", rank_, peer, size()));
    return *connections_[static_cast<std::size_t>(peer)];
  }

  /// Returns the offset in bytes of this rank's piece.
  static std::int64_t begin_of(const Members& members, std::span<const std::int64_t> counts,
                               DataType type) {
    return std::accumulate(counts.begin(),
                           counts.begin() + static_cast<std::ptrdiff_t>(members.index),
                           std::int64_t{0}) *
           size_of(type);
  }

  /// Delivers a parcel from this rank to itself.
  void keep(const Parcel& sent, std::span<const Parcel> receives, int tag) const {
    const auto received = std::find_if(receives.begin(), receives.end(),
                                       [&](const Parcel& parcel) { return parcel.peer == rank_; });
    if (received == receives.end() || received->bytes != sent.bytes)
      throw CommunicationError(
          fmt::format("rank {} does not receive the {} bytes that it sends to itself with tag {}",
                      rank_, sent.bytes.value, tag));
    if (sent.bytes.value > 0)
      std::memcpy(received->data, sent.data, static_cast<std::size_t>(sent.bytes.value));
  }

  /// Performs a reduce-scatter. Each member receives the terms of its own piece from all members,
  /// and adds them.
  void add_pieces(const Members& members, const std::byte* input, std::byte* output,
                  std::span<const std::int64_t> counts, DataType type, std::uint32_t call) {
    const std::int64_t size = size_of(type), mine = counts[members.index];
    scratch_.resize(
        std::max(scratch_.size(), static_cast<std::size_t>(mine * size) * members.ranks.size()));
    terms_.clear();
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < members.ranks.size(); ++i) {
      std::byte* term = scratch_.data() + static_cast<std::int64_t>(i) * mine * size;
      terms_.push_back(i == members.index ? input + begin * size : term);
      if (i != members.index) {
        connection(members.ranks[i]).receive({members.channel, call, mine * size}, term);
        connection(members.ranks[i])
            .send({members.channel, call, counts[i] * size}, input + begin * size);
      }
      begin += counts[i];
    }
    finish();
    sum(terms_, mine, type, output);
  }

  /// Performs an all-gather. On entry, `values` holds this member's piece at the offset begin_of().
  /// On return, `values` holds the pieces of all members, in the order of the members.
  void collect_pieces(const Members& members, std::byte* values,
                      std::span<const std::int64_t> counts, DataType type, std::uint32_t call) {
    const std::int64_t size = size_of(type);
    const std::byte* mine = values + begin_of(members, counts, type);
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < members.ranks.size(); begin += counts[i++]) {
      if (i == members.index) continue;
      connection(members.ranks[i])
          .receive({members.channel, call, counts[i] * size}, values + begin * size);
      connection(members.ranks[i])
          .send({members.channel, call, counts[members.index] * size}, mine);
    }
    finish();
  }

  /// Sends and receives until all requested frames are done. Frames that arrive early are accepted
  /// too. Otherwise two ranks that both send much would wait for each other.
  void finish() {
    while (!std::all_of(connections_.begin(), connections_.end(),
                        [](const auto& connection) { return !connection || connection->idle(); })) {
      polled_.clear();
      for (const auto& connection : connections_) {
        const bool used = connection && connection->open();
        polled_.push_back(
            {used ? connection->socket() : -1,
             static_cast<short>(POLLIN | (used && connection->wants_to_write() ? POLLOUT : 0)), 0});
      }
      if (::poll(polled_.data(), polled_.size(), -1) < 0 && errno != EINTR)
        throw CommunicationError(
            fmt::format("rank {} cannot wait for other ranks: {}", rank_, std::strerror(errno)));
      for (std::size_t peer = 0; peer < polled_.size(); ++peer) {
        if (polled_[peer].revents & (POLLIN | POLLHUP | POLLERR)) connections_[peer]->read_some();
        if (polled_[peer].revents & POLLOUT) connections_[peer]->write_some();
      }
    }
  }

  int rank_;
  std::vector<std::unique_ptr<Connection>> connections_;  ///< by rank; null for this rank
  std::map<std::vector<int>, Group> handles_;
  std::vector<Members> groups_;
  // The next members are kept between calls, so that only the first calls allocate memory.
  std::vector<pollfd> polled_;
  std::vector<std::byte> scratch_;
  std::vector<const std::byte*> terms_;
  std::vector<std::int64_t> counts_;
};

}  // namespace

std::unique_ptr<Communicator> make_socket_communicator(int rank, const std::vector<int>& sockets) {
  return std::make_unique<SocketCommunicator>(rank, sockets);
}

std::vector<std::vector<int>> connect_all(int ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  std::vector<std::vector<int>> sockets(count, std::vector<int>(count, -1));
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count; ++b) {
      int ends[2] = {-1, -1};
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        throw EnvironmentError(
            fmt::format("cannot connect {} ranks: {}", ranks, std::strerror(errno)));
      sockets[a][b] = ends[0];
      sockets[b][a] = ends[1];
    }
  return sockets;
}

}  // namespace stratplan
