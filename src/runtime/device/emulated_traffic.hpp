#pragma once
#include "model/base/units.hpp"

namespace stratplan {

/// Emulates the resources that a communication library's kernel takes from kernels that run at the
/// same time. Blocks of 512 threads copy memory at the speed of a link. Each block occupies its
/// place on the device until the end.
struct EmulatedTraffic {
  int blocks = 0;
  Bytes bytes{};           ///< read once and written once, by all blocks together
  double bytes_per_s = 0;  ///< upper limit of the speed
};

}  // namespace stratplan
