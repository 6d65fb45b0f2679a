#pragma once
// Measures how much slower kernels become beside the kernels of a communication library, as far as
// one device can show. Blocks of threads that copy memory at a link's rate stand for the library's
// kernels (Backend::enqueue_traffic). No rank communicates, so these numbers must be marked as
// emulated.
#include <span>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// Returns the kernels whose slowdown is measured: a large convolution, bound by arithmetic, and a
/// large copy, bound by memory.
std::vector<Kernel> kernels_interfered_with();

/// Bandwidth, in one direction, of the 18 links of an H100 or H200 to its switch
/// (machines/parts/links.json, nvlink4).
inline constexpr double emulated_link_bytes_per_s = 450e9;

/// Times the kernels alone and beside 8, 16 and 32 blocks of threads, in turns. The blocks together
/// copy `bytes_per_s`. Returns one row per number of blocks. Returns no rows if the backend
/// emulates no traffic, or does not know the device's clock, which the blocks need to keep their
/// rate. Throws EnvironmentError if memory runs out.
std::vector<Interference> profile_interference(Backend& backend, std::span<const Kernel> kernels,
                                               double bytes_per_s = emulated_link_bytes_per_s);

/// Returns an estimate of MachineProfile::hidden from the row with 16 blocks, which is the middle
/// row. While a gradient sum is under way, a kernel keeps the share 1 / slowdown of its speed, at
/// most 1. The result is the mean of these shares over the kernels. Requires a row with 16 blocks.
double hidden_beside_traffic(std::span<const Interference> rows);

}  // namespace stratplan
