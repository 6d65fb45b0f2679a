#pragma once
// The learning rate of each training step. It is the initial rate, scaled with the batch, times the
// schedule's factor.
#include <array>
#include <cstdint>
#include <string_view>

namespace stratplan {

enum class ScheduleKind : int { Constant, Step, Cosine, Polynomial };
inline constexpr std::array<std::string_view, 4> schedule_names{"constant", "step", "cosine",
                                                                "polynomial"};

/// During warm-up the factor rises linearly, (step + 1) / warmup_steps (Goyal et al., "Accurate,
/// large minibatch SGD", 2017). After warm-up t counts from 0, and span = steps - warmup_steps:
///   Constant    1
///   Step        gamma^floor(t / step_size)
///   Cosine      (1 + cos(pi t / span)) / 2; 0 from t = span on
///   Polynomial  (1 - t / span)^power; 0 from t = span on
struct Schedule {
  ScheduleKind kind = ScheduleKind::Constant;
  std::int64_t warmup_steps = 0;
  std::int64_t steps = 0;  ///< number of steps of the whole training, warm-up included
  std::int64_t step_size = 1;
  double gamma = 0.1;
  double power = 1;
};

/// Returns the schedule's factor on the learning rate in training step `step`, counted from 0.
double factor(const Schedule& schedule, std::int64_t step);

/// The factor that adapts a learning rate, tuned for `reference` samples per step, to another
/// batch:
///   None        1
///   Linear      batch / reference
///   SquareRoot  sqrt(batch / reference)
enum class BatchScaling : int { None, Linear, SquareRoot };
inline constexpr std::array<std::string_view, 3> batch_scaling_names{"none", "linear", "sqrt"};
double factor(BatchScaling scaling, std::int64_t batch, std::int64_t reference);

}  // namespace stratplan
