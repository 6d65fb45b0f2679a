// Learning rates by step. The expected values of step and cosine are PyTorch's StepLR(3, 0.5) and
// CosineAnnealingLR(8).
#include "runtime/exec/schedule.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace stratplan::schedule_test {
namespace {

struct Case {
  const char* name;
  Schedule schedule;
  std::vector<double> factors;  ///< of steps 0, 1, ...
};

const std::vector<Case> cases{
    {"constant", {}, {1, 1, 1}},
    {"warm-up, then constant", {.warmup_steps = 4}, {0.25, 0.5, 0.75, 1, 1, 1}},
    {"step",
     {.kind = ScheduleKind::Step, .step_size = 3, .gamma = 0.5},
     {1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25}},
    {"step behind warm-up",
     {.kind = ScheduleKind::Step, .warmup_steps = 2, .step_size = 2, .gamma = 0.1},
     {0.5, 1, 1, 1, 0.1, 0.1, 0.01}},
    {"cosine",
     {.kind = ScheduleKind::Cosine, .steps = 8},
     {1, 0.961939766, 0.853553391, 0.691341716, 0.5, 0.308658284, 0.146446609, 0.0380602337, 0, 0}},
    {"cosine behind warm-up",
     {.kind = ScheduleKind::Cosine, .warmup_steps = 2, .steps = 6},
     {0.5, 1, 1, 0.853553391, 0.5, 0.146446609, 0}},
    {"linear", {.kind = ScheduleKind::Polynomial, .steps = 4}, {1, 0.75, 0.5, 0.25, 0, 0}},
    {"squared",
     {.kind = ScheduleKind::Polynomial, .steps = 4, .power = 2},
     {1, 0.5625, 0.25, 0.0625, 0}},
    {"nothing but warm-up",
     {.kind = ScheduleKind::Polynomial, .warmup_steps = 2, .steps = 2},
     {0.5, 1, 1, 0}},
};

TEST(Schedule, FactorOfEachStep) {
  for (const Case& c : cases)
    for (std::size_t step = 0; step < c.factors.size(); ++step)
      EXPECT_NEAR(factor(c.schedule, static_cast<std::int64_t>(step)), c.factors[step], 1e-9)
          << c.name << ", step " << step;
}

TEST(Schedule, FollowsTheBatch) {
  EXPECT_EQ(factor(BatchScaling::None, 1024, 256), 1);
  EXPECT_EQ(factor(BatchScaling::Linear, 1024, 256), 4);
  EXPECT_EQ(factor(BatchScaling::SquareRoot, 1024, 256), 2);
  EXPECT_EQ(factor(BatchScaling::Linear, 64, 256), 0.25);
}

}  // namespace
}  // namespace stratplan::schedule_test
