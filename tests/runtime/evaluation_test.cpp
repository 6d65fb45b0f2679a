// Evaluation gives the same result with any plan, and counts correct predictions.
#include "runtime/exec/evaluation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"
#include "runtime/comm/loopback.hpp"
#include "support/networks.hpp"

namespace stratplan {
namespace {

/// A source whose samples are ones. The labels of the first three samples are 1, all others 0.
class CountedLabels final : public DataSource {
 public:
  std::span<const std::byte> load(const LoadOp& load, std::int64_t step) override {
    Region region = load.region;
    if (load.what == LoadOp::What::Labels) region[Axis::C] = {0, 1};
    contents_.resize(4 * static_cast<std::size_t>(region.elements()));
    std::int64_t i = 0;
    for (std::int64_t n = region[Axis::N].begin; n < region[Axis::N].end; ++n)
      for (std::int64_t rest = 0; rest < region.elements() / region[Axis::N].size(); ++rest, ++i) {
        const float sample = 1;
        const std::int32_t label = n + 4 * step < 3 ? 1 : 0;
        std::memcpy(contents_.data() + 4 * i,
                    load.what == LoadOp::What::Labels ? static_cast<const void*>(&label) : &sample,
                    4);
      }
    return contents_;
  }

 private:
  std::vector<std::byte> contents_;
};

Evaluation evaluated(const Network& network, const char* grid, std::int64_t batches) {
  const LayerDecompositions decompositions =
      uniform_plan(network, Decomposition::parse(grid)).layers;
  Evaluation found;
  run_loopback(decompositions.back().grid.ranks(), [&](Communicator& communicator) {
    const auto backend = make_reference_backend();
    CountedLabels data;
    const Program program =
        lower_inference(network, decompositions, Execution{}, communicator.rank());
    Executor executor(network, program, *backend, communicator, data, {});
    for (const ParameterSlice& slice : program.parameters) {  // filter f multiplies the input by f
      std::vector<float> values(static_cast<std::size_t>(slice.region.elements()));
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(slice.region[Axis::N].begin + static_cast<std::int64_t>(i));
      executor.upload(slice.value, values.data());
    }
    const Evaluation mine = evaluate(network, program, executor, communicator, batches);
    if (communicator.rank() == 0) found = mine;
  });
  return found;
}

// The second of two channels is always the greater one. So the prediction is right for 3 of the
// first 4 samples, and for no later one.
TEST(Evaluation, CountsWhereTheLabelsChannelIsTheGreatest) {
  test::NetworkBuilder net(4);
  net.cross_entropy(net.convolution(net.input({1, 1, 4, 6}), 2, Window{}));
  const Network network = net.finish();
  const double right = std::log1p(std::exp(-1.0)),
               wrong = std::log1p(std::exp(1.0));  // -log softmax of (0, 1)
  for (const char* grid : {"N1", "N2", "N4", "H2 W2", "N3", "R2", "N2 R2", "F2"}) {
    SCOPED_TRACE(grid);
    const Evaluation first = evaluated(network, grid, 1), all = evaluated(network, grid, 5);
    EXPECT_EQ(first.samples, 4);
    EXPECT_EQ(first.losses.at(0).accuracy, 0.75);
    EXPECT_NEAR(first.loss, (3 * right + wrong) / 4, 1e-6);
    EXPECT_EQ(all.samples, 20);
    EXPECT_EQ(all.losses.at(0).accuracy, 0.15);
    EXPECT_NEAR(all.loss, (3 * right + 17 * wrong) / 20, 1e-6);
  }
}

// Where the label 0 does not count, all predictions are right in the first batch. None counts
// later.
TEST(Evaluation, LeavesOutLabelsThatDoNotCount) {
  test::NetworkBuilder net(4);
  net.cross_entropy(net.convolution(net.input({1, 1, 4, 6}), 2, Window{}), {.ignore_index = 0});
  const Network network = net.finish();
  for (const char* grid : {"N1", "N2", "H2 W2", "R2"}) {
    SCOPED_TRACE(grid);
    const Evaluation first = evaluated(network, grid, 1), all = evaluated(network, grid, 2);
    EXPECT_EQ(first.losses.at(0).accuracy, 1);
    EXPECT_NEAR(first.loss, std::log1p(std::exp(-1.0)), 1e-6);
    EXPECT_EQ(all.losses.at(0).accuracy, 1);
    EXPECT_NEAR(all.loss, std::log1p(std::exp(-1.0)) / 2, 1e-6);
  }
}

TEST(Evaluation, WithoutLabelsThereIsNoAccuracy) {
  test::NetworkBuilder net(4);
  const Network network =
      net.finish_with_loss(net.convolution(net.input({1, 1, 4, 6}), 2, Window{}));
  EXPECT_FALSE(evaluated(network, "N2", 2).losses.at(0).accuracy.has_value());
}

}  // namespace
}  // namespace stratplan
