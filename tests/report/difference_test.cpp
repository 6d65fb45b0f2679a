#include "report/difference.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "planner/small_cases.hpp"

namespace stratplan {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

PlanAndNetwork planned(const char* decomposition, std::int64_t batch = 4) {
  NetworkOverrides overrides;
  overrides.batch = batch;
  PlanAndNetwork result;
  result.network = read_network("tiny", overrides);
  result.plan = uniform_plan(result.network, Decomposition::parse(decomposition));
  result.plan.network_source = "tiny";
  return result;
}

TEST(Diff, APlanAndItselfDifferInNothing) {
  const PlanAndNetwork same = planned("H2");
  const PlanSide side = side_of(same, test::small_machine());
  const Difference difference = compare_plans(side, side);
  EXPECT_THAT(difference.settings, IsEmpty());
  EXPECT_THAT(fold_neighbours(difference.layers), IsEmpty());
  EXPECT_EQ(difference.layers.size(), same.network.layers.size() - 1) << "all layers but the input";
}

TEST(Diff, NamesSettingsThatDiffer) {
  const PlanAndNetwork a = planned("N2");
  struct Row {
    const char* setting;
    const char* a;
    const char* b;
    void (*change)(Plan&);
  };
  const Row rows[] = {
      // setting, a, b, how
      {"communication beside kernels", "no", "yes",
       [](Plan& plan) { plan.execution.concurrent_streams = true; }},
      {"recomputed", "none", "conv1, relu1",
       [](Plan& plan) {
         plan.execution.recompute = {"conv1", "relu1"};
       }},
      {"sharding", "0", "2", [](Plan& plan) { plan.execution.sharding = 2; }},
      {"fused", "yes", "no", [](Plan& plan) { plan.execution.fuse = false; }},
      {"ranks offered", "1", "4", [](Plan& plan) { plan.ranks_offered = 4; }},
  };
  const MachineProfile machine = test::small_machine();
  for (const Row& row : rows) {
    PlanAndNetwork b = a;
    b.plan.ranks_offered = a.plan.ranks_offered;
    row.change(b.plan);
    const Difference difference = compare_plans(side_of(a, machine), side_of(b, machine));
    ASSERT_EQ(difference.settings.size(), 1U) << row.setting;
    EXPECT_EQ(difference.settings.front().setting, row.setting);
    if (std::string(row.setting) != "ranks offered") {
      EXPECT_EQ(difference.settings.front().a, row.a);
    }
    EXPECT_EQ(difference.settings.front().b, row.b);
    EXPECT_THAT(fold_neighbours(difference.layers), IsEmpty());
  }
}

TEST(Diff, RunsAddUpWhatTheirLayersTake) {
  const PlanAndNetwork a = planned("N2"), b = planned("H2");
  const MachineProfile machine = test::small_machine();
  const PlanSide side_a = side_of(a, machine), side_b = side_of(b, machine);
  const Difference difference = compare_plans(side_a, side_b);
  const std::vector<LayerDifference> runs = fold_neighbours(difference.layers);
  ASSERT_FALSE(runs.empty());
  EXPECT_EQ(runs.front().first, "conv1");
  EXPECT_EQ(runs.front().a, "N2");
  EXPECT_EQ(runs.front().b, "H2");
  Seconds in_runs{}, in_layers{};
  for (const LayerDifference& run : runs) in_runs += run.b_seconds;
  for (const LayerDifference& layer : difference.layers)
    if (layer.differs()) in_layers += layer.b_seconds;
  EXPECT_DOUBLE_EQ(in_runs.value, in_layers.value);
}

TEST(Diff, LayersThatOnlyOneHasStandAlone) {
  const PlanAndNetwork a = planned("N2");
  PlanAndNetwork b = a;
  b.network.layers[1].name = "first";
  const MachineProfile machine = test::small_machine();
  const auto runs = fold_neighbours(compare_plans(side_of(a, machine), side_of(b, machine)).layers);
  EXPECT_THAT(
      runs,
      ElementsAre(
          testing::AllOf(Field(&LayerDifference::first, "conv1"), Field(&LayerDifference::b, "")),
          testing::AllOf(Field(&LayerDifference::first, "first"), Field(&LayerDifference::a, ""))));
}

TEST(Diff, MemoryOfTheLayersIsThatOfTheProgram) {
  const PlanAndNetwork one = planned("H2");
  const PlanSide side = side_of(one, test::small_machine());
  const std::int64_t layers =
      std::accumulate(side.memory.begin(), side.memory.end(), std::int64_t{0},
                      [](std::int64_t sum, Bytes bytes) { return sum + bytes.value; });
  const MemoryUse& use = side.prediction.memory;
  EXPECT_GT(layers, 0);
  EXPECT_LE(layers, (use.persistent + use.fullest).value)
      << "memory that belongs to no layer comes on top";
  EXPECT_GE(static_cast<double>(layers),
            0.8 * static_cast<double>((use.persistent + use.fullest).value));
}

}  // namespace
}  // namespace stratplan
