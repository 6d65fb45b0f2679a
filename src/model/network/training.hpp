#pragma once
// The properties of a training step, besides the layers, on which programs depend. The optimizer's
// kind decides its state and kernels. The micro-batches decide how often the layers run. Rates and
// coefficients are settings of a run (runtime/exec/executor.hpp, TrainingSettings).
#include <array>
#include <cstdint>
#include <string_view>

namespace stratplan {

/// In the formulas, w is a parameter, g its gradient, and v and u are the state. The formulas are
/// PyTorch's (torch.optim). LARS: You et al., "Large batch training of convolutional networks",
/// 2017.
enum class OptimizerKind : int {
  Sgd,       ///< w -= rate (g + decay w)
  Momentum,  ///< v = momentum v + g + decay w; w -= rate v
  Nesterov,  ///< v as for Momentum; w -= rate (g + decay w + momentum v)
  /// g += decay w; v, u = running means of g, g^2; w -= rate v' / (sqrt(u') + epsilon), where v'
  /// and u' are v and u corrected for their start at zero
  Adam,
  AdamW,  ///< Adam without decay in g; w -= rate decay w ("decoupled")
  /// Momentum, where (g + decay w) of each tensor of weights is multiplied by trust |w| / (|g| +
  /// decay |w|); biases, scales and shifts are not multiplied
  Lars,
};
inline constexpr std::array<std::string_view, 6> optimizer_names{"sgd",  "momentum", "nesterov",
                                                                 "adam", "adamw",    "lars"};
/// The spelling in plan.json.
constexpr std::string_view name_of(OptimizerKind kind) {
  return optimizer_names[static_cast<std::size_t>(kind)];
}

/// The number of values of optimizer state per parameter.
constexpr int optimizer_states(OptimizerKind kind) {
  if (kind == OptimizerKind::Sgd) return 0;
  return kind == OptimizerKind::Adam || kind == OptimizerKind::AdamW ? 2 : 1;
}

struct Training {
  OptimizerKind optimizer = OptimizerKind::Momentum;
  /// the number of parts of the batch that run one after the other; their gradients are added up
  /// before the one update
  std::int64_t micro_batches = 1;
  friend bool operator==(const Training&, const Training&) = default;
};

}  // namespace stratplan
