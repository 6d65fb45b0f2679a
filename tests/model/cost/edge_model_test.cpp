// The closed form of an edge against the lowered program, and the looked-up form against it.
#include "model/cost/edge_model.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "model/cost/closed_table.hpp"
#include "model/cost/example_machine.hpp"
#include "model/partition/lower.hpp"
#include "planner/small_cases.hpp"

namespace stratplan {
namespace {

/// Of the rank with most to do.
double lowered(const Network& network, LayerIndex producer, const Decomposition& from,
               LayerIndex consumer, const Decomposition& to, const MachineProfile& machine) {
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
  const LayerIndex first =
      net.convolution(net.input({16, 1, 32, 32}), 16, test::planar(test::same3));
  const LayerIndex second = net.convolution(first, 16, test::planar(test::same3));
  const Network network = net.finish_with_loss(second);
  MachineProfile machine = round_machine();
  const EdgeRates rates = edge_rates(8, machine);
  const std::vector<const char*> grids{"N2 | N4", "N2 | H4", "N2 | H2 W2", "N2 | C4", "N2 | F4",
                                       "C2 | C4", "F2 | N4", "H2 | N4",    "N2 | R4", "R2 | R4"};
  double most = 0, least = 1e9, total = 0;
  int pairs = 0;
  for (const char* a : grids) {
    for (const char* b : grids) {
      const Decomposition from = Decomposition::parse(a), to = Decomposition::parse(b);
      const double truth = lowered(network, first, from, second, to, machine);
      const double closed = edge_cost(rates, distribute(network.layer(first), from).home,
                                      distribute(network.layer(second), to).inputs.front())
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
  EXPECT_LT(total / pairs, 0.25) << "on average over " << pairs << " pairs, from " << least
                                 << " to " << most;
}

/// All candidates of a small network over two nodes of four ranks.
class ClosedEdges : public testing::Test {
 protected:
  ClosedEdges() {
    for (int kind = 0; kind < table_.classes(); ++kind) table_.fill(kind);
    table_.fill_edges();
    table_.set_objective({});
  }
  const Block& block(int node) const { return blocks_[static_cast<std::size_t>(node)]; }
  int candidates(int node) const { return static_cast<int>(table_.node_costs(node).size()); }

  const Network network_ = test::small_resnet(32, 16, 16);
  const std::vector<Block> blocks_ = fold(network_);
  const MachineProfile machine_ = round_machine();
  const GridSpace space_{machine_.topology(8), {Dim::N, Dim::F, Dim::C, Dim::H, Dim::W, Dim::R}};
  const Execution execution_;
  ClosedTable table_{network_, blocks_, space_, execution_, machine_};
};

/// Looked up or made for one pair, an edge costs the same.
TEST_F(ClosedEdges, CostWhatTheirPairsCost) {
  const EdgeRates rates = edge_rates(8, machine_);
  std::map<LayerIndex, std::pair<int, std::size_t>> places;  // node, and place in its block
  for (int node = 0; node < table_.nodes(); ++node)
    for (std::size_t place = 0; place < block(node).layers.size(); ++place)
      places[block(node).layers[place]] = {node, place};
  int edge = 0, pairs = 0;
  for (LayerIndex reader = 0; reader < network_.size(); ++reader) {
    const Layer& consumer = network_.layer(reader);
    for (std::size_t input = 0; input < consumer.inputs.size(); ++input) {
      if (!places.contains(consumer.inputs[input])) continue;
      const auto [from, source] = places.at(consumer.inputs[input]);
      const auto [to, place] = places.at(reader);
      if (from == to) continue;
      for (int i = 0; i < candidates(from); i += 7) {
        for (int j = 0; j < candidates(to); j += 5) {
          const Distribution home =
              distribute(network_.layer(consumer.inputs[input]),
                         spread(network_, block(from), table_.decomposition(from, i))[source])
                  .home;
          const Needed needed =
              distribute(consumer, spread(network_, block(to), table_.decomposition(to, j))[place])
                  .inputs[input];
          const double pair = edge_cost(rates, home, needed).value;
          EXPECT_NEAR(table_.edge_cost(edge, i, j), pair, 1e-4 * pair)
              << table_.node_name(from) << " " << table_.decomposition(from, i).text() << " to "
              << table_.node_name(to) << " " << table_.decomposition(to, j).text();
          ++pairs;
        }
      }
      ++edge;
    }
  }
  EXPECT_EQ(edge, static_cast<int>(table_.edges().size()));
  EXPECT_GT(pairs, 1000);
}

/// The cheapest way through an edge is that of all pairs tried; a rough look sees no more.
TEST_F(ClosedEdges, AreCrossedAtTheLeastCost) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> any(0, 1e-3);
  for (int edge = 0; edge < static_cast<int>(table_.edges().size()); ++edge) {
    const auto [from, to] = table_.edges()[static_cast<std::size_t>(edge)];
    for (const bool forward : {true, false}) {
      const int here = forward ? from : to, there = forward ? to : from;
      std::vector<double> costs, limits;
      for (int c = 0; c < candidates(here); ++c) costs.push_back(any(random));
      for (int c = 0; c < candidates(there); ++c) limits.push_back(c % 4 == 0 ? any(random) : 1);
      const std::vector<double> found = table_.through(edge, forward, costs, limits);
      const std::vector<double> rough = table_.through_at_least(edge, forward, costs, limits);
      for (int c = 0; c < candidates(there); ++c) {
        double least = 1;
        for (int other = 0; other < candidates(here); ++other)
          least = std::min(least, costs[static_cast<std::size_t>(other)] +
                                      (forward ? table_.edge_cost(edge, other, c)
                                               : table_.edge_cost(edge, c, other)));
        const auto at = static_cast<std::size_t>(c);
        EXPECT_LE(found[at], least * (1 + 1e-6)) << "edge " << edge << " candidate " << c;
        EXPECT_GE(found[at], std::min(least, limits[at]) * (1 - 1e-6))
            << "edge " << edge << " candidate " << c;
        EXPECT_LE(rough[at], found[at] * (1 + 1e-6)) << "edge " << edge << " candidate " << c;
        EXPECT_GE(rough[at], *std::ranges::min_element(costs))
            << "edge " << edge << " candidate " << c;
      }
    }
  }
}

}  // namespace
}  // namespace stratplan
