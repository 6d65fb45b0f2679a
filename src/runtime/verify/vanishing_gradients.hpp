#pragma once
// Gradients that are zero in exact arithmetic: of a bias or shift that a normalization behind it
// takes away again with the mean, and of a scale that one takes away with the deviation
// (normalization, ReLU, depthwise convolution, normalization: the blocks of MobileNet). What is
// computed of them is the rounding of a sum over positions, which has nothing to be relative to but
// the terms of that sum.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/exec/executor.hpp"

namespace stratplan {

/// Whether adding a number to each channel of what the layer makes changes nothing behind it: all
/// its readers normalize each channel by its own mean, or pass the number on (maxima, mean over
/// positions, enlargement, sum, concatenation) to readers that do.
bool shifts_vanish(const Network& network, LayerIndex layer);

/// Whether multiplying each channel of what the layer makes by a positive number changes nothing
/// behind it, while shifts and biases are zero, as they are in the first step: all its readers
/// divide each channel by its own deviation, or pass the number on (ReLUs, pooling, depthwise
/// convolution, ...) to readers that do.
bool scales_vanish(const Network& network, LayerIndex layer);

/// The sizes of such gradients' terms, an Euclidean norm over channels. With t the gradient of the
/// layer's output: of a bias or shift the sum of |t| over samples and positions; of a scale a bound
/// of the sum of |t * normalized x|, whose second factors have a mean square of one.
class VanishingGradients {
 public:
  /// All must outlive this. `program`: of an undivided run.
  VanishingGradients(const Network& network, const Program& program);
  /// Looks at what the step, which has just finished, has read.
  void after(std::size_t step, Executor& executor);
  /// By the name of the gradient's parameter.
  std::map<std::string, double> scales() const;

 private:
  using Parameter = std::pair<LayerIndex, ParameterSlice::What>;

  const Network& network_;
  const Program& program_;
  std::set<Parameter> vanishing_;
  std::map<Parameter, std::vector<double>> sums_;  ///< per channel
};

}  // namespace stratplan
