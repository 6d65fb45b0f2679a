#pragma once
// How the loss scale changes after each step. The kernels of all devices use this file, and so does
// the code that initializes and saves the scale.
#include <cstdint>

namespace stratplan {

/// Settings of the loss scale in training with gradients in F16. The defaults are PyTorch's
/// (torch.amp.GradScaler).
struct LossScaleSettings {
  double initial = 65536;
  /// steps without an overflow after which the scale doubles; 0 keeps the scale constant
  std::int64_t growth_steps = 2000;
};

/// The state of the loss scale, laid out as in the program's buffer.
struct LossScaling {
  double scale = 1;  ///< the factor on the loss
  double steps = 0;  ///< steps since the scale was adjusted or gradients overflowed
};

inline constexpr double largest_loss_scale = 0x1p24;

/// Returns the state after a step. An overflow halves the scale, but not below 1. The scale doubles
/// after growth_steps steps without an overflow, unless it is largest_loss_scale or more. If
/// growth_steps is 0, the scale is constant.
constexpr LossScaling adjusted(LossScaling now, bool overflow, std::int64_t growth_steps) {
  if (growth_steps == 0) return {now.scale, overflow ? 0 : now.steps + 1};
  if (overflow) return {now.scale > 2 ? now.scale / 2 : 1, 0};
  if (now.steps + 1 < static_cast<double>(growth_steps)) return {now.scale, now.steps + 1};
  return {now.scale < largest_loss_scale ? 2 * now.scale : now.scale, 0};
}

}  // namespace stratplan
