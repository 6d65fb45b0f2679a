#include "report/scaling/scaling.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "model/base/json/json.hpp"
#include "planner/small_cases.hpp"
#include "report/scaling/scaling_figures.hpp"

namespace stratplan {
namespace {

using testing::Contains;
using testing::HasSubstr;

ScalingRequest request_for(std::vector<int> ranks) {
  ScalingRequest request;
  request.source = "tiny";
  request.ranks = std::move(ranks);
  request.execution = [](const Network&) { return Execution{}; };
  request.machine = [](int) { return test::small_machine(); };
  return request;
}

TEST(Scaling, StrongScalingKeepsTheBatch) {
  const Scaling scaling = scale(request_for({1, 2, 4}));
  EXPECT_FALSE(scaling.weak);
  EXPECT_EQ(scaling.network, "tiny");
  EXPECT_THAT(plans_of(scaling),
              testing::AllOf(Contains("best"), Contains("sample"), Contains("H")));
  for (const ScalingPoint& point : scaling.points)
    EXPECT_EQ(point.batch, 4) << point.plan << " on " << point.ranks;
  EXPECT_EQ(scaling.points.front().plan, "best");
  EXPECT_EQ(scaling.points.front().efficiency, 1);
}

TEST(Scaling, WeakScalingKeepsTheSamplesPerRank) {
  struct Row {
    double samples_per_rank;
    std::vector<std::int64_t> batches;  ///< on 1, 2 and 4 ranks; 0: no point
  };
  for (const Row& row : {Row{2, {2, 4, 8}}, Row{0.5, {0, 1, 2}}}) {
    ScalingRequest request = request_for({1, 2, 4});
    request.samples_per_rank = row.samples_per_rank;
    std::vector<std::int64_t> batches;
    for (const ScalingPoint& point : scale(request).points) {
      if (point.plan != "best") continue;
      batches.push_back(point.batch);
      EXPECT_EQ(point.prediction.has_value(), point.batch > 0) << point.remark;
    }
    EXPECT_EQ(batches, row.batches);
  }
}

TEST(Scaling, NoBaselineBeatsTheBest) {
  const Scaling scaling = scale(request_for({2, 4}));
  for (const ScalingPoint& point : scaling.points) {
    if (!point.prediction) continue;
    const auto best = std::ranges::find_if(scaling.points, [&](const ScalingPoint& other) {
      return other.plan == "best" && other.ranks == point.ranks;
    });
    EXPECT_LE(best->prediction->step, point.prediction->step * (1 + 1e-9))
        << point.plan << " on " << point.ranks;
    EXPECT_GE(best->efficiency, point.efficiency * (1 - 1e-9));
  }
}

TEST(Scaling, SaysWhyThereIsNoPlan) {
  ScalingRequest request = request_for({2});
  request.memory_limit = Bytes{100};
  const Scaling scaling = scale(request);
  ASSERT_EQ(scaling.points.size(), 1U);
  EXPECT_FALSE(scaling.points.front().prediction);
  EXPECT_THAT(scaling.points.front().remark, HasSubstr("does not fit"));
  EXPECT_THAT(to_text(scaling_table(scaling)), HasSubstr("does not fit"));
}

TEST(Scaling, EveryFigureHoldsTheSamePoints) {
  ScalingRequest request = request_for({1, 2});
  request.per_layer = true;
  const Scaling scaling = scale(request);
  EXPECT_EQ(scaling_table(scaling).rows.size(), scaling.points.size());
  const Table layers = layer_scaling_table(scaling);
  EXPECT_EQ(layers.rows.size(), 9U) << "all layers but the input";
  EXPECT_EQ(layers.columns.size(), 5U) << "name, two numbers of ranks, efficiency, decomposition";

  std::istringstream csv(to_csv({scaling}));
  std::size_t lines = 0;
  std::string line;
  while (std::getline(csv, line)) {
    ++lines;
    if (line.find('"') == std::string::npos) {
      EXPECT_EQ(std::ranges::count(line, ','), 18) << line;
    }
  }
  EXPECT_EQ(lines, 1 + scaling.points.size() + 2 * 9);

  const std::vector<Chart> charts = charts_of(scaling);
  ASSERT_EQ(charts.size(), 2U);
  const auto best = std::ranges::find(charts.front().lines, "best", &ChartLine::name);
  ASSERT_NE(best, charts.front().lines.end());
  EXPECT_EQ(best->points.size(), 2U);
  ASSERT_EQ(best->band.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(is_within(best->points[i].second, best->band[i]));
  for (const ScalingPoint& point : scaling.points)
    if (point.prediction) {
      EXPECT_TRUE(is_within(point.efficiency, *point.efficiency_range)) << point.plan;
    }
  EXPECT_EQ(to_json(scaling).at("points").size(), scaling.points.size());
}

TEST(Scaling, QuotesWhatCsvWouldSplit) {
  Scaling scaling{
      "net", "machine", false, {{.plan = "best", .ranks = 2, .batch = 4, .remark = "a, \"b\""}}};
  EXPECT_THAT(to_csv({scaling}), HasSubstr("strong,best,,,2,0,4,,,,,\"a, \"\"b\"\"\",,,,,,,\n"));
}

}  // namespace
}  // namespace stratplan
