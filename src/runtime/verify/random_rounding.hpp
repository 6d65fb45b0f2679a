#pragma once
// Measures how far rounding moves the numbers of a step. The step runs with random relative errors
// in its tensors, as large as those of single-precision arithmetic. The spread of a gradient over
// several such runs is what rounding changes in the gradient. This is Monte Carlo arithmetic
// (Parker, "Monte Carlo Arithmetic", 1997; Denis and others, "Verificarlo", 2016), but each error
// stands for the rounding of a whole sum.
#include <cstdint>
#include <vector>

#include "runtime/exec/executor.hpp"
#include "runtime/verify/decisions.hpp"

namespace stratplan {

/// Half the distance between 1 and the next larger number of a floating type of up to 32 bits.
double unit_roundoff(DataType type);

/// Returns the relative errors, by buffer of the program. The error is 0 for buffers that are
/// neither activations nor gradients of activations.
///
///   error = sqrt(t * 2^-48 + u^2)   t: terms of the longest sum (Layer::longest_sum) of the layers
///                                      whose ops read or write the buffer
///                                   u: unit roundoff of the buffer's type if it has 16 bits, or 0
///
/// A sum of t terms that is computed in single precision, in any order, is the exact sum of terms
/// with relative errors d_i. Each |d_i| is at most (t - 1) * 2^-24 (Higham, "Accuracy and Stability
/// of Numerical Algorithms", section 4.2), and with high probability at most about sqrt(t) * 2^-24
/// (Higham and Mary, "A New Approach to Probabilistic Rounding Error Analysis", 2019). So errors in
/// the terms represent the rounding of all sums, even of those that cancel.
std::vector<double> rounding_errors(const Network& network, const Program& program);

/// The random errors of one run.
class RandomRounding {
 public:
  /// Runs with different `draw` get different errors. The program must outlive this object.
  RandomRounding(const Network& network, const Program& program, std::uint64_t draw)
      : program_(program), errors_(rounding_errors(network, program)), draw_(draw) {}
  /// Called after op `op` has ended. Multiplies each value that the op has written by 1 + d. The
  /// numbers d are uniform and independent. Their mean is 0, and their standard deviation is the
  /// buffer's error. Values keep their decisions: a value stays as it is if its product is on
  /// another side of a jump.
  void after(std::size_t op, const std::vector<Decision>& decisions, Executor& executor);

 private:
  const Program& program_;
  std::vector<double> errors_;  ///< by buffer
  std::uint64_t draw_;
  std::vector<float> values_;
};

}  // namespace stratplan
