// Running statistics of batch normalization are the same with any plan, and so are the results of
// inference with them.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "model/partition/lowering/lower.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/exec/trainer.hpp"
#include "support/networks.hpp"

namespace stratplan::running_statistics_test {
namespace {

/// 7 samples in sets of 3: the last set is a single sample, and sets straddle ranks.
Network network_with_running_statistics() {
  test::NetworkBuilder net(7, 3);
  const LayerIndex y =
      net.relu(net.batch_norm(net.convolution(net.input({3, 1, 5, 4}), 6, Window{})));
  Network network = net.finish_with_loss(net.dropout(
      net.batch_norm(net.convolution(y, 4, Window{.kernel = 3, .pad_before = 1, .pad_after = 1}))));
  network.running_momentum = 0.1;
  return network;
}

LayerDecompositions everywhere(const Network& network, const char* grid) {
  LayerDecompositions decompositions;
  for (const Layer& layer : network.layers)
    decompositions.push_back(layer.kind == LayerKind::Input
                                 ? Decomposition{}
                                 : nearest_legal(layer, Decomposition::parse(grid)).decomposition);
  return decompositions;
}

/// Copies the trained parameters and statistics to a program for inference.
void hand_over(const Program& trained, Executor& from, const Program& program, Executor& to) {
  const auto move = [&](BufferId source, BufferId destination) {
    std::vector<float> values(static_cast<std::size_t>(trained.buffer(source).region.elements()));
    from.download(source, values.data());
    to.upload(destination, values.data());
  };
  for (std::size_t i = 0; i < trained.parameters.size(); ++i)
    move(trained.parameters[i].value, program.parameters[i].value);
  for (std::size_t i = 0; i < trained.running.size(); ++i)
    move(trained.running[i].value, program.running[i].value);
}

struct Outcome {
  /// per normalization: means, then variances, of all channels
  std::vector<std::vector<float>> running;
  double loss = 0;  ///< of inference
};

/// Copies a rank's channels into the whole tensor. Copies from other ranks must hold the same
/// numbers.
void place(const RunningStatistics& statistics, const std::vector<float>& values,
           std::vector<float>& whole) {
  const auto channels = static_cast<std::size_t>(statistics.global[Axis::C]),
             own = values.size() / 2;
  whole.resize(2 * channels, NAN);
  for (std::size_t i = 0; i < values.size(); ++i) {
    float& at = whole[i / own * channels +
                      static_cast<std::size_t>(statistics.region[Axis::C].begin) + i % own];
    EXPECT_TRUE(std::isnan(at) || at == values[i])
        << at << " on one rank, " << values[i] << " on another";
    at = values[i];
  }
}

Outcome train_and_infer(const Network& network, const char* grid) {
  const LayerDecompositions decompositions = everywhere(network, grid);
  Outcome outcome;
  std::mutex mutex;
  run_loopback(decompositions.back().grid.ranks(), [&](Communicator& communicator) {
    const auto backend = make_reference_backend();
    SyntheticData data(1);
    const Program program = lower(network, decompositions, Execution{}, communicator.rank());
    const Program inference =
        lower_inference(network, decompositions, Execution{}, communicator.rank());
    Executor executor(network, program, *backend, communicator, data, {}),
        inferring(network, inference, *backend, communicator, data, {});
    initialize_parameters(network, program, 1, executor);
    for (int step = 0; step < 3; ++step) executor.run(step);
    hand_over(program, executor, inference, inferring);
    inferring.poison();
    inferring.run(0);
    const double loss = inferring.loss();
    const std::scoped_lock lock(mutex);
    outcome.loss = loss;
    outcome.running.resize(program.running.size());
    for (std::size_t i = 0; i < program.running.size(); ++i) {
      std::vector<float> values(static_cast<std::size_t>(2 * program.running[i].region.elements()));
      executor.download(program.running[i].value, values.data());
      place(program.running[i], values, outcome.running[i]);
    }
  });
  return outcome;
}

TEST(RunningStatistics, AreTheSameOnAnyPlan) {
  const Network network = network_with_running_statistics();
  const Outcome undivided = train_and_infer(network, "N1");
  ASSERT_EQ(undivided.running.size(), 2U);
  for (const char* grid : {"N3", "N7", "H2", "N2 W2", "C2", "F2", "R2", "N2 C2"}) {
    SCOPED_TRACE(grid);
    const Outcome divided = train_and_infer(network, grid);
    EXPECT_NEAR(divided.loss, undivided.loss, 1e-5 * undivided.loss);
    for (std::size_t layer = 0; layer < 2; ++layer) {
      ASSERT_EQ(divided.running[layer].size(), undivided.running[layer].size());
      for (std::size_t i = 0; i < undivided.running[layer].size(); ++i)
        EXPECT_NEAR(divided.running[layer][i], undivided.running[layer][i], 1e-5);
    }
  }
}

/// Batch 8 in micro-batches. Sets of 2 samples fit into halves and quarters of it.
Network network_in_parts(std::int64_t micro_batches) {
  test::NetworkBuilder net(8 / micro_batches, 2);
  const Window same{.kernel = 3, .pad_before = 1, .pad_after = 1};
  const LayerIndex y = net.relu(net.batch_norm(net.convolution(net.input({3, 1, 5, 4}), 6, same)));
  Network network = net.finish_with_loss(net.batch_norm(net.convolution(y, 4, Window{})));
  network.batch = 8;
  network.training.micro_batches = micro_batches;
  network.running_momentum = 0.1;
  return network;
}

TEST(RunningStatistics, AreTheSameInMicroBatches) {
  const Outcome whole = train_and_infer(network_in_parts(1), "N1");
  for (const std::int64_t parts : {2, 4})
    for (const char* grid : {"N1", "N2", "H2", "C2"}) {
      SCOPED_TRACE(grid);
      const Outcome in_parts = train_and_infer(network_in_parts(parts), grid);
      for (std::size_t layer = 0; layer < 2; ++layer)
        for (std::size_t i = 0; i < whole.running[layer].size(); ++i)
          EXPECT_NEAR(in_parts.running[layer][i], whole.running[layer][i], 1e-5) << parts;
    }
}

TEST(RunningStatistics, AreNotKeptUnlessAskedFor) {
  Network network = network_with_running_statistics();
  network.running_momentum = 0;
  EXPECT_TRUE(lower(network, everywhere(network, "N2"), Execution{}, 0).running.empty());
}

TEST(RunningStatistics, InferenceDoesNoMoreThanTheForwardPhase) {
  const Network network = network_with_running_statistics();
  const Program program = lower_inference(network, everywhere(network, "N2"), Execution{}, 0);
  for (const Op& op : program.ops) {
    EXPECT_EQ(op.phase, Phase::Forward);
    const auto* compute = std::get_if<ComputeOp>(&op.body);
    const KernelKind kind = compute ? compute->kernel.kind : KernelKind::Fill;
    EXPECT_TRUE(kind != KernelKind::Dropout && kind != KernelKind::BatchNormStatistics)
        << name_of(kind);
  }
  EXPECT_EQ(program.parameters.front().gradient, -1);
}

}  // namespace
}  // namespace stratplan::running_statistics_test
