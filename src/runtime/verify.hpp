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
  std::string worst_tensor;     ///< the one nearest to its tolerance or furthest beyond it
  double worst_difference = 0;  ///< its ||a - b|| / max(||a||, 1e-6 * norm of all gradients), a the undivided run's
  double tolerance = 0;         ///< its tolerance
  bool passed = false;          ///< the loss and every tensor within their tolerances
};

/// How far two correct single-precision runs may lie apart that add the same terms in another order:
///
///   tolerance = 2 * 2^-24 * sqrt(2 * sum over layers of t)      t: terms of the longest sum that the layer's output or gradients contain
///
/// A sum of t rounded terms errs by about sqrt(t) units of 2^-24 (Higham, "Accuracy and Stability of Numerical Algorithms", section 4.2: random
/// rounding errors). Each layer's forward and backward sums add errors of their own to what passes through them, hence the sum of squares and
/// the 2 in the root; the 2 in front covers two runs' independent errors and their scatter. One wrong or missing halo row, channel or sample
/// changes a gradient by its share of the whole, 1e-3 and more, which is the least that this must tell from rounding.
double verification_tolerance(const Network& network);

/// The first step on one rank in this process, with the same kernels and from the same numbers: what gather_iteration returns. `nudged`: every
/// weight is moved to a neighbouring float, up or down by the seed.
std::vector<NamedTensor> undivided_iteration(const Network& network, const Execution& execution, Backend& backend, const TrainingSettings& settings,
                                             bool nudged = false);

/// Both as gather_iteration returns them. Tensors of other names or shapes are a bug; a difference that is not a number fails. `nudged`: of a nudged
/// run; a tensor then may differ by four times as much as the nudge alone changes it, if that is more than the tolerance, but never by a quarter.
Verification compare(const std::vector<NamedTensor>& expected, const std::vector<NamedTensor>& actual, double tolerance,
                     const std::vector<NamedTensor>& nudged = {});

/// compare() by verification_tolerance. What is beyond it gets a second hearing, for which the undivided step is run once more, nudged: a deep
/// network may itself magnify rounding more than linear sums do, above all where a sign at a ReLU or the place of a maximum turns on it (a fraction
/// f of turned elements changes a gradient by sqrt(f)). How much, is measured here rather than assumed.
Verification verify_iteration(const Network& network, const Execution& execution, Backend& backend, const TrainingSettings& settings,
                              const std::vector<NamedTensor>& expected, const std::vector<NamedTensor>& actual);

}  // namespace stratplan
