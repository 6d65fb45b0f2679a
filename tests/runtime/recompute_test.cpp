// Recomputed layers give the same numbers, bit for bit, in less memory.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/partition/lowering/overlapped_halo.hpp"
#include "model/partition/lowering/recompute.hpp"
#include "runtime/verify/verify.hpp"
#include "support/any_network.hpp"
#include "support/training.hpp"

namespace stratplan::recompute_test {
namespace {

using test::first_difference;
using test::NetworkBuilder;
using test::train_two_steps;

constexpr Window same{.kernel = 3, .pad_before = 1, .pad_after = 1};
using Names = std::set<std::string>;

/// A network with everything that recomputation computes differently: normalizations without their
/// sums, masks, places of maxima, interior/boundary splits.
Network all_kinds() {
  NetworkBuilder net(4, 2);
  LayerIndex x =
      net.dropout(net.sigmoid(net.batch_norm(net.convolution(net.input({3, 1, 12, 9}), 6, same))));
  x = net.max_pool(net.relu(net.convolution(x, 6, same, true)),
                   {.kernel = 3, .stride = 2, .pad_before = 1, .pad_after = 1});
  const LayerIndex skip = x;
  x = net.relu(net.group_norm(net.convolution(x, 6, same), 2));
  x = net.relu(net.add({net.batch_norm(net.convolution(x, 6, same)), skip}));
  x = net.upsample(net.prelu(net.instance_norm(x)), {1, 2, 2}, true);
  x = net.elu(net.transposed_convolution(net.concat({x, net.tanh(x)}), 4, test::planar(same)));
  return net.finish_with_loss(net.fully_connected(net.dropout(net.global_average_pool(x)), 5));
}

Network in_micro_batches() {
  Network network = test::residual_network(4, 2);
  for (Layer& layer : network.layers) layer.input[Axis::N] = layer.output[Axis::N] = 2;
  network.training.micro_batches = 2;
  network.running_momentum = 0.1;
  return network;
}

/// Returns the names of all layers that can be recomputed, also those that the planner would not
/// choose.
Names all_names(const Network& network) {
  Names names;
  for (LayerIndex index = 0; index < network.size(); ++index)
    if (!check_recompute(network, index)) names.insert(network.layer(index).name);
  return names;
}

struct Row {
  const char* what;
  Network network;
  const char* grid;
};
std::vector<Row> rows() {
  return {
      {"one rank", all_kinds(), "N1"},
      {"samples", all_kinds(), "N2"},
      {"rows", all_kinds(), "H2"},
      {"tiles", all_kinds(), "H2 W2"},
      {"channels, sums of which land", all_kinds(), "C2"},
      {"channels, sums of which are everywhere", all_kinds(), "C2 all-reduce"},
      {"filters, and three ranks that repeat", all_kinds(), "F2 R3"},
      {"micro-batches and running statistics", in_micro_batches(), "N2"},
  };
}

TEST(Recomputation, GivesTheSameNumbersBitForBit) {
  for (const Row& row : rows()) {
    const LayerDecompositions decompositions =
        uniform_plan(row.network, Decomposition::parse(row.grid)).layers;
    const test::Trained expected = train_two_steps(row.network, decompositions, {}, "reference");
    for (const Names& names : {layers_to_recompute(row.network), all_names(row.network)}) {
      for (const bool fuse : {true, false}) {
        SCOPED_TRACE(fmt::format("{}: {}, fused {}", row.what, fmt::join(names, " "), fuse));
        const Execution execution{
            .concurrent_streams = !fuse, .precision = {}, .fuse = fuse, .recompute = names};
        EXPECT_EQ(first_difference(expected, train_two_steps(row.network, decompositions, execution,
                                                             "reference")),
                  "");
      }
    }
  }
}

TEST(Recomputation, OfLayersWithAnInteriorSplitToo) {
  const Network network = all_kinds();
  const LayerDecompositions decompositions =
      uniform_plan(network, Decomposition::parse("H2")).layers;
  Execution execution{.concurrent_streams = true,
                      .precision = {},
                      .overlapped_halos = layers_with_interior(network, decompositions)};
  ASSERT_FALSE(execution.overlapped_halos.empty());
  const test::Trained expected = train_two_steps(network, decompositions, execution, "reference");
  execution.recompute = all_names(network);
  EXPECT_EQ(
      first_difference(expected, train_two_steps(network, decompositions, execution, "reference")),
      "");
}

/// Recomputation runs the same kernels on the same operands, so the numbers are equal on any
/// backend.
TEST(Recomputation, GivesTheSameNumbersOnTheCpuBackend) {
  if (!cpu_part().built) GTEST_SKIP() << "built without oneDNN";
  for (const Row& row : rows()) {
    const LayerDecompositions decompositions =
        uniform_plan(row.network, Decomposition::parse(row.grid)).layers;
    const Execution execution{.precision = {}, .recompute = layers_to_recompute(row.network)};
    const test::Trained expected = train_two_steps(row.network, decompositions, {}, "cpu"),
                        found = train_two_steps(row.network, decompositions, execution, "cpu");
    EXPECT_EQ(first_difference(expected, found), "") << row.what;
  }
}

RC_GTEST_PROP(Recomputation, GivesTheSameNumbersOfAnyNetwork, ()) {
  const Network network = test::any_network();
  const LayerDecompositions decompositions =
      uniform_plan(network, {test::any_grid(test::any_of<Topology>({{1}, {2}, {3}, {4}, {2, 2}}),
                                            {all_dims.begin(), all_dims.end()})})
          .layers;
  Names names;
  for (const std::string& name : all_names(network))
    if (test::any_int(0, 1)) names.insert(name);
  const test::Trained expected = train_two_steps(network, decompositions, {}, "reference");
  RC_ASSERT(first_difference(expected, train_two_steps(network, decompositions,
                                                       {.precision = {}, .recompute = names},
                                                       "reference")) == "");
}

/// A verified step takes a layer's decisions in the forward phase. Recomputation decides alike.
TEST(Recomputation, IsVerified) {
  const Network network = all_kinds();
  const LayerDecompositions decompositions =
      uniform_plan(network, Decomposition::parse("H2")).layers;
  const Execution execution{.precision = {}, .recompute = all_names(network)};
  const TrainingSettings settings{.seed = 5};
  const auto judge = make_reference_backend();
  SyntheticData judged(5);
  const std::vector<NamedTensor> expected =
      undivided_iteration(network, execution, *judge, settings, judged);
  for (const float error : {0.0F, 1.0F}) {
    run_loopback(2, [&](Communicator& communicator) {
      const Program program = lower(network, decompositions, execution, communicator.rank());
      const auto backend = make_reference_backend();
      SyntheticData data(5);
      Executor executor(network, program, *backend, communicator, data, settings);
      initialize_parameters(network, program, settings.seed, executor);
      executor.run(0);
      std::vector<NamedTensor> actual = gather_iteration(network, program, executor, communicator);
      if (communicator.rank() == 0)
        actual.at(1).values.at(0) += error;  // so that verification looks at decisions
      const VerificationResult found =
          verify_first_step(network, program, execution, settings, *backend, data, executor,
                            communicator, expected, actual);
      EXPECT_EQ(found.passed, error == 0);
      EXPECT_EQ(found.turned, 0);
    });
  }
}

}  // namespace
}  // namespace stratplan::recompute_test
