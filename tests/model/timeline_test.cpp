#include "model/plan/timeline.hpp"

#include <gtest/gtest.h>

namespace stratplan {
namespace {

TEST(Timing, QuantilesLieBetweenTheNearestSamples) {
  struct Row {
    std::vector<Seconds> steps;
    double p10, median, p90;
  };
  const Row table[] = {
      {{{2}}, 2, 2, 2},
      {{{3}, {1}}, 1.2, 2, 2.8},
      {{{5}, {1}, {3}}, 1.4, 3, 4.6},
      {{{11}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {1}}, 2, 6, 10},
  };
  for (const Row& row : table) {
    const Timing timing{.steps = row.steps, .losses = {}, .op_medians = {}};
    EXPECT_DOUBLE_EQ(timing.quantile(0.1).value, row.p10);
    EXPECT_DOUBLE_EQ(timing.median().value, row.median);
    EXPECT_DOUBLE_EQ(timing.quantile(0.9).value, row.p90);
  }
}

}  // namespace
}  // namespace stratplan
