#pragma once
// One message, one exchange or one collective at a time, measured on all ranks at once: what
// link_profile and cluster_profile make their tables of.
#include <functional>
#include <vector>

#include "profile/measure/kernel_buffers.hpp"
#include "profile/measure/sampler.hpp"
#include "profile/profile_request.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// Send and receive buffers, one pair for each run, one behind the other in two arenas.
class MessageBuffers {
 public:
  MessageBuffers(Backend& backend, Bytes largest);
  void* sent(int run, Bytes bytes) const { return sent_.get() + offset(run, bytes); }
  void* received(int run, Bytes bytes) const { return received_.get() + offset(run, bytes); }
  void pack(int run, Bytes bytes) const { noise_.write(sent(run, bytes), bytes); }

 private:
  std::int64_t offset(int run, Bytes bytes) const;

  Noise noise_;
  Bytes size_;
  DeviceMemory sent_, received_;
};

/// What is measured along several ways is the fastest one's time, with its name as the choice, and
/// the others' medians beside it.
class LinkProfiler {
 public:
  /// Messages are quickly measured, unless they are slow.
  static constexpr StoppingRule usual_rule{.least_samples = 20,
                                           .least_expensive = 2,
                                           .most_samples = 2000,
                                           .enough = {0.02},
                                           .patience = {0.2},
                                           .precision = 0.02};

  /// `largest`: bytes that one rank sends, and those that it receives, in one operation.
  /// `now`: the time, as Clock has it.
  LinkProfiler(
      Backend& backend, const Team& team, Bytes largest, const StoppingRule& rule = usual_rule,
      std::function<Seconds()> now = [] { return SteadyClock().now(); });

  // Each is called by all ranks. Ranks without a part in it only watch.

  /// There and back, by two: the time of one message. A partner beyond the last rank is none.
  Measurement one_way(int partner, Bytes bytes);
  /// Each rank sends to each of its peers, and receives from it, one message of this size, all at
  /// once. Whoever names a peer is named by it. Ranks beyond the last are none.
  Measurement exchange(std::vector<int> peers, Bytes bytes);
  /// In groups of ranks at this distance from each other, all groups at once.
  Measurement collective(const CollectiveRequest& request, int stride, Bytes bytes);

 private:
  using Run = std::function<void(int run)>;
  void send(Communicator& communicator, int partner, bool mine, int run, Bytes bytes);
  Measurement measure(Bytes bytes, bool takes_part,
                      const std::function<Run(Communicator& communicator)>& along);
  Measurement measure(Communicator& communicator, Bytes bytes, bool takes_part, const Run& run);

  Backend& backend_;
  const Team& team_;
  StoppingRule rule_;
  MessageBuffers buffers_;
  struct {
    std::function<Seconds()> now;
  } clock_;
};

/// The ranks of a collective's group at this distance, this rank among them; none if so many are
/// not left for the last group.
std::vector<int> group_of(int rank, int ranks, int group_size, int stride);

}  // namespace stratplan
