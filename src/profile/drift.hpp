#pragma once
// Whether the machine still is what the profile says: processors of a shared machine change their
// pace, within minutes and by a quarter. A few kernels are measured again. The profile's own times
// stay, and Drift scales what is predicted from them.
#include <functional>
#include <optional>
#include <span>

#include "profile/profile_request.hpp"

namespace stratplan {

/// A change of pace below this is as good as none: kernels vary as much from one visit to the next.
inline constexpr double tolerated_drift = 0.03;
/// Kernels that take so much of a program's computing time speak for the rest, but no more than so
/// many are measured again.
inline constexpr double representative_share = 0.6;
inline constexpr std::size_t most_representative_kernels = 8;
/// Largest standard deviation of single kernels' ratios, relative to the ratio of all, with which
/// that ratio speaks for other kernels too.
inline constexpr double tolerated_unevenness = 0.1;

struct RepresentativeKernel {
  Kernel kernel;
  Seconds seconds{};  ///< that the programs spend in it, at the profile's pace
  friend bool operator==(const RepresentativeKernel&, const RepresentativeKernel&) = default;
};

/// The kernels that take most of the programs' computing time by the profile, the heaviest first,
/// until they have `share` of it, at most `most`. Kernels that were not measured are left out.
std::vector<RepresentativeKernel> representative_kernels(
    std::span<const Program> programs, const MachineProfile& machine,
    double share = representative_share, std::size_t most = most_representative_kernels);

/// The drift between two profiles that have measured all of these kernels, of which there is at
/// least one. Nothing if they take as long as they did.
std::optional<Drift> drift_of(std::span<const RepresentativeKernel> kernels,
                              const MachineProfile& before, const MachineProfile& now);

/// Measures the programs' telling kernels again, by one call of `measure`, which returns a profile
/// that holds them. Without a call, nothing: if `known` does not serve these ranks and threads, or
/// knows none of the programs' kernels.
std::optional<Drift> measure_drift(
    std::span<const Program> programs, const MachineProfile& known, int threads_per_rank,
    const std::function<MachineProfile(const ProfileRequest&)>& measure);

}  // namespace stratplan
