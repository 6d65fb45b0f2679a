// A line of text that draws the course of the loss.
#include "report/loss_curve.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace stratplan {
namespace {

TEST(LossCurve, IsDrawnFromLowestToHighest) {
  struct Row {
    const char* what;
    std::vector<double> losses;
    const char* curve;
  };
  const Row rows[] = {
      {"nothing", {}, ""},
      {"one step", {3}, "▁"},
      {"a fall", {8, 7, 6, 5, 4, 3, 2, 1}, "█▇▆▅▄▃▂▁"},
      {"flat", {2, 2, 2}, "▁▁▁"},
      {"no number", {1, std::numeric_limits<double>::quiet_NaN(), 0}, "█?▁"},
  };
  for (const Row& row : rows) EXPECT_EQ(loss_curve(row.losses), row.curve) << row.what;
}

TEST(LossCurve, AveragesWhatDoesNotFit) { EXPECT_EQ(loss_curve({8, 8, 1, 1, 3, 5}, 3), "█▁▄"); }

}  // namespace
}  // namespace stratplan
