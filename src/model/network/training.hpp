#pragma once
// The properties of a training step on which programs depend, besides the layers. The optimizer's
// kind decides its state and kernels. The micro-batches decide how often the layers run. Parameter
// groups decide which parameters are updated together. Other rates and coefficients are settings of
// a run (runtime/exec/executor.hpp, TrainingSettings).
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// Parameters for which the optimizer has other settings than for all others.
struct ParameterGroup {
  /// Patterns of parameter names (base/text.hpp, matches_pattern). The word "norms" stands for all
  /// scales and shifts of normalizations, "biases" for all biases of other layers.
  std::vector<std::string> parameters;
  double learning_rate = 1;  ///< a factor on the learning rate of the run
  /// replaces the weight decay of the run
  std::optional<double> weight_decay{};
  bool trust = true;  ///< false: LARS uses the plain learning rate for the group's weights, too
  friend bool operator==(const ParameterGroup&, const ParameterGroup&) = default;
};

/// Returns the group as the option --group spells it: "norms,biases:weight-decay=0".
std::string text_of(const ParameterGroup& group);

struct Training {
  OptimizerKind optimizer = OptimizerKind::Momentum;
  /// The number of parts of the batch that run one after the other. The gradients of all parts are
  /// added up before the one update.
  std::int64_t micro_batches = 1;
  /// A parameter belongs to the first group that has a pattern for it, or to none.
  std::vector<ParameterGroup> groups{};
  friend bool operator==(const Training&, const Training&) = default;
};

}  // namespace stratplan
