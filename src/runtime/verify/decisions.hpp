#pragma once
// The decisions of a step: signs at ReLUs, places of maxima, and other values at which a gradient
// jumps. Rounding reverses some of them. Verification compares two runs that decide equally.
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/exec/executor.hpp"
#include "runtime/verify/dump.hpp"

namespace stratplan {

/// Returns the buffer with the op's decisions, or -1 if the op decides nothing. Decisions are the
/// places of maxima, or values that the gradient compares with zero, with limits or with a target.
/// The buffer must have the extents of the layer's output. After the buffer is replaced, the
/// backward kernel, or the loss, must compute the gradient of the new decisions. So no other tensor
/// that this kernel reads may depend on the old decisions.
BufferId deciding_buffer(const Op& op, const Kernel& kernel);

/// A buffer with the decisions of a layer.
struct Decision {
  std::size_t op = 0;  ///< the op that completes the decisions
  BufferId buffer = -1;
  Region region;        ///< that the buffer holds
  Shape global;         ///< the layer's output
  bool places = false;  ///< of maxima in their windows
  /// the values at which the gradient jumps
  float low = 0, high = std::numeric_limits<float>::infinity();
  /// of a loss that jumps where its input is the target: the target's buffer; else -1
  BufferId threshold = -1;

  /// Whether the gradient of `a` is on another side of a jump than that of `b`. Requires that there
  /// is no threshold.
  bool differ(float a, float b) const {
    return places ? a != b : (a > low) != (b > low) || (a < high) != (b < high);
  }
};

/// Returns all decisions in program order, which is the same on all ranks. With the
/// interior/boundary split a layer's decisions are complete at its last kernel.
std::vector<Decision> decisions_of(const Program& program, const Network& network);

/// Calls each(index) for the decisions that op `op` completes.
template <class Each>
void for_decisions_of(std::size_t op, const std::vector<Decision>& decisions, Each each) {
  for (std::size_t i = 0; i < decisions.size(); ++i)
    if (decisions[i].op == op) each(i);
}

/// Returns the number of decisions that the values `own` and `decided` make differently.
std::int64_t count_turned(const Decision& decision, const std::vector<float>& own,
                          const std::vector<float>& decided, Executor& executor);

/// Reads and replaces a buffer of decisions. Places of maxima are stored as floats.
std::vector<float> read(const Decision& decision, Executor& executor);
void write(const Decision& decision, const std::vector<float>& values, Executor& executor);

/// Returns the values that the decisions `decided` would select in this run, right after the op of
/// the decision. Places select elements of the pooling's input, or 0 in its padding. Other
/// decisions are the values themselves. Requires a program of one rank.
std::vector<float> selected(const Decision& decision, const std::vector<float>& decided,
                            const Program& program, Executor& executor);

/// Runs the first step again. Returns the decisions of all layers, as whole tensors, on rank 0. The
/// result is empty on other ranks. Called by all ranks.
std::vector<std::vector<float>> decide_again(const Network& network, const Program& program,
                                             const TrainingSettings& settings, Executor& executor,
                                             Communicator& communicator);

}  // namespace stratplan
