// Compares predicted steps of growing jobs with published ones. One step on one GPU anchors each
// series, so only communication and waiting are judged.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/network/network.hpp"
#include "planner/anchors.hpp"
#include "planner/prediction.hpp"

namespace stratplan {
namespace {

struct Series {
  const char* network;
  std::int64_t batch;                         ///< per GPU
  double alone;                               ///< seconds of a step on one GPU
  std::vector<std::pair<int, double>> steps;  ///< seconds by number of GPUs
};

/// ABCI, logs of ParaDL (Kahira et al.): weak scaling without overlap.
const Series abci[] = {
    {"vgg16",
     32,
     .261,
     {{4, .314},
      {8, .453},
      {16, .454},
      {32, .473},
      {64, .477},
      {128, .486},
      {256, .499},
      {512, .542}}},
    {"resnet50", 64, .183, {{2, .189}, {4, .189}, {8, .208}, {16, .203}, {32, .211}, {1024, .235}}},
};

double predicted_step(const Series& series, int ranks, const MachineProfile& machine) {
  const Network network =
      read_network(series.network, {.batch = series.batch * ranks, .input_size = {}});
  Plan plan = uniform_plan(network, Decomposition::parse(fmt::format("N{}", ranks)));
  plan.execution = as_run_by(machine.software, plan.execution);
  return predict(plan, network, machine).step.value;
}

/// ResNet-50 was measured to be faster on 16 GPUs than on 8, so this point is 10.1 % off. All
/// others are within 8 %.
TEST(WeakScaling, OfAbciIsMet) {
  double sum = 0;
  int points = 0;
  std::string text;
  for (const Series& series : abci) {
    MachineProfile machine = read_machine("abci", 1, 1, read_software("chainermn"));
    Anchor anchor;
    anchor.network = series.network;
    anchor.batch = series.batch;
    anchor.software = machine.software.name;
    anchor.step = {series.alone};
    set_constants(machine, fit_anchors({anchor}, machine).after);
    for (const auto& [ranks, seconds] : series.steps) {
      const double error = predicted_step(series, ranks, machine) / seconds - 1;
      EXPECT_LE(std::abs(error), 0.105) << series.network << " on " << ranks;
      sum += std::abs(error);
      ++points;
      text += fmt::format("{} on {}: {:+.1f} %\n", series.network, ranks, 100 * error);
    }
  }
  EXPECT_LE(sum / points, 0.05) << text;
}

TEST(WeakScaling, IsIdealOnlyIfAskedFor) {
  const MachineProfile machine = read_machine("dgx-a100", 1, 1, read_software("pytorch-eager"));
  const MachineProfile ideal = with_ideal_scaling(machine);
  const Series series{"resnet50", 64, 0, {}};
  const double one = predicted_step(series, 1, machine);
  EXPECT_EQ(predicted_step(series, 1, ideal), one);
  EXPECT_LT(predicted_step(series, 64, ideal), predicted_step(series, 64, machine));
  EXPECT_GE(predicted_step(series, 64, ideal), one);
}

}  // namespace
}  // namespace stratplan
