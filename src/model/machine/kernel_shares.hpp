#pragma once
// The shares of a device's peak rates that kernels attain, by generation of the hardware. They are
// data (machines/parts/kernels.json), which tests/bench/calibrate fits to published measurements.
#include <array>
#include <string>

#include "model/machine/arithmetic.hpp"
#include "model/machine/kernel_family.hpp"

namespace stratplan {

struct KernelShares {
  using ByDirection = std::array<double, direction_count>;
  /// contractions: of the peak rate of the arithmetic; one for families that are no contractions
  std::array<std::array<ByDirection, kernel_family_count>, math_count> product = uniform(0.7);
  /// contractions on tensor cores of tensors that are stored channels first, relative to channels
  /// last; by family
  std::array<ByDirection, kernel_family_count> channels_first = uniform(1)[0];
  ByDirection winograd{0.7, 0.7, 0.7};  ///< Winograd's algorithm, its transforms included
  /// of the memory bandwidth, by family
  std::array<ByDirection, kernel_family_count> bandwidth = uniform(0.8)[0];
  /// Time that a contraction on tensor cores takes to change the order of its tensors where the
  /// software stores channels first, relative to copying x and y once. By arithmetic.
  std::array<double, math_count> transposes{0, 0.25, 1, 1};

  friend bool operator==(const KernelShares&, const KernelShares&) = default;

 private:
  static constexpr std::array<std::array<ByDirection, kernel_family_count>, math_count> uniform(
      double share) {
    std::array<std::array<ByDirection, kernel_family_count>, math_count> shares{};
    for (auto& of_math : shares)
      for (ByDirection& of_family : of_math) of_family.fill(share);
    return shares;
  }
};

/// Reads the shares of a generation, times the factor of the device if it has one. A generation
/// that is not in the file has the shares of "other", which are the means over all generations.
/// `device`: a name in machines/parts/devices.json, or empty.
KernelShares read_kernel_shares(const std::string& generation, const std::string& device);

}  // namespace stratplan
