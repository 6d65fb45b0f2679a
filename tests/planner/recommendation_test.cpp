#include "planner/recommendation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "planner/prediction.hpp"
#include "planner/small_cases.hpp"

namespace stratplan::recommendation_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Network net() { return test::small_resnet(4); }

Plan plan_with(const char* decomposition) {
  return uniform_plan(net(), Decomposition::parse(decomposition));
}

/// A prediction with one error of its own and one that all have.
Prediction taking(double seconds, const char* own = "", double deviation = 0) {
  Prediction prediction{{seconds}, {1 << 20}};
  prediction.errors[{ErrorKind::Device, "common"}] = {1, 0.5};
  if (deviation > 0) prediction.errors[{ErrorKind::Kernel, own}] = {1, deviation};
  return prediction;
}

TEST(Tie, IsADoubtAboutTheOrder) {
  struct Row {
    const char* name;
    Prediction a, b;
    bool tie;
  };
  const double close = std::exp(0.84 * 0.1), apart = std::exp(0.85 * 0.1);
  const Row rows[] = {
      // name, a, b, tie: the probability is 0.8 at 0.8416 standard deviations
      {"nothing of its own", taking(1), taking(1.001), false},
      {"close", taking(1, "a", 0.1), taking(close), true},
      {"apart", taking(1, "a", 0.1), taking(apart), false},
      {"each its own", taking(1, "a", 0.1), taking(apart, "b", 0.1), true},
      {"the same", taking(1, "a", 0.1), taking(apart, "a", 0.1), false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(is_tie(row.a, row.b), row.tie) << row.name;
    EXPECT_EQ(is_tie(row.b, row.a), row.tie) << row.name;
  }
}

TEST(Simpler, TheFirstDifferenceDecides) {
  Plan sharded = plan_with("N4"), recomputing = plan_with("N4"), parts = plan_with("N4");
  sharded.execution.sharding = 1;
  recomputing.execution.recompute = {"conv"};
  parts.overrides.training.micro_batches = 2;
  struct Row {
    const char* name;
    Plan simple, other;
  };
  const Row rows[] = {
      // name, the simpler plan, the other
      {"one rank", plan_with("N1"), plan_with("N4")},
      {"fewer dimensions", plan_with("C4"), plan_with("N2 F2")},
      {"no repeated work", plan_with("N4"), plan_with("N2 R2")},
      {"no sharding", plan_with("N4"), sharded},
      {"no recomputation", plan_with("N4"), recomputing},
      {"no micro-batches", plan_with("N4"), parts},
      {"samples", plan_with("N4"), plan_with("C4")},
      {"dimensions before saving", sharded, plan_with("N2 C2")},
  };
  for (const Row& row : rows) {
    EXPECT_TRUE(simpler(row.simple, row.other)) << row.name;
    EXPECT_FALSE(simpler(row.other, row.simple)) << row.name;
  }
  EXPECT_FALSE(simpler(plan_with("N4"), plan_with("N4")));
}

Considered considered(const char* name, const char* decomposition, Prediction prediction) {
  Plan plan = plan_with(decomposition);
  plan.ranks = 4;
  plan.prediction = std::move(prediction);
  return {name, {}, std::move(plan), {}};
}

TEST(Recommend, TheSimplestOfThoseThatTieWithTheFastest) {
  PlanningResult result;
  result.searched = {considered("searched", "N2 C2", taking(1, "a", 0.1))};
  result.baselines = {considered("sample", "N4", taking(1.05, "b", 0.1)),
                      considered("C4", "C4", taking(1.02, "c", 0.1)),
                      considered("H4", "H4", taking(2, "d", 0.1))};
  recommend(result, 4);
  EXPECT_EQ(result.chosen, "sample");
  EXPECT_EQ(result.recommended.name, "recommended");
  EXPECT_EQ(result.fastest_step.value, 1);
  ASSERT_TRUE(result.tie);
  EXPECT_THAT(result.tie->plans, ElementsAre("searched", "C4", "sample"));
  EXPECT_EQ(result.tie->doubt, ErrorKind::Kernel);
  EXPECT_THAT(result.reranking, HasSubstr("\"sample\" is the simplest"));
  // The fastest plan is still worth measuring.
  EXPECT_EQ(plans_to_measure(result)[1], &*result.searched.front().plan);
}

TEST(Recommend, TheFastestWithoutATie) {
  PlanningResult result;
  result.searched = {considered("searched", "N2 C2", taking(1))};
  result.baselines = {considered("sample", "N4", taking(1.05))};
  recommend(result, 4);
  EXPECT_EQ(result.chosen, "searched");
  EXPECT_FALSE(result.tie);
  EXPECT_EQ(result.reranking, "");
}

TEST(Recommend, OnePlanUnderTwoNamesIsNoTie) {
  PlanningResult result;
  result.searched = {considered("searched", "N4", taking(1, "a", 0.1))};
  result.baselines = {considered("sample", "N4", taking(1, "a", 0.1))};
  recommend(result, 4);
  EXPECT_EQ(result.chosen, "searched");
  EXPECT_FALSE(result.tie);
}

}  // namespace
}  // namespace stratplan::recommendation_test
