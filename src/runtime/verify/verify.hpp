#pragma once
// Verifies that a plan does not change results. The first step's loss and gradients are compared
// with those of an undivided run of the same network.
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
/// Missing parts may hide in so large a tolerance, so verify a plan in fp32 first. Gradients that
/// are summed in 16 bits add 4 * u: a rank's term is rounded, and so is each partial sum.
double verification_tolerance(const Network& network, const Precision& precision = {});

/// Compares two iterations tensor by tensor, both as gather_iteration returns them. A tensor's
/// difference is ||expected - actual|| / ||expected||. For a gradient, the divisor is at least 1e-6
/// of the norm of all expected gradients. The divisor is also at least the tensor's value in
/// `divisors`, if there is one. A NaN in either iteration fails the comparison. Tensors with
/// different names or shapes are a bug.
VerificationResult compare(const std::vector<NamedTensor>& expected,
                           const std::vector<NamedTensor>& actual, double tolerance,
                           const std::map<std::string, double>& divisors = {});

/// Runs the first step undivided on one rank in this process, with the same kernels and initial
/// parameters as the divided run. Returns gather_iteration's result. Loads whole batches from
/// `data`.
std::vector<NamedTensor> undivided_iteration(const Network& network, const Execution& execution,
                                             Backend& backend, const TrainingSettings& settings,
                                             DataSource& data);

/// The origin of the expected numbers. The second comparison (verify_first_step) makes an undivided
/// run of its own. So numbers from a file must first agree with an undivided run in this process.
/// In that run the backend's rule chooses the implementations of kernels, not the plan.
enum class Expected { FromThisRun, FromFile };

/// Compares the executor's first step, which has just run and was gathered on rank 0 (`actual`),
/// with an undivided run's first step (`expected`, on rank 0).
///
/// A gradient jumps if rounding reverses a sign at a ReLU or moves the place of a maximum. Among
/// millions of activations some decisions always reverse. If f of a layer's n decisions reverse,
/// its gradients change by sqrt(f / n), which no tolerance for rounding covers. So numbers beyond
/// the tolerance get a second comparison. The divided step runs once more to record its decisions.
/// Then the undivided step runs, and its decisions are replaced by the recorded decisions, layer by
/// layer. Each layer's outputs must be within the tolerance before they are replaced. With equal
/// decisions the gradients are smooth functions, and must agree as linear sums do.
///
/// Some tensors lose more to rounding than the tolerance says. A gradient may be zero in exact
/// arithmetic, as that of a bias in front of a normalization. A normalization over few samples
/// enlarges rounding errors. So numbers beyond the tolerance get a third comparison, whose limits
/// are measured. The undivided step of the second comparison runs up to eight more times, each time
/// with random errors in all its tensors, as large as those of single-precision sums
/// (random_rounding.hpp). The spread of a tensor is the root mean square, over these runs, of the
/// norm of the tensor's difference from the undivided step. The limit of a tensor is
///
///   max(tolerance * norm, 8 * spread)
///
/// The factor covers the rounding inside kernels, the errors of both runs, and the scatter of a
/// spread that was estimated from few runs of a tensor with one element. Differences of right runs
/// were up to 3.2 spreads (README.md). A missing part of a sum, say one rank's, is a share of the
/// sum's terms, and far larger than the spread, even if the whole sum is zero.
///
/// Called by all ranks. The full result is on rank 0; on other ranks only `passed` is valid. Only
/// rank 0 loads from `data`, and loads whole batches. A second comparison resets the executor's
/// parameters.
VerificationResult verify_first_step(const Network& network, const Program& program,
                                     const Execution& execution, const TrainingSettings& settings,
                                     Backend& backend, DataSource& data, Executor& executor,
                                     Communicator& communicator,
                                     const std::vector<NamedTensor>& expected,
                                     const std::vector<NamedTensor>& actual,
                                     Expected origin = Expected::FromThisRun);

}  // namespace stratplan
