#pragma once
// The estimated tier of kernel costs: the time of a kernel on a device that was not measured. The
// estimate is a pure function, which allocates nothing for contractions. It is fast enough for
// every local shape of a search.
//
//   devices that state   contractions                                       all other kernels
//   -                    roofline at the stated rates: a lower bound        the same
//   units                tiles and waves of an implicit matrix product      bytes at the bandwidth
//                        or of Winograd's algorithm, whichever is faster;   that is attained
//                        on tensor cores also copies of tensors whose
//                        channels are no multiple of 16 bytes, as cuDNN
//                        makes them
//   units, vector_width  roofline, filters padded to whole vectors,         the same
//                        rows distributed over the units
// Every kernel adds one launch, and one more for each copy. The constants are those of
// frozen_model, which states where each comes from.
#include <array>

#include "model/machine/machine_profile.hpp"
#include "model/partition/program/kernel.hpp"

namespace stratplan {

/// The attained shares of the rates on data sheets. The constants were fitted only to published
/// times of whole networks on single devices, by tests/bench/calibrate.
/// tests/planner/calibration_test checks the fit.
struct KernelModel {
  /// share of the peak rate, by Math, in the inner loop of an infinitely large tile
  std::array<double, math_count> contraction_share{};
  double winograd_share = 0;  ///< share of the peak rate in Winograd's algorithm and its transforms
  /// share of the forward pass's rate in each of the two backward passes
  double backward_share = 0;
  double bandwidth_share = 0;  ///< share of the memory bandwidth
  /// by Math: loading a tile's operands costs as much as this many additional rows and as many
  /// additional columns
  std::array<double, math_count> tile_edge{};
  /// the beginning and end of a tile cost as much as this many additional terms of its sums
  double prologue = 0;
  double direct_share =
      0;  ///< share of the fp32 rate where groups are too narrow for matrix products (depthwise)
  double vector_share = 0;  ///< share of the peak rate on devices with vector units
};

extern const KernelModel frozen_model;

Seconds estimate_kernel(const Kernel& kernel, const DeviceRates& device,
                        const KernelModel& model = frozen_model);

}  // namespace stratplan
