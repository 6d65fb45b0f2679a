#pragma once
// The estimated tier of kernel costs: what a kernel takes on a device that nobody has measured.
// Pure, without allocation for contractions, fast enough to be asked for every local shape of a
// search.
//
//   devices that state   contractions                                       all other kernels
//   -                    roofline at the stated rates: a floor              the same
//   units                tiles and waves of an implicit matrix product,     bytes at the bandwidth
//                        that is attained
//                        or of Winograd's transform, the faster; on tensor
//                        cores also copies of tensors whose channels are no
//                        multiple of 16 bytes, as cuDNN makes them
//   units, vector_width  roofline, filters padded to whole vectors,         the same
//                        rows shared out among the units
// Everywhere one launch is added, and one for each copy. The constants are those of frozen_model;
// where each comes from is said there.
#include <array>

#include "model/machine/machine_profile.hpp"
#include "model/partition/program/kernel.hpp"

namespace stratplan {

/// What devices attain, as shares of what their data sheets state. The constants were fitted to
/// published times of whole networks on single devices, by tests/bench/calibrate, and to nothing
/// else; tests/planner/calibration_test holds what they reach.
struct KernelModel {
  /// of the peak rate, by Math, in the inner loop of an endlessly large tile
  std::array<double, math_count> contraction_share{};
  double winograd_share =
      0;  ///< the same where Winograd's transform saves multiplications; its transforms are in it
  double backward_share = 0;   ///< of the forward pass's rate, in the two backward passes
  double bandwidth_share = 0;  ///< of the memory bandwidth
  /// rows and columns of a tile cost as much as so many more of the other: loading of operands
  std::array<double, math_count> tile_edge{};
  double prologue = 0;  ///< beginning and end of a tile cost as much as so many terms of its sums
  double direct_share =
      0;  ///< of the fp32 rate, where groups are too narrow for matrix products (depthwise)
  double vector_share = 0;  ///< of the peak rate, on devices with vector units
};

extern const KernelModel frozen_model;

Seconds estimate_kernel(const Kernel& kernel, const DeviceRates& device,
                        const KernelModel& model = frozen_model);

}  // namespace stratplan
