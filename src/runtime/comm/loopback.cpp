#include "runtime/comm/loopback.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "runtime/device/float16.hpp"

namespace stratplan {
namespace {

/// The arguments of a collective that all members must agree on.
struct Call {
  enum class Verb { AllReduce, ReduceScatter, AllGather, Barrier } verb = Verb::Barrier;
  std::span<const std::int64_t> counts;
  DataType type = DataType::F32;
  friend bool operator==(const Call& a, const Call& b) {
    return a.verb == b.verb && a.type == b.type && std::ranges::equal(a.counts, b.counts);
  }
};

/// A collective in progress. Each member leaves the addresses of its buffers. The last member to
/// arrive does the work for all members.
struct Meeting {
  std::vector<int> ranks;
  std::vector<const void*> inputs;  ///< by member
  std::vector<void*> outputs;
  /// the arguments of the first member to arrive. Their span stays valid, because members stay in
  /// the call until all have arrived
  Call call;
  std::size_t arrived = 0;
  std::int64_t completed = 0;  ///< number of collectives completed so far
};

template <class T>
void sum(const Meeting& meeting, std::int64_t begin, std::int64_t count, T* result) {
  for (std::int64_t i = 0; i < count; ++i) {
    Sum<T> total{};
    for (const void* input : meeting.inputs) total += static_cast<const T*>(input)[begin + i];
    result[i] = static_cast<T>(total);
  }
}

void sum(const Meeting& meeting, std::int64_t begin, std::int64_t count, void* result) {
  switch (meeting.call.type) {
    case DataType::F32: return sum(meeting, begin, count, static_cast<float*>(result));
    case DataType::F64: return sum(meeting, begin, count, static_cast<double*>(result));
    case DataType::I32: return sum(meeting, begin, count, static_cast<std::int32_t*>(result));
    case DataType::F16: return sum(meeting, begin, count, static_cast<Float16*>(result));
    case DataType::BF16: return sum(meeting, begin, count, static_cast<Bfloat16*>(result));
  }
}

void copy(void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void perform(const Meeting& meeting) {
  const std::int64_t size = size_of(meeting.call.type);
  std::int64_t begin = 0;
  for (std::size_t member = 0; member < meeting.ranks.size(); ++member) {
    void* output = meeting.outputs[member];
    switch (meeting.call.verb) {
      case Call::Verb::Barrier: break;
      case Call::Verb::AllReduce:
        // The first member's buffer takes the sum. Then the other members copy it.
        if (member == 0)
          sum(meeting, 0, meeting.call.counts[0], output);
        else
          copy(output, meeting.outputs[0], meeting.call.counts[0] * size);
        break;
      case Call::Verb::ReduceScatter:
        sum(meeting, begin, meeting.call.counts[member], output);
        begin += meeting.call.counts[member];
        break;
      case Call::Verb::AllGather:
        for (std::size_t from = 0, at = 0; from < meeting.ranks.size(); ++from) {
          copy(static_cast<std::byte*>(output) + at, meeting.inputs[from],
               meeting.call.counts[from] * size);
          at += static_cast<std::size_t>(meeting.call.counts[from] * size);
        }
        break;
    }
  }
}

/// The shared state of all ranks. One lock protects everything, including copies. That is simple,
/// and a rank that unwinds after another rank's failure cannot free a buffer that is being read.
class World {
 public:
  explicit World(int ranks) : stuck_at_(static_cast<std::size_t>(ranks), 0) {
    std::vector<int> all(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) all[static_cast<std::size_t>(rank)] = rank;
    group(all);
  }

  int ranks() const { return static_cast<int>(stuck_at_.size()); }

  int group(const std::vector<int>& ranks) {
    const std::scoped_lock lock(mutex_);
    const auto [place, fresh] = groups_.try_emplace(ranks, static_cast<int>(groups_.size()));
    if (fresh) {
      Meeting& meeting = meetings_[place->second];
      meeting.ranks = ranks;
      meeting.inputs.resize(ranks.size());
      meeting.outputs.resize(ranks.size());
    }
    return place->second;
  }

  void exchange(int rank, std::span<const Communicator::Parcel> sends,
                std::span<const Communicator::Parcel> receives, int tag) {
    std::unique_lock lock(mutex_);
    for (const auto& parcel : sends) {
      SP_ASSERT(!posted(rank, parcel.peer, tag), "rank {} sends two parcels to rank {} with tag {}",
                rank, parcel.peer, tag);
      posts_.push_back({rank, tag, parcel});
    }
    changed();
    for (const auto& parcel : receives) receive(lock, rank, parcel, tag);
    for (const auto& parcel : sends)
      wait(
          lock, rank,
          [&] {
            return fmt::format("for rank {} to receive a message with tag {}", parcel.peer, tag);
          },
          [&] { return !posted(rank, parcel.peer, tag); });
  }

  void meet(int rank, int group, const Call& call, const void* input, void* output) {
    std::unique_lock lock(mutex_);
    Meeting& meeting = meetings_.at(group);
    const auto member =
        std::find(meeting.ranks.begin(), meeting.ranks.end(), rank) - meeting.ranks.begin();
    SP_ASSERT(member < std::ssize(meeting.ranks), "rank {} is not in its group {}", rank,
              meeting.ranks);
    const auto what = [&] { return fmt::format("in a collective of ranks {}", meeting.ranks); };
    check_failure(rank, what);  // ranks that gave up may have left invalid addresses in `meeting`
    if (meeting.arrived == 0) meeting.call = call;
    if (meeting.call != call)
      throw CommunicationError(
          fmt::format("rank {} calls another collective than the other ranks of the group {}", rank,
                      meeting.ranks));
    meeting.inputs[static_cast<std::size_t>(member)] = input;
    meeting.outputs[static_cast<std::size_t>(member)] = output;
    const std::int64_t completed = meeting.completed;
    if (++meeting.arrived == meeting.ranks.size()) {
      perform(meeting);
      meeting.arrived = 0;
      ++meeting.completed;
      changed();
    } else {
      wait(lock, rank, what, [&] { return meeting.completed != completed; });
    }
  }

  /// Records a rank's failure. run_loopback rethrows the first failure.
  void fail(int rank, std::exception_ptr error) {
    const std::scoped_lock lock(mutex_);
    if (!error_) {
      error_ = std::move(error);
      failed_rank_ = rank;
    }
    changed();
  }

  /// Records that the rank's body has ended and that the rank will not communicate again.
  void finish(int rank) {
    const std::scoped_lock lock(mutex_);
    stuck_at_[static_cast<std::size_t>(rank)] = finished;
    condition_.notify_all();
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  using Lock = std::unique_lock<std::mutex>;
  static constexpr std::int64_t finished = std::numeric_limits<std::int64_t>::max();

  /// A parcel that waits for its receiver.
  struct Post {
    int sender, tag;
    Communicator::Parcel parcel;
  };

  const Post* posted(int sender, int receiver, int tag) const {
    const auto post = std::ranges::find_if(posts_, [&](const Post& other) {
      return other.sender == sender && other.parcel.peer == receiver && other.tag == tag;
    });
    return post == posts_.end() ? nullptr : &*post;
  }

  void receive(Lock& lock, int rank, const Communicator::Parcel& parcel, int tag) {
    const Post* post = nullptr;
    wait(
        lock, rank,
        [&] { return fmt::format("for rank {} to send a message with tag {}", parcel.peer, tag); },
        [&] { return (post = posted(parcel.peer, rank, tag)) != nullptr; });
    const auto [peer, data, bytes] = post->parcel;
    if (bytes != parcel.bytes)
      throw CommunicationError(
          fmt::format("rank {} expects {} bytes with tag {} from rank {}, which sends {} bytes",
                      rank, parcel.bytes.value, tag, parcel.peer, bytes.value));
    copy(parcel.data, data, bytes.value);
    posts_.erase(posts_.begin() + (post - posts_.data()));
    changed();
  }

  /// Must be called after every change that another rank may wait for.
  void changed() {
    ++version_;
    condition_.notify_all();
  }

  /// Whether all ranks are stuck. A rank is stuck if the condition for which it waits did not hold
  /// at the latest version of the shared state. If all ranks are stuck, the state will never
  /// change.
  bool all_stuck() const {
    return std::all_of(stuck_at_.begin(), stuck_at_.end(),
                       [this](std::int64_t at) { return at == version_ || at == finished; });
  }

  template <class What>
  void check_failure(int rank, What what) const {
    if (error_)
      throw CommunicationError(
          fmt::format("rank {} gives up waiting {}: rank {} failed", rank, what(), failed_rank_));
  }

  /// Waits until ready(). `what` returns the purpose of the wait, for error messages.
  template <class What, class Ready>
  void wait(Lock& lock, int rank, What what, Ready ready) {
    for (;;) {
      check_failure(rank, what);
      if (ready()) return;
      stuck_at_[static_cast<std::size_t>(rank)] = version_;
      if (all_stuck())
        throw CommunicationError(
            fmt::format("all ranks wait for each other; rank {} waits {}", rank, what()));
      condition_.wait(lock);
    }
  }

  std::mutex mutex_;
  std::condition_variable condition_;
  std::int64_t version_ = 1;
  /// by rank: the latest version at which the condition that the rank waits for did not hold
  std::vector<std::int64_t> stuck_at_;
  std::vector<Post> posts_;
  std::map<std::vector<int>, int> groups_;
  std::map<int, Meeting> meetings_;
  std::exception_ptr error_;
  int failed_rank_ = -1;
};

class LoopbackCommunicator final : public Communicator {
 public:
  LoopbackCommunicator(World& world, int rank) : world_(world), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return world_.ranks(); }
  Group group(const std::vector<int>& ranks) override { return world_.group(ranks); }
  void exchange(Stream, std::span<const Parcel> sends, std::span<const Parcel> receives,
                int tag) override {
    world_.exchange(rank_, sends, receives, tag);
  }
  void all_reduce(Stream, Group group, void* data, std::int64_t count, DataType type) override {
    world_.meet(rank_, group, {Call::Verb::AllReduce, {&count, 1}, type}, data, data);
  }
  void reduce_scatter(Stream, Group group, const void* input, void* output,
                      std::span<const std::int64_t> counts, DataType type) override {
    world_.meet(rank_, group, {Call::Verb::ReduceScatter, counts, type}, input, output);
  }
  void all_gather(Stream, Group group, const void* input, void* output,
                  std::span<const std::int64_t> counts, DataType type) override {
    world_.meet(rank_, group, {Call::Verb::AllGather, counts, type}, input, output);
  }
  void barrier() override { world_.meet(rank_, 0, {}, nullptr, nullptr); }
  void synchronize(Stream) override {}

 private:
  World& world_;
  int rank_;
};

}  // namespace

void run_loopback(int ranks, const std::function<void(Communicator&)>& body) {
  SP_ASSERT(ranks >= 1, "ranks={}", ranks);
  World world(ranks);
  const auto run_rank = [&](int rank) {
    try {
      LoopbackCommunicator communicator(world, rank);
      body(communicator);
    } catch (...) {
      world.fail(rank, std::current_exception());
    }
    world.finish(rank);
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 1; rank < ranks; ++rank) threads.emplace_back(run_rank, rank);
    run_rank(0);
  }
  world.rethrow();
}

}  // namespace stratplan
