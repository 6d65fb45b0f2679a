#pragma once
// Measures one message, one exchange or one collective at a time, on all ranks at once.
// link_profile and cluster_profile build their tables from these measurements.
#include <functional>
#include <vector>

#include "profile/measure/kernel_buffers.hpp"
#include "profile/measure/sampler.hpp"
#include "profile/profile_request.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// The send buffers of successive runs, one behind the other in an arena, and likewise the receive
/// buffers in a second arena.
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

/// Measures each operation on every transport of a team. A result is the time of the fastest
/// transport, with its name as Measurement::choice and the medians of the other transports as
/// Measurement::others.
class LinkProfiler {
 public:
  /// Most messages take little time, so many samples are affordable. For slow messages, sampling
  /// stops at `patience`.
  static constexpr StoppingRule usual_rule{.least_samples = 20,
                                           .least_expensive = 2,
                                           .most_samples = 2000,
                                           .enough = {0.02},
                                           .patience = {0.2},
                                           .precision = 0.02};

  /// `largest`: the most bytes that one rank sends, or receives, in one operation. `now`: returns
  /// the time, like Clock::now().
  LinkProfiler(
      Backend& backend, const Team& team, Bytes largest, const StoppingRule& rule = usual_rule,
      std::function<Seconds()> now = [] { return SteadyClock().now(); });

  // All ranks call each of the functions below. Ranks without a part in the operation transfer
  // nothing.

  /// Returns the time of one message, which is half of a round trip with `partner`. A rank whose
  /// partner is beyond the last rank has no part.
  Measurement one_way(int partner, Bytes bytes);
  /// Returns the time of one exchange. Each rank sends one message of this size to each of its
  /// peers, and receives one from each, all at once. If a rank names a peer, the peer must name
  /// that rank. Peers beyond the last rank are skipped.
  Measurement exchange(std::vector<int> peers, Bytes bytes);
  /// Returns the time of a collective in groups of ranks `stride` apart, in all groups at once. In
  /// training, sums of gradients find data that was written long ago. Other collectives find
  /// activations that the op before has written, and write to memory that was used a moment ago.
  Measurement collective(const CollectiveRequest& request, int stride, Bytes bytes);

 private:
  using Run = std::function<void(int run)>;
  /// When the sent data was written: just before, or so long ago that no cache of a core holds it.
  enum class Written { Now, LongAgo };
  void send(Communicator& communicator, int partner, bool mine, int run, Bytes bytes);
  Measurement measure(Bytes bytes, bool takes_part,
                      const std::function<Run(Communicator& communicator)>& along,
                      Written written = Written::Now);
  Measurement measure(Communicator& communicator, Bytes bytes, bool takes_part, Written written,
                      const Run& run);

  Backend& backend_;
  const Team& team_;
  StoppingRule rule_;
  MessageBuffers buffers_;
  struct {
    std::function<Seconds()> now;
  } clock_;
};

/// Returns the group of `group_size` ranks, `stride` apart, that holds `rank`. Returns no ranks if
/// too few are left for the last group.
std::vector<int> group_of(int rank, int ranks, int group_size, int stride);

}  // namespace stratplan
