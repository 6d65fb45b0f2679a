#include "model/base/statistics.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace stratplan {
namespace {

TEST(Statistics, QuantilesAreLinearBetweenSamples) {
  const std::vector<double> samples{4, 1, 3, 2, 5};
  struct Case {
    double fraction, value;
  };
  for (const auto& [fraction, value] :
       {Case{0, 1}, Case{0.1, 1.4}, Case{0.25, 2}, Case{0.5, 3}, Case{0.9, 4.6}, Case{1, 5}})
    EXPECT_DOUBLE_EQ(quantile(samples, fraction), value) << fraction;
  EXPECT_DOUBLE_EQ(median(std::vector<double>{1, 2}), 1.5);
  EXPECT_DOUBLE_EQ(median(std::vector<double>{7}), 7);
}

TEST(Statistics, AnOutlierDoesNotCountInTheError) {
  EXPECT_EQ(relative_error_of_median(std::vector<double>{1, 1, 1, 1, 100}), 0);
  EXPECT_GT(relative_error_of_median(std::vector<double>{1, 2, 1, 2, 1, 2}), 0.1);
}

}  // namespace
}  // namespace stratplan
