#pragma once
// A plan never changes the numbers: the first step's loss and gradients, held against an undivided
// run of the same network.
#include <map>
#include <string>
#include <vector>

#include "model/network/network.hpp"
#include "model/partition/execution.hpp"
#include "model/partition/program/program.hpp"
#include "model/plan/verification.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/communicator.hpp"
#include "runtime/device/tensor.hpp"
#include "runtime/exec/executor.hpp"

namespace stratplan {

/// How far two correct single-precision runs may lie apart that add the same terms in another
/// order:
///
///   tolerance = 2 * 2^-24 * sqrt(2 * sum over layers of t)  t: terms of the longest sum that the
///                                                           layer's output or gradients contain
///
/// A sum of t rounded terms errs by about sqrt(t) units of 2^-24 (Higham, "Accuracy and Stability
/// of Numerical Algorithms", section 4.2: random rounding errors). Each layer's forward and
/// backward sums add errors of their own to what passes through them, hence the sum of squares and
/// the 2 in the root; the 2 in front covers two runs' independent errors and their scatter. One
/// wrong or missing halo row, channel or sample changes a gradient by its share of the whole, 1e-3
/// and more, which is the least that this must tell from rounding.
///
/// Where activations are stored in 16 bits, with unit roundoff u (2^-8 of bf16, 2^-11 of fp16),
/// each layer rounds once forward and once backward what it stores, and a divided run also what it
/// sends to be added: t is 1, and the tolerance is larger by 2 * u * sqrt(2 * layers). Parts that
/// are missing may then hide in it, so a plan is verified in fp32 first.
double verification_tolerance(const Network& network, const Precision& precision = {});

/// compare(): a's and b's differences, tensor by tensor. Both as gather_iteration returns them:
/// tensors of other names or shapes are a bug; a difference that is not a number fails. `scales`:
/// least norms to be relative to, by tensor.
VerificationResult compare(const std::vector<NamedTensor>& expected,
                           const std::vector<NamedTensor>& actual, double tolerance,
                           const std::map<std::string, double>& scales = {});

/// The first step on one rank in this process, with the same kernels and from the same numbers:
/// what gather_iteration returns. `data` is asked for whole batches.
std::vector<NamedTensor> undivided_iteration(const Network& network, const Execution& execution,
                                             Backend& backend, const TrainingSettings& settings,
                                             DataSource& data);

/// Where the numbers come from that a step is held against: a second hearing makes an undivided run
/// of its own, so numbers from a file have to agree with that one first.
enum class Expected { FromThisRun, FromFile };

/// The executor's first step, just done and gathered (`actual`, on rank 0), against the undivided
/// run's (`expected`, on rank 0).
///
/// A gradient jumps where rounding turns a sign at a ReLU or the place of a maximum: among millions
/// of activations some always turn, and f of a layer's n turning change its gradients by sqrt(f /
/// n), which no tolerance for rounding covers. So what is beyond the tolerance gets a second
/// hearing: the divided step is run once more to tell how it decided, and then the undivided step
/// is made to decide alike, layer by layer, each layer's outputs being held to the tolerance before
/// they are replaced. On the same side of all jumps the gradients are smooth and have to agree as
/// linear sums do.
///
/// A bias in front of a normalization, which takes it away again with the mean, has a gradient of
/// zero, and so has a scale that one takes away with the deviation: two runs' roundings of the sum
/// over positions are compared with each other, and nothing about them is small relative to the
/// other. A sum is as exact as its terms, and both runs have those to within the tolerance (the
/// weights' gradients are sums of the same terms, and held to it); so what the second hearing
/// allows for these gradients, and for no others, is the tolerance times the sum of the terms'
/// magnitudes (`runtime/verify/vanishing_gradients`). A part of the sum that is missing, say one
/// rank's, is a share of its terms and does not cancel.
///
/// Called by all ranks, which find the same on rank 0 alone; elsewhere only `passed` counts. Only
/// rank 0 asks `data`, as undivided_iteration does. Resets the executor's parameters if there is a
/// second hearing.
VerificationResult verify_first_step(const Network& network, const Program& program,
                                     const Execution& execution, const TrainingSettings& settings,
                                     Backend& backend, DataSource& data, Executor& executor,
                                     Communicator& communicator,
                                     const std::vector<NamedTensor>& expected,
                                     const std::vector<NamedTensor>& actual,
                                     Expected origin = Expected::FromThisRun);

}  // namespace stratplan
