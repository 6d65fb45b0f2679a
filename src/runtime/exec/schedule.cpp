#include "runtime/exec/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "model/base/assert.hpp"

namespace stratplan {

double factor(const Schedule& schedule, std::int64_t step) {
  if (step < schedule.warmup_steps)
    return static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps);
  const std::int64_t since = step - schedule.warmup_steps;
  const double span =
      static_cast<double>(std::max<std::int64_t>(schedule.steps - schedule.warmup_steps, 1));
  const double passed = std::min(1.0, static_cast<double>(since) / span);
  switch (schedule.kind) {
    case ScheduleKind::Constant: return 1;
    case ScheduleKind::Step:
      return std::pow(schedule.gamma, static_cast<double>(since / schedule.step_size));
    case ScheduleKind::Cosine: return (1 + std::cos(std::numbers::pi * passed)) / 2;
    case ScheduleKind::Polynomial: return std::pow(1 - passed, schedule.power);
  }
  SP_ASSERT(false, "schedule={}", static_cast<int>(schedule.kind));
  return 1;
}

double factor(BatchScaling scaling, std::int64_t batch, std::int64_t reference) {
  const double ratio = static_cast<double>(batch) / static_cast<double>(reference);
  switch (scaling) {
    case BatchScaling::None: return 1;
    case BatchScaling::Linear: return ratio;
    case BatchScaling::SquareRoot: return std::sqrt(ratio);
  }
  SP_ASSERT(false, "scaling={}", static_cast<int>(scaling));
  return 1;
}

}  // namespace stratplan
