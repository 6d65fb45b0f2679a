#include "profile/measure/statistics.hpp"

#include <gtest/gtest.h>

#include "profile/measure/stopping_rule.hpp"

namespace stratplan {
namespace {

TEST(Summarize, RanksAreAveragedNotMixed) {
  const Measurement measurement = summarize({{1, 2, 3}, {}, {11, 12, 13}});
  EXPECT_DOUBLE_EQ(measurement.median.value, 7);
  EXPECT_NEAR((measurement.p90 - measurement.p10).value, 1.6, 1e-12);
  EXPECT_EQ(measurement.samples, 3);
}

TEST(StoppingRule, Decides) {
  const StoppingRule rule{.least_samples = 5,
                          .least_expensive = 3,
                          .most_samples = 100,
                          .enough = {1},
                          .patience = {10},
                          .precision = 0.01};
  const std::vector<double> steady(5, 1.0), wild{1, 2, 1, 2, 1, 2, 1, 2};
  struct Case {
    const char* name;
    std::vector<double> samples;
    double spent;
    int further;
  };
  const std::vector<Case> cases{
      {"the first", {}, 0, 3},
      {"one short", {1, 1}, 100, 1},
      {"expensive", {1, 1, 1}, 11, 0},
      {"not so expensive", {1, 1, 1}, 5, 2},
      {"steady, time spent", steady, 1.5, 0},
      {"steady, but quick: as many again", steady, 0.25, 5},
      {"wild: as many again", wild, 1.5, 8},
      {"wild, but only one more is affordable", wild, 9, 1},
      {"wild, out of patience", wild, 10, 0},
      {"as many as allowed", std::vector<double>(100, 1.0), 0.5, 0},
      {"nearly as many as allowed", std::vector<double>(98, 1.0), 0.5, 2},
  };
  for (const Case& row : cases)
    EXPECT_EQ(rule.further_samples(row.samples, {row.spent}), row.further) << row.name;
}

}  // namespace
}  // namespace stratplan
