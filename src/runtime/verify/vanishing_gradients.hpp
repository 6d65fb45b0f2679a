#pragma once
// Finds the gradients that are zero in exact arithmetic, and measures their terms. The gradient of
// a bias or shift is zero if a later normalization removes the bias with the mean. The gradient of
// a scale is zero if a later normalization removes the scale with the deviation. Such scales are in
// the blocks of MobileNet (normalization, ReLU, depthwise convolution, normalization). The computed
// gradient is then only the rounding error of a sum over positions, so it is compared relative to
// the terms of that sum.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/exec/executor.hpp"

namespace stratplan {

/// Whether adding a constant to each channel of the layer's output leaves the loss unchanged. Each
/// consumer must subtract each channel's own mean, or pass the constant on (maximum, mean over
/// positions, upsampling, addition, concatenation) to consumers that subtract the mean.
bool shifts_vanish(const Network& network, LayerIndex layer);

/// Whether multiplying each channel of the layer's output by a positive constant leaves the loss
/// unchanged while shifts and biases are zero, as in the first step. Each consumer must divide each
/// channel by its own deviation, or pass the constant on (ReLU, pooling, depthwise convolution,
/// ...) to consumers that divide by the deviation.
bool scales_vanish(const Network& network, LayerIndex layer);

/// Measures the terms of vanishing gradients, first as a size per channel, then as the Euclidean
/// norm of the sizes of all channels. Let t be the gradient of the layer's output. For a bias or
/// shift, the size is the sum of |t| over samples and positions. For a scale, the size is an upper
/// bound of the sum of |t * normalized x|, where normalized x has a mean square of one.
class VanishingGradients {
 public:
  /// Both arguments must outlive this object. `program` is the program of an undivided run.
  VanishingGradients(const Network& network, const Program& program);
  /// Called after op `op` of the program. If the op sums up a vanishing gradient, reads the op's
  /// inputs.
  void after(std::size_t op, Executor& executor);
  /// Returns, by name of the parameter, the Euclidean norm of its gradient's sizes.
  std::map<std::string, double> scales() const;

 private:
  using Parameter = std::pair<LayerIndex, ParameterRole>;

  const Network& network_;
  const Program& program_;
  std::set<Parameter> vanishing_;
  std::map<Parameter, std::vector<double>> sums_;  ///< by parameter: the size per channel
};

}  // namespace stratplan
