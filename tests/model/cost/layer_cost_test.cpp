#include "model/cost/layer_cost.hpp"

#include <gtest/gtest.h>

#include "model/cost/example_machine.hpp"
#include "model/cost/plan_table.hpp"
#include "model/cost/simulator.hpp"
#include "support/networks.hpp"
#include "support/strange.hpp"

namespace stratplan {
namespace {

constexpr Window window3{.kernel = 3, .pad_before = 1, .pad_after = 1};

/// input -> conv+bn+relu -> (conv+bn+relu -> conv+bn) + its own input -> relu -> pool -> fc ->
/// loss. The two convolutions from 8 to 8 channels are equal.
Network residual_network() {
  test::NetworkBuilder net(4, 2);
  const LayerIndex stem =
      net.relu(net.batch_norm(net.convolution(net.input({3, 1, 12, 12}), 8, window3)));
  const LayerIndex inner = net.relu(net.batch_norm(net.convolution(stem, 8, window3)));
  const LayerIndex sum =
      net.relu(net.add({net.batch_norm(net.convolution(inner, 8, window3)), stem}));
  net.cross_entropy(net.fully_connected(net.global_average_pool(sum), 10));
  return net.finish();
}

Decomposition on(const char* text) { return Decomposition::parse(text); }

Seconds sum_of_ops(const Program& program, const MachineProfile& machine) {
  Seconds sum{};
  for (const Op& op : program.ops) sum += cost_of(op, program, machine).seconds;
  return sum;
}

TEST(LayerClasses, LayersThatDifferInNameAloneAreOfOneClass) {
  for (const LayerType& type : test::computing_types) {
    const test::LayerCase one = test::single_layer(type, 2, {4, 1, 6, 6});
    const auto index = static_cast<std::size_t>(one.index);
    for (const auto& [leaf, layer] : test::with_one_strange_leaf(one.layer())) {
      if (leaf.starts_with("/inputs") || leaf.starts_with("/declared") || leaf == "/running")
        continue;
      Network network = one.network;
      network.layers.resize(index + 1);
      network.layers.push_back(layer);
      const std::vector<int> classes = layer_classes(network, {});
      EXPECT_EQ(classes[index] == classes[index + 1], leaf == "/name") << name_of(type) << leaf;
    }
  }
}

TEST(LayerCosts, ABlockCostsTheOpsOfItsWorstRank) {
  const Network network = residual_network();
  const MachineProfile machine = round_machine();
  const Execution execution;
  LayerCosts costs(network, execution, machine);
  const std::vector<Block> blocks = fold(network);
  for (const char* text : {"N1", "N2", "H2", "H3", "C2", "F2", "R2", "N2 H2"}) {
    for (const Block& block : blocks) {
      if (check(network, block, on(text))) continue;
      const ProcessGrid grid = on(text).grid;
      Seconds worst{};
      for (int rank = 0; rank < grid.ranks(); ++rank) {
        Seconds sum{};
        for (const Program& program : block_programs(network, block, on(text), execution, rank))
          sum += sum_of_ops(program, machine);
        worst = std::max(worst, sum);
      }
      EXPECT_NEAR(costs.block(block, on(text)).total().value, worst.value, 1e-12)
          << text << " " << network.layer(block.root()).name;
    }
  }
}

TEST(LayerCosts, CommunicationIsItemizedAndAbsentOnOneRank) {
  const Network network = residual_network();
  const MachineProfile machine = round_machine();
  const Execution execution;
  LayerCosts costs(network, execution, machine);
  const Block stem = fold(network).front();
  EXPECT_EQ(costs.block(stem, on("N1")).communication.value, 0);
  EXPECT_GT(costs.block(stem, on("N2")).communication.value, 0) << "gradients";
  EXPECT_GT(costs.block(stem, on("N1")).forward.value, costs.block(stem, on("N2")).forward.value);
  // 8 x 3 x 3 x 3 weights, 8 scales and 8 shifts, each rounded up to 16 elements. Of each: value,
  // gradient, velocity.
  EXPECT_EQ(costs.block(stem, on("N1")).persistent.value, 3 * 4 * (224 + 16 + 16));
  EXPECT_EQ(costs.block(stem, on("C3")).tier, Tier::DataSheet);
}

TEST(LayerCosts, EqualBlocksArePricedOnce) {
  test::NetworkBuilder net(2);
  LayerIndex x = net.relu(net.convolution(net.input({4, 1, 8, 8}), 4, window3));
  for (int i = 0; i < 3; ++i) x = net.relu(net.convolution(x, 4, window3));
  net.squared_error(net.convolution(x, 4, window3));
  const Network network = net.finish();
  const std::vector<Block> blocks = fold(network);
  ASSERT_EQ(blocks.size(), 5u);
  const MachineProfile machine = round_machine();
  const Execution execution;
  LayerCosts costs(network, execution, machine);
  const LayerCost* second = &costs.block(blocks[1], on("H2"));
  EXPECT_EQ(&costs.block(blocks[2], on("H2")), second);
  EXPECT_EQ(&costs.block(blocks[3], on("H2")), second);
  EXPECT_NE(&costs.block(blocks[0], on("H2")), second) << "the first block passes on no gradient";
  EXPECT_NE(&costs.block(blocks[2], on("W2")), second);
}

/// If a block recomputes its convolution, it saves that output less and runs that kernel once more.
/// Nothing else changes.
TEST(LayerCosts, RecomputationCostsAForwardKernelAndSavesItsOutput) {
  const Network network = residual_network();
  const MachineProfile machine = round_machine();
  const std::vector<Block> blocks = fold(network);
  Execution keeping, again;
  for (const LayerIndex layer : recomputable(network, blocks))
    if (layer >= 0) again.recompute.insert(network.layer(layer).name);
  EXPECT_EQ(again.recompute, (std::set<std::string>{"conv1", "conv4", "relu10"}))
      << "the backward phase of pooling does not read relu10's output";
  LayerCosts kept(network, keeping, machine), recomputed(network, again, machine);
  for (const char* text : {"N1", "N2", "H2", "N2 H2"}) {
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      SCOPED_TRACE(text + (" " + network.layer(blocks[b].root()).name));
      const LayerCost &before = kept.block(blocks[b], on(text)),
                      &after = recomputed.block(blocks[b], on(text));
      const std::int64_t output = 4 * 8 * 12 * 12 * 4 / on(text).grid.ranks();
      // Recomputation saves one output in each of the first three blocks.
      EXPECT_EQ(before.saved.value - after.saved.value, b < 3 ? output : 0);
      EXPECT_EQ(before.persistent.value, after.persistent.value);
      EXPECT_EQ(before.forward.value, after.forward.value);
      EXPECT_EQ(after.communication.value, before.communication.value);
      Seconds again_forward{};
      const std::vector<Program> programs =
          block_programs(network, blocks[b], on(text), keeping, 0);
      for (std::size_t fusion = 0; b < 3 && fusion < (b < 2 ? 1 : 2); ++fusion)
        for (const Op& op : programs[fusion].ops) {
          const auto* compute = std::get_if<ComputeOp>(&op.body);
          if (op.phase == Phase::Forward && compute &&
              compute->kernel.kind != KernelKind::BatchNormStatistics)
            again_forward += cost_of(op, {}, machine).seconds + machine.step_overhead.median;
        }
      EXPECT_NEAR(after.backward.value - before.backward.value, again_forward.value, 1e-12);
    }
  }
}

/// Values, gradients and velocities of the stem: 224 weights, 16 scales, 16 shifts. Each fusion's
/// parameters are cut in four shares that are multiples of 16.
TEST(LayerCosts, ShardingKeepsShares) {
  const Network network = residual_network();
  const MachineProfile machine = round_machine();
  const Block stem = fold(network).front();
  constexpr std::int64_t all = 256 + 64,
                         share = all / 4;  // 216 weights in 256, scales and shifts in 64
  const std::int64_t expected[] = {3 * (224 + 16 + 16), 2 * all + share, all + 2 * share,
                                   3 * share};
  Seconds communication[4];
  for (const int sharding : {0, 1, 2, 3}) {
    const Execution execution{.precision = {}, .sharding = sharding};
    LayerCosts costs(network, execution, machine);
    EXPECT_EQ(costs.block(stem, on("N4")).persistent.value, 4 * expected[sharding]) << sharding;
    communication[sharding] = costs.block(stem, on("N4")).communication;
  }
  EXPECT_GT(communication[1], communication[0]);  // updated parameters are gathered
  EXPECT_LT(communication[2], communication[1]);  // a reduce-scatter is half of an all-reduce
  EXPECT_GT(communication[3], communication[2]);  // parameters are gathered twice
}

TEST(LayerCosts, RepresentativeRanksOfALargeGrid) {
  EXPECT_EQ(representative_ranks(ProcessGrid::parse("N2 H4")).size(), 8u);
  EXPECT_EQ(representative_ranks(ProcessGrid::parse("H16")), (std::vector<int>{0, 1, 15}));
  EXPECT_EQ(representative_ranks(ProcessGrid::parse("R16")), std::vector<int>{0});
  EXPECT_EQ(representative_ranks(ProcessGrid::parse("N2 | H2 W4")).size(), 2u * 2 * 3);
}

class PlanTableTest : public testing::Test {
 protected:
  Network network = residual_network();
  MachineProfile machine = round_machine();
  Execution execution;
  std::vector<Block> blocks = fold(network);
  std::vector<std::vector<Decomposition>> candidates =
      std::vector<std::vector<Decomposition>>(blocks.size(), {on("N2"), on("R2")});
};

TEST_F(PlanTableTest, NodesAreBlocksAndEdgesTheirConnections) {
  const PlanTable table(network, blocks, candidates, execution, machine);
  EXPECT_EQ(table.nodes(), static_cast<int>(blocks.size()));
  EXPECT_EQ(table.node_name(0), network.layer(blocks[0].root()).name);
  std::vector<std::pair<int, int>> edges;
  for (const auto& [from, to] : table.edges()) edges.emplace_back(from, to);
  // Nodes: stem, inner, outer with the addition, pooling, fc, loss. Inner and the addition read the
  // stem.
  EXPECT_EQ(edges,
            (std::vector<std::pair<int, int>>{{0, 1}, {1, 2}, {0, 2}, {2, 3}, {3, 4}, {4, 5}}));
}

TEST_F(PlanTableTest, AnEdgeCostsNothingUntilTheDecompositionChanges) {
  const PlanTable table(network, blocks, candidates, execution, machine);
  for (int edge = 0; edge < static_cast<int>(table.edges().size()); ++edge) {
    EXPECT_EQ(table.edge_cost(edge, 0, 0).value, 0) << edge;
    EXPECT_EQ(table.edge_cost(edge, 1, 1).value, 0) << edge;
    EXPECT_GT(table.edge_cost(edge, 0, 1).value, 0) << edge;
    EXPECT_EQ(table.edge_cost(edge, 0, 1).value, table.edge_cost(edge, 0, 1).value) << edge;
  }
}

TEST(PlanTable, ItsSumIsWhatTheSimulatorSaysOfOneRank) {
  test::NetworkBuilder net(4, 2);
  const LayerIndex x =
      net.max_pool(net.relu(net.batch_norm(net.convolution(net.input({3, 1, 12, 12}), 8, window3))),
                   {.kernel = 2, .stride = 2});
  net.cross_entropy(net.fully_connected(
      net.global_average_pool(net.relu(net.convolution(x, 8, window3, true))), 10));
  const Network network = net.finish();
  const MachineProfile machine = round_machine();
  const std::vector<Block> blocks = fold(network);
  const std::vector<std::vector<Decomposition>> candidates(blocks.size(), {on("N1")});
  for (const Execution& execution :
       {Execution{}, Execution{.precision = {}, .recompute = layers_to_recompute(network)}}) {
    const PlanTable table(network, blocks, candidates, execution, machine);
    Seconds sum{};
    for (int node = 0; node < table.nodes(); ++node) sum += table.node_cost(node, 0);
    for (int edge = 0; edge < static_cast<int>(table.edges().size()); ++edge)
      sum += table.edge_cost(edge, 0, 0);
    const LayerDecompositions all =
        spread_all(network, blocks, std::vector<Decomposition>(blocks.size(), on("N1")));
    const std::vector<Program> program{lower(network, all, execution, 0)};
    EXPECT_NEAR(sum.value, simulate(program, machine).total.value, 1e-12);
  }
}

}  // namespace
}  // namespace stratplan
