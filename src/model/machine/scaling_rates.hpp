#pragma once
// What keeps large jobs below the speed of one device: devices that are not equally fast, and
// kernels that share a device with sums. Measured machines bring their own spread. For machines
// with published rates these numbers are data with sources: machines/parts/scaling.json.

namespace stratplan {

struct ScalingRates {
  /// standard deviation of the logarithm of a step's time, from one device of a kind to the next
  double device_spread = 0;
  double step_jitter = 0;  ///< the same from step to step of one device
  /// time of kernels beside a sum of gradients, relative to their time alone
  double beside_sums = 1;
  friend bool operator==(const ScalingRates&, const ScalingRates&) = default;
};

/// The shipped rates. Throws InputError if a number has no source beside it.
const ScalingRates& scaling_rates();

/// Returns how much longer the slowest of `ranks` computes than a rank on average, as a share: the
/// expected maximum of as many normal variables. A synchronous step waits for it.
double straggler_share(int ranks, const ScalingRates& rates);

}  // namespace stratplan
