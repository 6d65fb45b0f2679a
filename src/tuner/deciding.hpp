#pragma once
// What autotune measures next, and when it has measured enough to decide.
//
// A plan may still win if it is faster than the best one by more than `margin` with a probability
// above `negligible`. What is measured next is what would most change the decision: of each kernel
// that was not measured, the sum over the plans that may still win of
//     |its time in the best plan - its time in that plan| x its relative uncertainty,
// per second of measuring it. Kernels that all plans share count nothing.
#include <span>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "planner/planner.hpp"

namespace stratplan {

inline constexpr double decision_margin = 0.02;
inline constexpr double negligible_chance = 0.05;

/// The probability that `other` is faster than `best` by more than decision_margin.
double chance_of(const Prediction& other, const Prediction& best);

/// The usable plans other than the fastest that may still win, the likeliest first.
std::vector<const Considered*> rivals_of(const PlanningResult& planning);

/// A kernel that was not measured.
struct OpenKernel {
  Kernel kernel;
  Seconds worth{};  ///< see above; how much the decision hangs on it
  Seconds takes{};  ///< estimated time to measure it
  /// its part of the best plan's doubt: time in that plan times relative uncertainty
  Seconds doubt{};
};

/// How long measuring takes, which is learnt from one batch to the next.
class MeasuringPace {
 public:
  Seconds of(Seconds kernel) const { return kernel * runs_ + fixed; }
  /// `kernels`: sum of the kernels' predicted times. `count`: their number.
  void learn(Seconds kernels, std::size_t count, Seconds taken);

 private:
  static constexpr Seconds fixed{0.02};
  /// runs of a kernel, all choices and visits together. The first value is for three choices.
  double runs_ = 30;
};

/// The open kernels of the best plan and its rivals. `missing`: kernels that were not measured.
std::vector<OpenKernel> open_kernels(const Prediction& best,
                                     const std::vector<const Considered*>& rivals,
                                     std::span<const Kernel> missing, const MachineProfile& machine,
                                     const MeasuringPace& pace);

/// The kernels with the most worth per second of measuring, as many as take `budget`; at least one
/// if any has worth. With `for_range`, those with the most doubt per second instead.
std::vector<OpenKernel> next_batch(std::vector<OpenKernel> open, Seconds budget,
                                   bool for_range = false);

/// Returns the kernels in which the programs spend most time: of each family, direction and width
/// as many as, with those that were measured, make `enough`. They allow a first estimate of all
/// others.
std::vector<Kernel> representatives(std::span<const Program> programs,
                                    std::span<const Kernel> missing, const MachineProfile& machine,
                                    int enough = 2);

}  // namespace stratplan
