#pragma once
// How the scale of the loss follows what gradients do; for kernels of any device, and for whoever
// starts or keeps it.
#include <cstdint>

namespace stratplan {

/// What training with gradients in F16 begins with; the defaults are PyTorch's
/// (torch.amp.GradScaler).
struct LossScaleSettings {
  double initial = 65536;
  std::int64_t growth_steps =
      2000;  ///< doubled after so many steps without an overflow; 0: the scale stays as it is
};

/// As it lies in a program's buffer.
struct LossScaling {
  double scale = 1;  ///< a power of two times the initial one
  double steps = 0;  ///< since it changed, or gradients overflowed
};

inline constexpr double largest_loss_scale = 0x1p24;

/// After a step: halved behind an overflow, doubled behind enough steps without one.
constexpr LossScaling adjusted(LossScaling now, bool overflow, std::int64_t growth_steps) {
  if (growth_steps == 0) return {now.scale, overflow ? 0 : now.steps + 1};
  if (overflow) return {now.scale > 2 ? now.scale / 2 : 1, 0};
  if (now.steps + 1 < static_cast<double>(growth_steps)) return {now.scale, now.steps + 1};
  return {now.scale < largest_loss_scale ? 2 * now.scale : now.scale, 0};
}

}  // namespace stratplan
