#pragma once
// A plan never changes the numbers: the first step's loss and gradients, held against an undivided run of the same network.
#include <string>
#include <vector>

#include "model/network/network.hpp"
#include "model/partition/execution.hpp"
#include "runtime/backend.hpp"
#include "runtime/executor.hpp"
#include "runtime/tensor.hpp"

namespace stratplan {

struct Verification {
  double loss_difference = 0;   ///< relative
  std::string worst_tensor;
  double worst_difference = 0;  ///< ||a - b|| / max(||a||, 1e-6 * norm of all gradients), a the undivided run's
  double tolerance = 0;
  bool passed = false;          ///< both differences within the tolerance
};

/// How far two correct single-precision runs may lie apart that add the same terms in another order:
///
///   tolerance = 4 * 2^-24 * sqrt(2 * sum over layers of t)      t: terms of the longest sum that the layer's output or gradients contain
///
/// A sum of t rounded terms errs by about sqrt(t) units of 2^-24 (Higham, "Accuracy and Stability of Numerical Algorithms", section 4.2: random
/// rounding errors). Each layer's forward and backward sums add errors of their own to what passes through them, hence the sum of squares and
/// the 2; the 4 covers the two runs' independent errors and that norms of errors scatter. One wrong or missing halo row, channel or sample changes a gradient
/// by its share of the whole, 1e-3 and more, which is the least that this must tell from rounding.
double verification_tolerance(const Network& network);

/// The first step on one rank in this process, with the same kernels and from the same numbers: what gather_iteration returns.
std::vector<NamedTensor> undivided_iteration(const Network& network, const Execution& execution, Backend& backend, const TrainingSettings& settings);

/// Both as gather_iteration returns them. Tensors of other names or shapes are a bug; a difference that is not a number fails.
Verification compare(const std::vector<NamedTensor>& expected, const std::vector<NamedTensor>& actual, double tolerance);

}  // namespace stratplan
