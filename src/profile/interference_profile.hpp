#pragma once
// What kernels of a communication library would take from those beside them, as far as one device
// can tell: their part is played by blocks of threads that copy memory at a link's rate
// (Backend::enqueue_traffic). No rank communicates, and whoever writes these numbers says so.
#include <span>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// A large convolution, which computes, and a large copy, which is bound by memory.
std::vector<Kernel> kernels_interfered_with();

/// One direction of the 18 links of an H100 or H200 to its switch (machines/parts/links.json,
/// nvlink4).
inline constexpr double emulated_link_bytes_per_s = 450e9;

/// The kernels, alone and beside 8, 16 and 32 blocks that copy so many bytes per second together,
/// in turns. Nothing if the backend emulates no traffic, or does not know its clock, by which the
/// blocks keep their rate. Throws EnvironmentError: no memory.
std::vector<Interference> profile_interference(Backend& backend, std::span<const Kernel> kernels,
                                               double bytes_per_s = emulated_link_bytes_per_s);

/// MachineProfile::hidden as 16 blocks would have it, of the numbers of blocks that were measured
/// the middle one: as long as a sum is under way kernels get 1 / slowdown done; the mean over the
/// kernels. Requires such a row.
double hidden_beside_traffic(std::span<const Interference> rows);

}  // namespace stratplan
