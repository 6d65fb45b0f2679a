#include "tuner/deciding.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "model/cost/op_cost.hpp"
#include "tuner/race.hpp"

namespace stratplan {
namespace {

Kernel pointwise(std::int64_t channels) {
  Kernel kernel{.kind = KernelKind::ConvolutionForward};
  kernel.x = kernel.y = {{1, channels, 1, 1, 4096}};
  return kernel;
}

/// A plan of kernels with this part of the step each, and no other error.
Prediction taking(double seconds, std::map<std::int64_t, double> share_by_channels,
                  double deviation) {
  Prediction prediction{{seconds}, {1}};
  for (const auto& [channels, share] : share_by_channels)
    prediction.errors[{ErrorKind::Kernel, pointwise(channels).key()}] = {share, deviation};
  return prediction;
}

Considered plan_of(const char* name, Prediction prediction) {
  Plan plan;
  plan.prediction = std::move(prediction);
  return {name, {}, plan, {}};
}

TEST(Deciding, ChancesAreOfMoreThanTheMargin) {
  const auto at = [](double ratio, double deviation) {
    return chance_of(taking(ratio, {{8, 1}}, deviation), taking(1, {}, 0));
  };
  EXPECT_NEAR(at(0.98, 0.1), 0.5, 1e-9);
  EXPECT_NEAR(at(0.98 * std::exp(0.1), 0.1), 0.1587, 1e-4);  // a standard deviation slower
  EXPECT_EQ(at(0.99, 0), 0);
  EXPECT_EQ(at(0.97, 0), 1);
}

TEST(Deciding, RivalsMayStillWin) {
  PlanningResult planning;
  planning.searched = {plan_of("searched", taking(1, {{8, 1}}, 0.1)),
                       plan_of("alike", taking(1.01, {{8, 1}}, 0.1))};
  planning.baselines = {plan_of("sample", taking(1.1, {{16, 1}}, 0.1)),
                        plan_of("H2", taking(1.02, {{16, 1}}, 0.1)),
                        plan_of("C2", taking(3, {{16, 1}}, 0.1))};
  planning.baselines.push_back(plan_of("does not fit", taking(1, {{16, 1}}, 0.1)));
  planning.baselines.back().infeasible = "too much memory";
  std::vector<std::string> names;
  for (const Considered* rival : rivals_of(planning)) names.push_back(rival->name);
  // The errors of "alike" are those of the best plan, and cancel.
  EXPECT_EQ(names, (std::vector<std::string>{"H2", "sample"}));
}

TEST(Deciding, WhatAllPlansShareIsWorthNothing) {
  MachineProfile machine;
  machine.device = {1e9, 1e9, {1e-6}, {1 << 30}};
  machine.speeds.add(pointwise(64), {1}, {1});
  const Prediction best = taking(1, {{8, 0.5}, {16, 0.3}, {32, 0.2}}, 0.3);
  const Considered rival = plan_of("rival", taking(1.1, {{8, 0.5 / 1.1}, {16, 0.1 / 1.1}}, 0.3));
  const std::vector<Kernel> missing{pointwise(8), pointwise(16), pointwise(32), pointwise(128)};
  const double doubt = cost_of(pointwise(8), machine).doubt;
  const auto open = open_kernels(best, {&rival}, missing, machine, {});
  ASSERT_EQ(open.size(), 4U);
  EXPECT_NEAR(open[0].worth.value, 0, 1e-12);
  EXPECT_NEAR(open[1].worth.value, 0.2 * doubt, 1e-12);
  EXPECT_NEAR(open[2].worth.value, 0.2 * doubt, 1e-12);
  EXPECT_EQ(open[3].worth.value, 0);
  EXPECT_NEAR(open[0].doubt.value, 0.5 * doubt, 1e-12);

  const auto decides = next_batch(open, {1e9});
  ASSERT_EQ(decides.size(), 2U);
  EXPECT_EQ(decides[0].kernel.key(), pointwise(16).key()) << "the same worth in less time";
  EXPECT_EQ(next_batch(open, {1e-9}).size(), 1U) << "at least one";
  const auto for_range = next_batch(open, {1e9}, true);
  ASSERT_EQ(for_range.size(), 3U);
  EXPECT_EQ(for_range[0].kernel.key(), pointwise(8).key());
}

TEST(Deciding, ThePaceOfMeasuringIsLearnt) {
  MeasuringPace pace;
  pace.learn({0.1}, 10, {2.2});  // ten kernels: 0.2 s of preparation, and 20 runs
  EXPECT_NEAR(pace.of({0.5}).value, 10.02, 1e-9);
}

TEST(Deciding, RepresentativesAreTheHeaviestOfEachFamily) {
  MachineProfile machine;
  machine.device = {1e9, 1e9, {1e-6}, {1 << 30}};
  std::vector<Program> programs(1);
  std::vector<Kernel> missing;
  for (const std::int64_t channels : {8, 32, 16}) {
    missing.push_back(pointwise(channels));
    programs[0].ops.push_back({});
    programs[0].ops.back().body = ComputeOp{pointwise(channels), {}, {}};
  }
  const auto keys = [&](int enough) {
    std::vector<std::string> chosen;
    for (const Kernel& kernel : representatives(programs, missing, machine, enough))
      chosen.push_back(kernel.key());
    return chosen;
  };
  EXPECT_EQ(keys(2), (std::vector<std::string>{pointwise(32).key(), pointwise(16).key()}));
  machine.speeds.add(pointwise(64), {1}, {1});
  EXPECT_EQ(keys(2), (std::vector<std::string>{pointwise(32).key()}));
  EXPECT_TRUE(keys(1).empty());
}

TEST(Race, APlanLosesBeyondNoiseAlone) {
  const auto measured = [](double p10, double median, double p90, std::size_t rounds = 1) {
    Measured result;
    result.rounds.assign(rounds, {median});
    result.p10 = {p10};
    result.median = {median};
    result.p90 = {p90};
    return result;
  };
  const Measured fastest = measured(0.98, 1, 1.03);
  EXPECT_TRUE(has_lost(measured(1.05, 1.1, 1.2), fastest));
  EXPECT_FALSE(has_lost(measured(1.02, 1.1, 1.2), fastest)) << "their steps overlap";
  EXPECT_FALSE(has_lost(measured(1.011, 1.015, 1.02), measured(1, 1, 1.01))) << "within 2 %";
  EXPECT_TRUE(has_lost(measured(1.02, 1.2, 1.4), fastest)) << "a machine drifts less";
  EXPECT_TRUE(has_lost(measured(1.02, 1.1, 1.2, 2), measured(0.98, 1, 1.03, 2)))
      << "it drifts less from two rounds to two others";
}

}  // namespace
}  // namespace stratplan
