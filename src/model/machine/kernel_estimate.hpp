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
// Each estimate adds one launch, and one more for each copy. The shares of the rates are data
// (KernelShares).
#include "model/machine/machine_profile.hpp"
#include "model/partition/program/kernel.hpp"

namespace stratplan {

/// A kernel's work at the peak rates of its device, in seconds. KernelShares says what kernels of
/// its family attain of these rates.
struct KernelWork {
  double product = 0;     ///< arithmetic, as tiles of an implicit matrix product
  double winograd = 0;    ///< arithmetic of Winograd's algorithm; 0: it does not apply
  double traffic = 0;     ///< tensors read and written once
  double copies = 0;      ///< tensors copied before and after a product
  double transposes = 0;  ///< x and y copied once, if their order does not suit tensor cores
  int launches = 1;       ///< kernels, copies included
};
KernelWork work_of(const Kernel& kernel, const DeviceRates& device);

/// The greater of arithmetic and traffic, and then copies and launches, at the device's shares.
Seconds estimate_kernel(const Kernel& kernel, const DeviceRates& device);

}  // namespace stratplan
