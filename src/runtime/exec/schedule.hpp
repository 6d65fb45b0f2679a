#pragma once
// The learning rate of each step: a schedule's factor on the rate that it starts from, which may
// follow the batch.
#include <array>
#include <cstdint>
#include <string_view>

namespace stratplan {

enum class ScheduleKind : int { Constant, Op, Cosine, Polynomial };
inline constexpr std::array<std::string_view, 4> schedule_names{"constant", "step", "cosine",
                                                                "polynomial"};

/// During warm-up the factor rises linearly, (step + 1) / warmup_steps (Goyal et al., "Accurate,
/// large minibatch SGD", 2017); behind it t counts from 0:
///   Constant    1
///   step      gamma^floor(t / step_size)
///   Cosine      (1 + cos(pi t / span)) / 2, with span = steps - warmup_steps; 0 from there on
///   Polynomial  (1 - t / span)^power
struct Schedule {
  ScheduleKind kind = ScheduleKind::Constant;
  std::int64_t warmup_steps = 0;
  std::int64_t steps = 0;  ///< of the whole training, warm-up included
  std::int64_t step_size = 1;
  double gamma = 0.1;
  double power = 1;
};

double factor(const Schedule& schedule, std::int64_t step);

/// How a rate that was tuned for `reference` samples per step follows another batch.
enum class BatchScaling : int { None, Linear, SquareRoot };
inline constexpr std::array<std::string_view, 3> batch_scaling_names{"none", "linear", "sqrt"};
double factor(BatchScaling scaling, std::int64_t batch, std::int64_t reference);

}  // namespace stratplan
