// Communication that overlaps with kernels gives the same numbers as communication between them,
// however late it happens.
#include <gtest/gtest.h>

#include <vector>

#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/exec/trainer.hpp"
#include "runtime/late_communicator.hpp"
#include "support/networks.hpp"

namespace stratplan::overlap_test {
namespace {

using test::LateCommunicator;

struct Outcome {
  std::vector<double> losses;
  std::vector<float> weights;  ///< of rank 0
  std::size_t most_waiting = 0;
};

Outcome train(const Network& network, const LayerDecompositions& decompositions, bool concurrent) {
  Execution execution;
  execution.bucket_bytes = {256};
  execution.concurrent_streams = concurrent;
  Outcome outcome;
  run_loopback(decompositions.back().grid.ranks(), [&](Communicator& loopback) {
    LateCommunicator communicator(loopback);
    const Program program = lower(network, decompositions, execution, communicator.rank());
    const auto backend = make_reference_backend();
    SyntheticData data(1);
    Executor executor(network, program, *backend, communicator, data, {});
    initialize_parameters(network, program, 1, executor);
    executor.poison();
    for (int step = 0; step < 3; ++step) {
      executor.run(step);
      if (communicator.rank() == 0) outcome.losses.push_back(executor.loss());
      for (const Span& span : executor.spans()) EXPECT_LE(span.start, span.end);
    }
    if (communicator.rank() > 0) return;
    for (const ParameterSlice& slice : program.parameters) {
      std::vector<float> values(static_cast<std::size_t>(slice.region.elements()));
      executor.download(slice.value, values.data());
      outcome.weights.insert(outcome.weights.end(), values.begin(), values.end());
    }
    outcome.most_waiting = communicator.most_waiting();
  });
  return outcome;
}

TEST(Overlap, GivesTheSameNumbers) {
  test::NetworkBuilder net(4, 4);
  const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  LayerIndex x = net.relu(net.batch_norm(net.convolution(net.input({3, 1, 8, 8}), 8, same)));
  x = net.relu(net.batch_norm(net.convolution(x, 8, same)));
  const Network network = net.finish_with_loss(
      net.fully_connected(net.global_average_pool(net.convolution(x, 8, same, true)), 5));
  for (const char* grid : {"N2", "H2", "N2 H2", "C2 F2"}) {
    const LayerDecompositions decompositions =
        uniform_plan(network, Decomposition::parse(grid)).layers;
    const Outcome in_turn = train(network, decompositions, false),
                  beside = train(network, decompositions, true);
    EXPECT_EQ(in_turn.losses, beside.losses) << grid;
    EXPECT_EQ(in_turn.weights, beside.weights) << grid;
    EXPECT_EQ(in_turn.most_waiting, 0u) << grid;
    EXPECT_GT(beside.most_waiting, 1u) << grid;
  }
}

}  // namespace
}  // namespace stratplan::overlap_test
