// Random errors have the size of rounding errors, and move no value across a jump.
#include "runtime/verify/random_rounding.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/partition/lowering/lower.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/exec/trainer.hpp"
#include "runtime/verify/decisions.hpp"
#include "support/networks.hpp"

namespace stratplan::random_rounding_test {
namespace {

/// The longest sums have 3 * 6 * 6 = 108 terms (conv1, over samples and positions) and 8 * 6 * 6 =
/// 288 terms (fc3, over its inputs).
Network network() {
  test::NetworkBuilder net(3);
  const Window same{.kernel = 3, .pad_before = 1, .pad_after = 1};
  const LayerIndex x = net.clip(net.convolution(net.input({2, 1, 6, 6}), 8, same), 0, 0.5);
  return net.finish_with_loss(net.fully_connected(x, 4, false));
}

Program program(DataType activations) {
  Execution execution;
  execution.fuse = false;
  execution.precision.activations = activations;
  const Network of = network();
  return lower(of, LayerDecompositions(of.layers.size()), execution, 0);
}

TEST(RoundingErrors, FollowFromTheLongestSumsAndTheStoredType) {
  struct Row {
    const char* buffer;
    DataType activations;
    double error;
  };
  constexpr double u = 0x1p-24;
  const Row rows[] = {
      {"input0->conv1", DataType::F32, u * std::sqrt(108)},  // read by the convolution
      {"conv1.y", DataType::F32, u * std::sqrt(108)},        // and by the limits
      {"clip2.y", DataType::F32, u * std::sqrt(288)},        // read by the fully connected layer
      {"fc3.y", DataType::F32, u * std::sqrt(288)},          // and by the loss
      {"d clip2.x", DataType::F32, u * std::sqrt(108)},      // summed over samples and positions
      {"clip2.y", DataType::BF16, std::hypot(0x1p-8, u * std::sqrt(288))},
      {"clip2.y", DataType::F16, std::hypot(0x1p-11, u * std::sqrt(288))},
      {"conv1.weights", DataType::F32, 0},
      {"d conv1.weights", DataType::F32, 0},
  };
  for (const Row& row : rows) {
    const Program of = program(row.activations);
    const std::vector<double> errors = rounding_errors(network(), of);
    bool found = false;
    for (std::size_t i = 0; i < errors.size(); ++i) {
      if (of.buffers[i].name != row.buffer) continue;
      EXPECT_DOUBLE_EQ(errors[i], row.error) << row.buffer;
      found = true;
    }
    EXPECT_TRUE(found) << row.buffer;
  }
}

/// Runs the first step, and disturbs what the op writes that writes `buffer`. Returns the values
/// before and after that.
std::pair<std::vector<float>, std::vector<float>> disturbed(const std::string& buffer,
                                                            std::uint64_t draw) {
  std::pair<std::vector<float>, std::vector<float>> values;
  run_loopback(1, [&](Communicator& communicator) {
    const Network of = network();
    const Program ops = program(DataType::F32);
    const std::vector<Decision> decisions = decisions_of(ops, of);
    const auto backend = make_reference_backend();
    SyntheticData data(1);
    Executor executor(of, ops, *backend, communicator, data, {});
    initialize_parameters(of, ops, 1, executor);
    RandomRounding rounding(of, ops, draw);
    executor.run(0, [&](std::size_t op) {
      for (const BufferId written : ops.ops[op].writes) {
        if (ops.buffer(written).name != buffer) continue;
        values.first = executor.floats(written);
        rounding.after(op, decisions, executor);
        values.second = executor.floats(written);
      }
    });
  });
  return values;
}

TEST(RandomRounding, ErrorsHaveTheirSizeAndNoMean) {
  const auto [before, after] = disturbed("conv1.y", 1);
  ASSERT_EQ(before.size(), 3U * 8 * 6 * 6);
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double d = (static_cast<double>(after[i]) - before[i]) / before[i];
    sum += d;
    squares += d * d;
  }
  const double count = static_cast<double>(before.size()), expected = 0x1p-24 * std::sqrt(108);
  EXPECT_NEAR(std::sqrt(squares / count), expected, 0.1 * expected);
  EXPECT_LT(std::abs(sum / count), 4 * expected / std::sqrt(count));
}

TEST(RandomRounding, DrawsDifferAndRepeat) {
  EXPECT_EQ(disturbed("conv1.y", 1), disturbed("conv1.y", 1));
  EXPECT_NE(disturbed("conv1.y", 1).second, disturbed("conv1.y", 2).second);
}

TEST(RandomRounding, NoValueCrossesAJump) {
  const auto [before, after] = disturbed("clip2.y", 1);
  EXPECT_NE(before, after);
  EXPECT_GT(std::ranges::count(before, 0.5F), 0) << "this test shows nothing";
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i] > 0, after[i] > 0);
    EXPECT_EQ(before[i] < 0.5F, after[i] < 0.5F);
  }
}

}  // namespace
}  // namespace stratplan::random_rounding_test
