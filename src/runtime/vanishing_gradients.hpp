#pragma once
// Gradients that are zero in exact arithmetic: of a bias that a normalization behind it takes away again with the mean. What is computed of them is the rounding
// of the sum over positions, which has nothing to be relative to but the terms of that sum.
#include <map>
#include <set>
#include <string>

#include "runtime/executor.hpp"

namespace stratplan {

/// Whether adding a number to each channel of what the layer makes changes nothing behind it: all its readers normalize each channel by its own mean, or pass the
/// number on (maxima, mean over positions, enlargement, sum, concatenation) to readers that do.
bool shifts_vanish(const Network& network, LayerIndex layer);

/// The sizes of such gradients' terms: with t the gradient of the layer's output, the Euclidean norm over channels of the sum of |t| over samples and positions.
class VanishingGradients {
 public:
  /// All must outlive this. `program`: of an undivided run.
  VanishingGradients(const Network& network, const Program& program);
  /// Looks at what the step, which has just finished, has read.
  void after(std::size_t step, Executor& executor);
  /// By the name of the gradient's parameter.
  std::map<std::string, double> scales() const;

 private:
  const Network& network_;
  const Program& program_;
  std::set<LayerIndex> layers_;
  std::map<LayerIndex, std::vector<double>> sums_;  ///< per channel
};

}  // namespace stratplan
