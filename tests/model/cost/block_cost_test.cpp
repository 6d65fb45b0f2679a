// Compares the closed-form cost of a block with the program that lower() makes of it.
#include "model/cost/closed_form/block_cost.hpp"

#include <gtest/gtest.h>

#include "model/cost/collective_cost.hpp"
#include "model/cost/example_machine.hpp"
#include "model/cost/layer_cost.hpp"
#include "model/network/finish_parameters.hpp"
#include "support/networks.hpp"
#include "support/parameter_network.hpp"

namespace stratplan {
namespace {

constexpr Window same3{.kernel = 3, .pad_before = 1, .pad_after = 1};

/// A network with something of everything that the closed form prices.
Network mixed_network(std::int64_t batch, std::int64_t set) {
  test::NetworkBuilder net(batch, set);
  const LayerIndex stem =
      net.relu(net.batch_norm(net.convolution(net.input({3, 1, 12, 12}), 8, test::planar(same3))));
  const LayerIndex biased = net.relu(net.convolution(stem, 8, test::planar(same3), true));
  const LayerIndex sum =
      net.relu(net.add({net.batch_norm(net.convolution(biased, 8, test::planar(same3))), stem}));
  net.cross_entropy(net.fully_connected(net.global_average_pool(sum), 16));
  return net.finish();
}

struct Priced {
  double forward = 0, backward = 0, update = 0, communication = 0, gradients = 0;
  std::int64_t ops = 0;
};

/// The costs of rank 0's lowered programs. Gradients are compared by bytes, since they travel in
/// other pieces.
Priced lowered(const Network& network, const Block& block, const Decomposition& root,
               const Execution& execution, const MachineProfile& machine) {
  Priced sum;
  for (const Program& program : block_programs(network, block, root, execution, 0)) {
    for (const Op& op : program.ops) {
      const double seconds = cost_of(op, program, machine).seconds.value;
      const auto* collective = std::get_if<CollectiveOp>(&op.body);
      if (collective && op.stream == Stream::Gradient)
        sum.gradients += static_cast<double>(collective->bytes().value);
      else if (collective)
        sum.communication += seconds;
      else
        (op.phase == Phase::Forward    ? sum.forward
         : op.phase == Phase::Backward ? sum.backward
                                       : sum.update) += seconds;
    }
  }
  return sum;
}

Priced closed(const Network& network, const Block& block, const Decomposition& root,
              const Execution& execution, const MachineProfile& machine) {
  const BlockPieces pieces = ClosedFormBlockCost(network, block, execution, machine).pieces(root);
  Priced sum{pieces.forward.value, pieces.backward.value, pieces.update.value, 0, 0, pieces.ops};
  const Topology placement = machine.placement(root.grid.ranks());
  for (const BlockCollective& collective : pieces.collectives) {
    std::vector<int> group;
    for (int rank = 0; rank < root.grid.ranks(); ++rank) {
      bool member = true;
      for (const Dim dim : all_dims) {
        const int index = root.grid.index(dim, rank);
        const bool varies =
            collective.dims.contains(dim) &&
            !(dim == Dim::N && collective.samples > 0 && index >= collective.samples);
        member = member && (index == 0 || varies);
      }
      if (member) group.push_back(rank);
    }
    const double bytes = static_cast<double>(collective.bytes.value) * collective.times;
    if (collective.gradient)
      sum.gradients += bytes;
    else
      sum.communication += collective_cost(collective.op, collective.type, collective.bytes,
                                           shape_of(group, placement), placement, machine)
                               .seconds.value *
                           collective.times;
  }
  return sum;
}

TEST(ClosedFormBlockCost, IsTheLoweredProgramOfTheFirstRank) {
  const MachineProfile machine = round_machine();
  for (const DataType type : {DataType::F32, DataType::BF16, DataType::F16})
    for (const std::int64_t set : {2, 8}) {
      const Execution execution{.precision = {.activations = type}};
      const Network network = mixed_network(8, set);
      for (const char* text :
           {"N1", "N2", "N8", "H2", "H3 W2", "N2 H2", "C2", "C2 all-reduce", "F2", "F4 C2",
            "N2 F2 C2 all-reduce", "R2", "N4 | H2", "N2 | C4", "N2 R2 | F2"}) {
        const Decomposition root = Decomposition::parse(text);
        for (const Block& block : fold(network)) {
          if (check(network, block, root)) continue;
          const std::string where =
              network.layer(block.root()).name + " on " + text + " in " + name_of(type);
          const Priced a = lowered(network, block, root, execution, machine),
                       b = closed(network, block, root, execution, machine);
          EXPECT_NEAR(a.forward, b.forward, 1e-12) << where;
          EXPECT_NEAR(a.backward, b.backward, 1e-12) << where;
          EXPECT_NEAR(a.update, b.update, 1e-12) << where;
          EXPECT_NEAR(a.communication, b.communication, 1e-12) << where;
          EXPECT_NEAR(a.gradients, b.gradients, 1e-6 * a.gradients) << where;
        }
      }
    }
}

/// Blocks of layers that share parameters, or have parameters that are not trained.
TEST(ClosedFormBlockCost, KnowsWhatIsSharedAndWhatIsFrozen) {
  const MachineProfile machine = round_machine();
  for (const int sharding : {0, 1, 2, 3})
    for (const DataType type : {DataType::F32, DataType::BF16}) {
      const Execution execution{.precision = {.activations = type, .gradient_sums = type},
                                .sharding = sharding};
      const Network network = test::network_of_all_sorts();
      for (const char* text : {"N1", "N2", "H2", "N2 H2", "R2", "N2 R2", "N4 | H2", "F2", "C2",
                               "C2 all-reduce", "F2 C2", "N2 F2", "F2 R2", "N2 | C2 R2"}) {
        const Decomposition root = Decomposition::parse(text);
        for (const Block& block : fold(network)) {
          if (check(network, block, root)) continue;
          // Two ranks share three filters unevenly, and the closed form takes the longer share.
          if (network.layer(block.root()).name == "fc" && root.grid.text() == "F2 C2") continue;
          const std::string where = network.layer(block.root()).name + " on " + text + " in " +
                                    name_of(type) + ", sharding " + std::to_string(sharding);
          const Priced a = lowered(network, block, root, execution, machine),
                       b = closed(network, block, root, execution, machine);
          EXPECT_NEAR(a.forward, b.forward, 1e-12) << where;
          EXPECT_NEAR(a.backward, b.backward, 1e-12) << where;
          EXPECT_NEAR(a.update, b.update, 1e-12) << where;
          if (sharding > 0) continue;  // the stream of gradients also gathers values
          EXPECT_NEAR(a.gradients, b.gradients, 1e-6 * a.gradients) << where;
        }
      }
    }
}

void expect_equal(const Priced& a, const Priced& b, const std::string& where, bool relabelled) {
  EXPECT_NEAR(a.forward, b.forward, 1e-12) << where;
  EXPECT_NEAR(a.backward, b.backward, 1e-12) << where;
  EXPECT_NEAR(a.update, b.update, 1e-12) << where;
  if (relabelled)
    EXPECT_LE(a.communication, b.communication + 1e-12) << where;
  else
    EXPECT_NEAR(a.communication, b.communication, 1e-12) << where;
  EXPECT_NEAR(a.gradients, b.gradients, 1e-6 * a.gradients) << where;
}

/// Decompositions of one layer on two and on four ranks.
constexpr std::array few_grids{"N1", "N2", "F2",    "C2",    "C2 all-reduce", "H2",
                               "W2", "R2", "N2 H2", "F2 C2", "N2 | C2",       "H2 W2"};

TEST(ClosedFormBlockCost, IsTheLoweredProgramOfEveryKindOfLayer) {
  const MachineProfile machine = round_machine();
  for (const LayerType type : test::computing_types)
    for (const OptimizerKind optimizer : {OptimizerKind::Momentum, OptimizerKind::Adam})
      for (const std::int64_t micro_batches : {1, 3})
        for (const DataType stored : {DataType::F32, DataType::F16}) {
          test::LayerCase one = test::single_layer(type, 4, {4, 1, 6, 6});
          one.network.training.optimizer = optimizer;
          if (!one.network.layers.back().sums_whole_batch())
            one.network.training.micro_batches = micro_batches;
          const Execution execution{.precision = {.activations = stored}};
          for (const char* text : few_grids)
            for (const Block& block : fold(one.network)) {
              const Decomposition root = Decomposition::parse(text);
              if (check(one.network, block, root)) continue;
              const Layer& first = one.network.layer(block.root());
              // If positions are split, a loss behind a mean over them is summed over some ranks
              // needlessly.
              expect_equal(lowered(one.network, block, root, execution, machine),
                           closed(one.network, block, root, execution, machine),
                           first.name + " on " + text, inherited(first, root).grid != root.grid);
            }
        }
}

TEST(ClosedFormBlockCost, UpdatesEachParameterGroupAlone) {
  const MachineProfile machine = round_machine();
  int grouped = 0;
  for (const LayerType type : test::computing_types)
    for (const OptimizerKind optimizer : {OptimizerKind::Momentum, OptimizerKind::Lars}) {
      test::LayerCase one = test::single_layer(type, 4, {4, 1, 6, 6});
      const auto parameters = one.network.layer(1).parameters();
      if (parameters.empty()) continue;
      ++grouped;
      one.network.training.optimizer = optimizer;
      one.network.training.groups = {
          {.parameters = {one.network.parameter_name(1, parameters.front().first)},
           .trust = false}};
      finish_parameters(one.network, "", std::vector<std::string>(one.network.layers.size()));
      for (const char* text : {"N2", "F2", "H2", "N2 | C2"})
        for (const Block& block : fold(one.network)) {
          const Decomposition root = Decomposition::parse(text);
          if (check(one.network, block, root) || one.network.layer(block.root()).name == "loss")
            continue;
          const Priced a = lowered(one.network, block, root, Execution{}, machine),
                       b = closed(one.network, block, root, Execution{}, machine);
          EXPECT_NEAR(a.update, b.update, 1e-12) << one.network.layer(1).name << " on " << text;
          EXPECT_NEAR(a.gradients, b.gradients, 1e-6 * a.gradients)
              << one.network.layer(1).name << " on " << text;
        }
    }
  EXPECT_GE(grouped, 8);
}

/// The closed form prices the first rank's blocks, which are the longest. Other ranks may have
/// halos on both sides or less padding, but have no more outputs.
TEST(ClosedFormBlockCost, NoOtherRankTakesMuchLongerThanTheFirst) {
  const MachineProfile machine = round_machine();
  const Execution execution;
  double worst = 1;
  for (const LayerType type : test::computing_types) {
    const test::LayerCase one = test::single_layer(type, 7, {5, 1, 25, 23});
    for (const char* text : {"N3", "H4", "W3", "H3 W2", "N2 H3", "F3", "C3", "N4 | H2"})
      for (const Block& block : fold(one.network)) {
        const Decomposition root = Decomposition::parse(text);
        if (check(one.network, block, root)) continue;
        const ClosedFormBlockCost model(one.network, block, execution, machine);
        const auto seconds = [&](int rank) {
          const BlockPieces pieces = model.pieces(root, rank);
          return (pieces.forward + pieces.backward + pieces.update).value;
        };
        for (int rank = 1; rank < root.grid.ranks(); ++rank)
          worst = std::max(worst, seconds(rank) / seconds(0));
      }
  }
  EXPECT_LE(worst, 1.1);
}

}  // namespace
}  // namespace stratplan
