#pragma once
// Verifies that a plan does not change results: compares the first step's loss and gradients with
// an undivided run of the same network.
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

/// Returns the largest relative difference between two correct single-precision runs that add the
/// same terms in different orders:
///
///   tolerance = 2 * 2^-24 * sqrt(2 * sum over layers of t)  t: terms of the longest sum that the
///                                                           layer's output or gradients contain
///
/// A sum of t rounded terms errs by about sqrt(t) units of 2^-24 (Higham, "Accuracy and Stability
/// of Numerical Algorithms", section 4.2: random rounding errors). Each layer's forward and
/// backward sums add independent errors to the tensors that pass through, hence the sum of squares
/// and the 2 in the root. The 2 in front covers the errors of both runs and their scatter. One
/// wrong or missing halo row, channel or sample changes a gradient by its share of the whole, 1e-3
/// and more. The tolerance must be smaller than that.
///
/// If activations are stored in 16 bits, let u be the unit roundoff (2^-8 of bf16, 2^-11 of fp16).
/// Each layer rounds its stored tensors once forward and once backward, and a divided run also
/// rounds the terms that it sends. With t = 1 this adds 2 * u * sqrt(2 * layers) to the tolerance.
/// Missing parts may hide in so large a tolerance, so verify a plan in fp32 first.
double verification_tolerance(const Network& network, const Precision& precision = {});

/// Compares two iterations tensor by tensor, both as gather_iteration returns them. A difference is
/// ||expected - actual|| / ||expected||. The divisor is never below 1e-6 of the norm of all
/// gradients (the loss is exempt), nor below the tensor's value in `scales`. NaN fails. Tensors
/// with different names or shapes are a bug.
VerificationResult compare(const std::vector<NamedTensor>& expected,
                           const std::vector<NamedTensor>& actual, double tolerance,
                           const std::map<std::string, double>& scales = {});

/// Runs the first step on one rank in this process, with the same kernels and initial parameters,
/// and returns gather_iteration's result. Loads whole batches from `data`.
std::vector<NamedTensor> undivided_iteration(const Network& network, const Execution& execution,
                                             Backend& backend, const TrainingSettings& settings,
                                             DataSource& data);

/// Returns the buffer that holds the op's decisions, which its gradient reads: the values whose
/// signs or limits it asks, or the places of maxima. Returns -1 if there is none. The buffer must
/// have the extents of the layer's output. When it is replaced, the backward kernel must give the
/// gradient of the replaced decisions, so no other tensor that it reads may depend on their signs.
BufferId deciding_buffer(const Op& op, const Kernel& kernel);

/// The origin of the expected numbers. The second comparison makes an undivided run of its own, so
/// numbers from a file must agree first with an undivided run by rule: without the implementations
/// that were measured for this plan.
enum class Expected { FromThisRun, FromFile };

/// Compares the executor's first step, which has just run and was gathered on rank 0 (`actual`),
/// with an undivided run's first step (`expected`, on rank 0).
///
/// A gradient jumps if rounding reverses a sign at a ReLU or moves the place of a maximum. Among
/// millions of activations some decisions always reverse. If f of a layer's n decisions reverse,
/// its gradients change by sqrt(f / n), which no tolerance for rounding covers. So numbers beyond
/// the tolerance get a second comparison. The divided step runs once more to record its decisions.
/// Then the undivided step is made to decide alike, layer by layer; each layer's outputs must be
/// within the tolerance before they are replaced. With equal decisions the gradients are smooth
/// functions, and must agree as linear sums do.
///
/// The gradient of a bias is zero if a normalization removes the bias with the mean; so is the
/// gradient of a scale that one removes with the deviation. Two runs then differ by rounding errors
/// as large as the values themselves. But a sum is as exact as its terms, and the terms of both
/// runs agree within the tolerance: the weights' gradients are sums of the same terms and are held
/// to it. So for these gradients alone, the second comparison allows the tolerance times the sum of
/// the terms' magnitudes (vanishing_gradients.hpp). A missing part of the sum, say one rank's, is a
/// share of the terms and does not cancel.
///
/// Called by all ranks. The full result is on rank 0; on other ranks only `passed` is valid. Only
/// rank 0 loads from `data`, as undivided_iteration does. A second comparison resets the executor's
/// parameters.
VerificationResult verify_first_step(const Network& network, const Program& program,
                                     const Execution& execution, const TrainingSettings& settings,
                                     Backend& backend, DataSource& data, Executor& executor,
                                     Communicator& communicator,
                                     const std::vector<NamedTensor>& expected,
                                     const std::vector<NamedTensor>& actual,
                                     Expected origin = Expected::FromThisRun);

}  // namespace stratplan
