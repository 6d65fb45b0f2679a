#pragma once
// The properties of a training step on which programs depend, besides the layers. The optimizer's
// kind decides its state and kernels. The micro-batches decide how often the layers run. Rates and
// coefficients are settings of a run (runtime/exec/executor.hpp, TrainingSettings).
#include <array>
#include <cstdint>
#include <string_view>

namespace stratplan {

/// In the formulas, w is a parameter, g its gradient, and v and u are the state. The formula of
/// LARS is from You et al., "Large batch training of convolutional networks", 2017. All others are
/// PyTorch's (torch.optim).
enum class OptimizerKind : int {
  Sgd,       ///< w -= rate (g + decay w)
  Momentum,  ///< v = momentum v + g + decay w; w -= rate v
  Nesterov,  ///< v as for Momentum; w -= rate (g + decay w + momentum v)
  /// g += decay w; v and u are running means of g and g^2; w -= rate v' / (sqrt(u') + epsilon),
  /// where v' and u' are v and u corrected for their start at zero
  Adam,
  AdamW,  ///< Adam without decay in g, but also w -= rate decay w
  /// Momentum, where (g + decay w) of each tensor of weights is multiplied by trust |w| / (|g| +
  /// decay |w|). In biases, scales and shifts, (g + decay w) is not multiplied.
  Lars,
};
inline constexpr std::array<std::string_view, 6> optimizer_names{"sgd",  "momentum", "nesterov",
                                                                 "adam", "adamw",    "lars"};
/// Returns the optimizer's name in plan.json.
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
  /// The number of parts of the batch that run one after the other. The gradients of all parts are
  /// added up before the one update.
  std::int64_t micro_batches = 1;
  friend bool operator==(const Training&, const Training&) = default;
};

}  // namespace stratplan
