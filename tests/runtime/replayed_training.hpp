#pragma once
// A training in which everything changes that may change from step to step: data, rates, dropped
// elements. For tests of captured and replayed steps.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/networks.hpp"
#include "support/training.hpp"

namespace stratplan::test::replayed {

inline constexpr int steps = 5;

/// A network with dropout, whose random numbers change from step to step, and with running
/// statistics.
inline Network changing_network(OptimizerKind optimizer = OptimizerKind::Adam) {
  NetworkBuilder net(6, 3);
  const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  const LayerIndex x =
      net.dropout(net.relu(net.batch_norm(net.convolution(net.input({4, 1, 8, 8}), 8, same))));
  Network network = net.finish_with_loss(
      net.fully_connected(net.global_average_pool(net.convolution(x, 12, same, true)), 5));
  network.running_momentum = 0.1;
  network.training.optimizer = optimizer;
  return network;
}

/// A source with another batch at another address in each step.
class MovingData final : public DataSource {
 public:
  std::span<const std::byte> load(const LoadOp& load, std::int64_t step) override {
    SyntheticData source(static_cast<std::uint64_t>(step) + 1);
    const auto contents = source.load(load, step);
    kept_ = std::make_unique<std::vector<std::byte>>(contents.begin(), contents.end());
    return *kept_;
  }

 private:
  std::unique_ptr<std::vector<std::byte>> kept_;
};

/// The learning rate changes in each step, and is 0 in the last two.
inline TrainingSettings settings() {
  TrainingSettings settings{.learning_rate = 0.05, .weight_decay = 0.01, .trust = 0.1};
  settings.schedule = {.kind = ScheduleKind::Polynomial, .warmup_steps = 1, .steps = 4};
  return settings;
}

struct Outcome {
  Trained trained;
  std::vector<double> losses;
  ReplayCount count;
};

inline Outcome train(const Network& network, const LayerDecompositions& decompositions,
                     const Execution& execution, Backend& backend, Communicator& communicator,
                     Communicator& gathering, bool replays,
                     const std::function<void(Program&)>& choose_transports_by_size = {}) {
  Program program = lower(network, decompositions, execution, communicator.rank());
  if (choose_transports_by_size) choose_transports_by_size(program);
  MovingData data;
  Executor executor(network, program, backend, communicator, data, settings());
  if (replays) executor.replay_ops();
  initialize_parameters(network, program, 3, executor);
  Outcome outcome;
  for (int step = 0; step < steps; ++step) {
    executor.poison();
    executor.run(step);
    outcome.losses.push_back(executor.loss());
  }
  outcome.trained.gradients = gather_iteration(network, program, executor, gathering);
  outcome.trained.parameters =
      gather_parameters(network, program, executor, gathering, ParameterPart::Value);
  outcome.trained.running = gather_running_statistics(network, program, executor, gathering);
  outcome.count = executor.replay_count();
  return outcome;
}

/// Trains on the host, launching each step.
inline Outcome launched(const Network& network, const LayerDecompositions& decompositions,
                        const Execution& execution) {
  Outcome outcome;
  run_loopback(decompositions.back().grid.ranks(), [&](Communicator& communicator) {
    Outcome mine = train(network, decompositions, execution, *make_reference_backend(),
                         communicator, communicator, false);
    if (communicator.rank() == 0) outcome = std::move(mine);
  });
  return outcome;
}

inline void expect_same(const Outcome& actual, const Outcome& expected, const std::string& what) {
  EXPECT_EQ(actual.losses, expected.losses) << what;
  EXPECT_EQ(first_difference(actual.trained, expected.trained), "") << what;
}

inline Execution in_pieces(bool concurrent, int sharding = 0) {
  Execution execution;
  execution.bucket_bytes = {256};
  execution.concurrent_streams = concurrent;
  execution.sharding = sharding;
  return execution;
}

}  // namespace stratplan::test::replayed
