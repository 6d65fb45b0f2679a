#pragma once
// Kinds of kernels and transfers whose time in training differs from their time in the profile by
// more than both vary, with the cause where the data tell it.
#include <string>
#include <string_view>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "model/plan/timings.hpp"

namespace stratplan {

/// The time of a kind's ops in one step: mean, and the sums of 10th and of 90th percentiles, as
/// means over the ranks. Ops of a shared machine slow down together, so their percentiles add up.
struct SpreadTime {
  Seconds mean{};  ///< by Swanson's rule (Measurement::mean)
  Seconds p10{}, p90{};
};

/// Why ops of a kind take another time in training than in the profile. A cause is named if at
/// least four fifths of the difference are of ops that it concerns.
enum class DifferenceCause : int {
  Unknown,
  /// Collectives and exchanges: the rank that came last needed the profile's time, or the simulated
  /// ranks wait as long as the measured ones.
  Waiting,
  /// The plan names no implementation, or another one, than the profile has a time of.
  OtherImplementation,
  /// Kernels ran beside messages of their rank, and others of the kind agree with the profile.
  MessagesBeside,
  /// The median of the other kinds of kernels, weighted by time, differs by the same ratio: the
  /// machine drifts, or is shared.
  AllKernels,
  /// Kernels bound by memory whose data fits into the caches. The profile takes weights and saved
  /// activations from memory, and other data from the caches.
  CacheState,
  /// Kernels bound by memory whose data does not fit. The profile was measured with another number
  /// of ranks at once than the plan has on a node.
  SharedBandwidth,
};
std::string_view name_of(DifferenceCause cause);

struct KindDifference {
  std::string kind;  ///< Kernel::name(), "all_reduce f32", or "exchange"
  int ops = 0;       ///< in one step, over all ranks
  SpreadTime profiled, measured;
  DifferenceCause cause = DifferenceCause::Unknown;
  Seconds difference() const { return measured.mean - profiled.mean; }
};

struct KindDifferences {
  std::vector<KindDifference> kinds;  ///< the largest difference first
  int unprofiled = 0;                 ///< ops that no measurement of the profile tells the time of
  int compared = 0;                   ///< the other ops
};

/// Compares ops with their own measurements in the profile, without waiting. Drift and software
/// scale the profile's times, as in predictions. If the drift is uneven, its smallest and largest
/// ratio widen the profile's spread. `programs`: of all ranks. `cache`: bytes of the caches per
/// rank; 0 if unknown, so that no cause follows from sizes. Requires one time per op.
KindDifferences kind_differences(const std::vector<Program>& programs, const Timing& timing,
                                 const MachineProfile& machine, Bytes cache);

}  // namespace stratplan
