#pragma once
// Compares the speed of several devices of a node with that of one device, as one program ran both.
// The errors of kernels cancel, so what is left says what keeps devices below their speed alone.
#include <string>
#include <vector>

#include "bench/calibrate/published.hpp"

namespace stratplan::calibration {

struct DeviceRatio {
  std::string id, network, device, software;
  Math math = Math::Fp32;
  int devices = 1;
  double measured = 1;  ///< step on all devices / step on one, the batch of each being the same
  /// the same predicted: with equal devices, and what a spread of 1 would add
  double equal = 1, of_spread = 0;

  double predicted(double spread) const { return equal + spread * of_spread; }
};

/// All pairs of rows of one program that differ in the number of devices alone. Pairs without links
/// (of cards whose connection no source states) and rows that a rule excludes are left out.
std::vector<DeviceRatio> ratios_of(const Published& published);

/// Fits ScalingRates::device_spread.
double fit_spread(const std::vector<DeviceRatio>& ratios);

}  // namespace stratplan::calibration
