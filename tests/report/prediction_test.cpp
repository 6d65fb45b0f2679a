#include "report/prediction.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "planner/small_cases.hpp"

namespace stratplan {
namespace {

TEST(Prediction, CountsMeasuredKernels) {
  const Network network = test::small_mesh(2, {3, 1, 16, 16});
  MachineProfile machine = test::small_machine();
  const Plan plan = uniform_plan(network, Decomposition::parse("N2"));
  const PlanPrediction before = predict_plan(plan, network, machine);
  EXPECT_EQ(before.kernels.measured, 0U);
  EXPECT_GT(before.kernels.all, 1U);

  const auto& ops = before.programs.front().ops;
  const auto first = std::ranges::find_if(
      ops, [](const Op& op) { return std::holds_alternative<ComputeOp>(op.body); });
  machine.kernels[std::get<ComputeOp>(first->body).kernel.key()].median = {1e-3};
  const PlanPrediction after = predict_plan(plan, network, machine);
  EXPECT_EQ(after.kernels.measured, 1U);
  EXPECT_EQ(after.kernels.all, before.kernels.all);
  EXPECT_GE(after.layer_kernels[static_cast<std::size_t>(first->layer)].measured, 1U);
}

TEST(Prediction, SaysHowManyKernelsAreMeasured) {
  EXPECT_EQ(kernels_text({3, 0}), "3 estimated");
  EXPECT_EQ(kernels_text({3, 3}), "3 measured");
  EXPECT_EQ(kernels_text({3, 1}), "1 measured, 2 estimated");
}

TEST(Layers, OnlyLayersThatReadRowsOfOthersHaveHalos) {
  const Network network = test::small_mesh(2, {3, 1, 16, 16});
  std::string last;
  for (const Layer& layer : network.layers)
    if (layer.kind == LayerKind::Convolution) last = layer.name;
  Execution execution;
  execution.concurrent_streams = true;
  execution.overlapped_halos = {last};
  const auto text = [&](const char* decomposition) {
    const Plan plan = uniform_plan(network, Decomposition::parse(decomposition));
    return overlap_text(execution, network, plan.layers);
  };
  EXPECT_EQ(text("H2"),
            "communication goes on beside kernels; layers whose halo exchange overlaps computation "
            "of the interior: " +
                last);
  EXPECT_EQ(text("N2"),
            "communication goes on beside kernels; layers whose redistribution overlaps "
            "computation of the outputs that need none of it: " +
                last);
}

}  // namespace
}  // namespace stratplan
