// The closed form of an edge against the lowered program, and its bounds against itself.
#include "model/cost/edge_model.hpp"

#include <gtest/gtest.h>

#include "model/cost/closed_table.hpp"
#include "model/cost/example_machine.hpp"
#include "model/partition/lower.hpp"
#include "planner/small_cases.hpp"

namespace stratplan {
namespace {

TEST(TellingRanks, TellAnyTwoPlacesApart) {
  for (const Topology& topology : std::vector<Topology>{{4}, {6}, {4, 4}, {256, 4}, {6, 6}, {4096, 4}}) {
    int all = 1;
    for (const int ranks : topology) all *= ranks;
    const std::vector<int> telling = telling_ranks_of(topology);
    EXPECT_LE(telling.size(), 12U);
    for (int a = 1; a < all; a *= 2) {
      for (int b = 1; b < a; b *= 2) {
        if (all % (2 * a) != 0 || all % (2 * b) != 0 || (all & (all - 1)) != 0) continue;
        EXPECT_TRUE(std::ranges::any_of(telling, [&](int rank) { return (rank / a % 2 == 0) != (rank / b % 2 == 0); }))
            << all << ": " << a << ", " << b;
      }
    }
  }
}

/// Of the rank with most to do.
double lowered(const Network& network, LayerIndex producer, const Decomposition& from, LayerIndex consumer, const Decomposition& to,
               const MachineProfile& machine) {
  double longest = 0;
  for (int rank = 0; rank < from.grid.ranks(); ++rank) {
    const Program program = lower_edge(network, producer, from, consumer, 0, to, Execution{}, rank);
    double seconds = 0;
    for (const Step& step : program.steps) seconds += cost_of(step, program, machine).seconds.value;
    longest = std::max(longest, seconds);
  }
  return longest;
}

/// Between two convolutions of 16 channels: the closed form is the lowered edge but for copies of what stays on a rank, and for ranks that send more than they
/// receive. What it says too much or too little is printed by --gtest_output; here it must be within a third and the same order.
TEST(EdgeModel, IsNearTheLoweredEdge) {
  test::NetworkBuilder net(16);
  const LayerIndex first = net.convolution(net.input({16, 1, 32, 32}), 16, test::planar(test::same3));
  const LayerIndex second = net.convolution(first, 16, test::planar(test::same3));
  const Network network = net.finish_with_loss(second);
  MachineProfile machine = round_machine();
  const std::vector<const char*> grids{"N2 | N4", "N2 | H4", "N2 | H2 W2", "N2 | C4", "N2 | F4",
                                       "C2 | C4", "F2 | N4", "H2 | N4",    "N2 | R4", "R2 | R4"};
  double most = 0, least = 1e9, total = 0;
  int pairs = 0;
  for (const char* a : grids) {
    for (const char* b : grids) {
      const Decomposition from = Decomposition::parse(a), to = Decomposition::parse(b);
      const double truth = lowered(network, first, from, second, to, machine);
      const EdgeModel model(8, machine);
      const LayerDistributions producer = distribute(network.layer(first), from), consumer = distribute(network.layer(second), to);
      const double closed =
          model.cost(EdgeEnd(producer.home, model.telling(), model.innermost()), EdgeEnd(consumer.inputs.front(), model.telling(), model.innermost()))
              .value;
      if (truth == 0) {
        EXPECT_EQ(closed, 0) << a << " to " << b;
        continue;
      }
      const double ratio = closed / truth;
      most = std::max(most, ratio);
      least = std::min(least, ratio);
      total += std::abs(ratio - 1);
      ++pairs;
      EXPECT_GT(ratio, 0.4) << a << " to " << b;
      EXPECT_LT(ratio, 1.7) << a << " to " << b;
    }
  }
  RecordProperty("least", std::to_string(least));
  RecordProperty("most", std::to_string(most));
  EXPECT_LT(total / pairs, 0.25) << "on average over " << pairs << " pairs, from " << least << " to " << most;
}

/// No edge costs less than what is said of it beforehand.
TEST(ClosedTable, BoundsAreBelowTheEdges) {
  const Network network = test::small_resnet(32, 16, 16);
  const std::vector<Block> blocks = fold(network);
  const MachineProfile machine = round_machine();
  const GridSpace space(machine.topology(8), {Dim::N, Dim::F, Dim::C, Dim::H, Dim::W, Dim::R});
  const Execution execution;
  ClosedTable table(network, blocks, space, execution, machine);
  for (int kind = 0; kind < table.classes(); ++kind) table.fill(kind);
  table.label_edges();
  table.set_objective({});
  for (int edge = 0; edge < static_cast<int>(table.edges().size()); ++edge) {
    const auto [from, to] = table.edges()[static_cast<std::size_t>(edge)];
    const WideTable::End a = table.from_end(edge), b = table.to_end(edge);
    for (int i = 0; i < static_cast<int>(a.label.size()); i += 3) {
      for (int j = 0; j < static_cast<int>(b.label.size()); j += 3) {
        const auto x = static_cast<std::size_t>(i), y = static_cast<std::size_t>(j);
        const double bound = a.label[x] == b.label[y] ? table.same_label(edge)[y] : table.change_of_label(edge, a.kind[x], b.kind[y]);
        EXPECT_LE(bound, table.edge_cost(edge, i, j) * (1 + 1e-9)) << table.node_name(from) << " " << table.decomposition(from, i).text() << " to "
                                                                   << table.node_name(to) << " " << table.decomposition(to, j).text();
      }
    }
  }
}

}  // namespace
}  // namespace stratplan
