#pragma once
// Checks whether the machine is still as fast as its profile says. The speed of a shared machine's
// processors can change by a quarter within minutes. A few kernels are measured again. The
// profile's own times stay, and Drift scales the times predicted from them.
#include <functional>
#include <optional>
#include <span>

#include "profile/profile_request.hpp"

namespace stratplan {

/// A drift up to this counts as none, because a kernel's time varies as much between measurements.
inline constexpr double tolerated_drift = 0.03;
/// The most time-consuming kernels stand for the rest once they have this share of a program's
/// computing time. No more than most_representative_kernels are measured again.
inline constexpr double representative_share = 0.6;
inline constexpr std::size_t most_representative_kernels = 8;
/// The measured kernels' common ratio applies to all kernels if the standard deviation of single
/// ratios, relative to the common ratio, is at most this.
inline constexpr double tolerated_unevenness = 0.1;

struct RepresentativeKernel {
  Kernel kernel;
  Seconds seconds{};  ///< time that the programs spend in this kernel, at the profile's speed
  friend bool operator==(const RepresentativeKernel&, const RepresentativeKernel&) = default;
};

/// Returns the kernels with the most computing time by the profile, heaviest first, until they have
/// `share` of the programs' computing time. Returns at most `most` kernels. Kernels that the
/// profile lacks are left out.
std::vector<RepresentativeKernel> representative_kernels(
    std::span<const Program> programs, const MachineProfile& machine,
    double share = representative_share, std::size_t most = most_representative_kernels);

/// Returns the drift between two profiles, or nothing if the drift is even and at most
/// tolerated_drift. Requires at least one kernel, and measurements of all these kernels in both
/// profiles.
std::optional<Drift> drift_of(std::span<const RepresentativeKernel> kernels,
                              const MachineProfile& before, const MachineProfile& now);

/// Measures the programs' representative kernels again and returns the drift. `measure` is called
/// once, and must return a profile that holds these kernels. Returns nothing, without a call, if
/// the profile `known` does not serve these ranks and threads, or holds none of the programs'
/// kernels. Requires at least one program.
std::optional<Drift> measure_drift(
    std::span<const Program> programs, const MachineProfile& known, int threads_per_rank,
    const std::function<MachineProfile(const ProfileRequest&)>& measure);

}  // namespace stratplan
