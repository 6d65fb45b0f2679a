#pragma once
// The estimated tier of kernel costs: the time of a kernel that was not measured, from the rates of
// its device. The estimate is a pure function, which allocates nothing for contractions. It is fast
// enough to be computed for every local shape of a search.
//
//   the device states    contractions                                   all other kernels
//   neither              roofline at the stated rates: a lower bound    roofline at the stated
//                                                                       rates
//   units                tiles of an implicit matrix product; in fp32   roofline at the peak rate
//                        tiles of Winograd's algorithm if that is       and the attained bandwidth
//                        faster; on tensor cores also cuDNN's copies
//                        of tensors whose channels are no multiple of
//                        16 bytes
//   units, vector_width  roofline with filters padded to whole vectors  roofline at the peak rate
//                        and rows distributed over the units            and the attained bandwidth
// Each estimate adds one launch, and one more for each copy. The constants are those of
// frozen_model, which states where each constant comes from.
#include <array>

#include "model/machine/machine_profile.hpp"
#include "model/partition/program/kernel.hpp"

namespace stratplan {

/// The constants of estimate_kernel(): the shares of data-sheet rates that kernels attain, and the
/// overhead of a tile. tests/bench/calibrate fitted some of them to published times of whole
/// networks on single devices. The others are assumptions. tests/planner/calibration_test checks
/// the fit.
struct KernelModel {
  /// share of the peak rate, by Math, in the inner loop of an infinitely large tile
  std::array<double, math_count> contraction_share{};
  /// share of the peak rate that Winograd's algorithm attains, its transforms included
  double winograd_share = 0;
  /// rate of each of the two backward kernels, as a share of the forward kernel's rate
  double backward_share = 0;
  double bandwidth_share = 0;  ///< share of the memory bandwidth that kernels attain
  /// by Math: loading a tile's operands costs as much as this many additional rows and as many
  /// additional columns
  std::array<double, math_count> tile_edge{};
  /// the beginning and end of a tile cost as much as this many additional terms of its sums
  double prologue = 0;
  /// share of the fp32 rate that a contraction attains without a matrix product: with narrow groups
  /// (depthwise), or with tensors too large for tensor cores
  double direct_share = 0;
  double vector_share = 0;  ///< share of the fp32 rate that contractions attain on vector units
};

extern const KernelModel frozen_model;

Seconds estimate_kernel(const Kernel& kernel, const DeviceRates& device,
                        const KernelModel& model = frozen_model);

}  // namespace stratplan
