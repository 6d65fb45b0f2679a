#pragma once
// Whether the machine still is what the profile says: processors of a shared machine change their pace, within minutes and by a quarter.
#include <span>

#include "profile/profile_request.hpp"

namespace stratplan {

/// A change of pace below this is as good as none: kernels vary as much from one visit to the next.
inline constexpr double tolerated_change_of_pace = 0.03;
/// Kernels that take so much of a program's computing time speak for the rest.
inline constexpr double telling_share = 0.6;

/// The kernels that take most of the programs' computing time by the profile, the heaviest first, until they have `share` of it. Kernels that were not measured
/// are left out.
std::vector<Kernel> heaviest_kernels(std::span<const Program> programs,
                                     const MachineProfile& machine, double share);

/// How long these kernels take by `now`, one run of each, relative to `before`. Both have measured them all.
double pace(const std::vector<Kernel>& kernels, const MachineProfile& before,
            const MachineProfile& now);

}  // namespace stratplan
