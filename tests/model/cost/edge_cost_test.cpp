// Compares the closed-form cost of an edge with the lowered program, and the looked-up form with
// both.
#include "model/cost/closed_form/edge_cost.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "model/cost/closed_form/closed_table.hpp"
#include "model/cost/example_machine.hpp"
#include "model/partition/lowering/lower.hpp"
#include "planner/small_cases.hpp"

namespace stratplan {
namespace {

/// Returns the cost on the rank with the most work.
double lowered(const Network& network, LayerIndex producer, const Decomposition& from,
               LayerIndex consumer, const Decomposition& to, const MachineProfile& machine) {
  double longest = 0;
  for (int rank = 0; rank < from.grid.ranks(); ++rank) {
    const Program program = lower_edge(network, producer, from, consumer, 0, to, Execution{}, rank);
    double seconds = 0;
    for (const Op& op : program.ops) seconds += cost_of(op, program, machine).seconds.value;
    longest = std::max(longest, seconds);
  }
  return longest;
}

/// Edges between two convolutions of 16 channels. The closed-form cost equals the lowered edge's,
/// except for copies of data that stay on a rank, and for ranks that send more than they receive.
/// The error must stay within the limits below; --gtest_output records its extremes.
TEST(EdgeCost, IsNearTheLoweredEdge) {
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

/// A network whose edges meet overlapping windows, windows that skip positions, uneven blocks,
/// concatenated channels and enlargement.
Network every_edge(std::int64_t batch, std::int64_t extent) {
  test::NetworkBuilder net(batch);
  const std::array<Window, 3> strided{Window{},
                                      {.kernel = 3, .stride = 2, .pad_before = 1},
                                      {.kernel = 5, .stride = 1, .pad_before = 2, .pad_after = 2}};
  const LayerIndex x =
      net.relu(net.convolution(net.input({3, 1, extent, extent}), 12, test::same3));
  const LayerIndex y = net.convolution(x, 10, strided);
  const LayerIndex wide =
      net.convolution(net.max_pool(x, {.kernel = 2, .stride = 2}), 6, test::same3);
  const LayerIndex up = net.upsample(wide, {1, 2, 2}, true);
  net.cross_entropy(net.fully_connected(
      net.global_average_pool(net.convolution(net.concat({x, up}), 8, test::same3)), 10));
  (void)y;
  return net.finish();
}

/// A small network with all its candidates, over nodes of several ranks.
struct ClosedEdgeCase {
  const char* name;
  Network network;
  int nodes, per_node;
  double least_share;  ///< of bound to exact cost, summed over the drawn pairs
};

std::vector<ClosedEdgeCase> closed_edge_cases() {
  return {{"even", test::small_resnet(32, 16, 16), 2, 4, 0.98},
          {"even on four nodes", test::small_resnet(32, 16, 16), 4, 4, 0.97},
          {"uneven", test::small_resnet(22, 14, 10), 2, 4, 0.8},
          {"one node", test::small_resnet(16, 18, 8), 1, 8, 0.93},
          {"sixths", test::small_resnet(12, 12, 12), 2, 6, 0.9},
          {"thirds of nodes", test::small_resnet(18, 14, 12), 3, 4, 0.8},
          {"many nodes", test::small_resnet(16, 28, 16), 8, 2, 0.96},
          {"joins", every_edge(8, 16), 2, 4, 0.85},
          {"uneven joins", every_edge(6, 14), 2, 6, 0.73}};
}

MachineProfile machine_with(int nodes, int per_node) {
  MachineProfile machine = test::small_machine();
  machine.levels = {{"node", nodes, {5e-6}, 2e8}, {"core", per_node, {1e-6}, 1e9}};
  return machine;
}

class ClosedEdges : public testing::TestWithParam<int> {
 protected:
  ClosedEdges() {
    for (int kind = 0; kind < table_.classes(); ++kind) table_.fill(kind);
    table_.fill_edges();
    table_.set_objective({});
  }
  int candidates(int node) const { return static_cast<int>(table_.node_costs(node).size()); }

  const ClosedEdgeCase case_ = closed_edge_cases()[static_cast<std::size_t>(GetParam())];
  const Network& network_ = case_.network;
  const std::vector<Block> blocks_ = fold(network_);
  const MachineProfile machine_ = machine_with(case_.nodes, case_.per_node);
  const GridSpace space_{machine_.topology(case_.nodes * case_.per_node),
                         {Dim::N, Dim::F, Dim::C, Dim::H, Dim::W, Dim::R}};
  const Execution execution_;
  ClosedTable table_{network_, blocks_, space_, execution_, machine_};
};

INSTANTIATE_TEST_SUITE_P(All, ClosedEdges, testing::Range(0, 9));

/// The bound that the search uses never exceeds the exact cost, and is close to it.
TEST_P(ClosedEdges, CostNoMoreThanExactly) {
  std::mt19937 random(11);
  int pairs = 0, above = 0;
  double looked_up = 0, exactly = 0;
  for (int edge = 0; edge < static_cast<int>(table_.edges().size()); ++edge) {
    const auto [from, to] = table_.edges()[static_cast<std::size_t>(edge)];
    for (int draw = 0; draw < 1500; ++draw) {
      const int i = std::uniform_int_distribution(0, candidates(from) - 1)(random),
                j = std::uniform_int_distribution(0, candidates(to) - 1)(random);
      const double bound = table_.edge_bound(edge, i, j), exact = table_.edge_cost(edge, i, j);
      looked_up += bound;
      exactly += exact;
      ++pairs;
      if (bound <= exact * (1 + 1e-4) + 1e-12) continue;
      if (++above > 5) continue;
      ADD_FAILURE() << case_.name << ": " << table_.node_name(from) << " "
                    << table_.decomposition(from, i).text() << " to " << table_.node_name(to) << " "
                    << table_.decomposition(to, j).text() << ": " << bound << " for " << exact;
    }
  }
  EXPECT_EQ(above, 0) << "of " << pairs;
  EXPECT_GT(looked_up, case_.least_share * exactly);
  RecordProperty("share", std::to_string(looked_up / exactly));
}

/// Below its limit, the min-plus message of an edge is the minimum over all pairs.
TEST_P(ClosedEdges, AreCrossedAtTheLeastCost) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> any(0, 1e-3);
  for (int edge = 0; edge < static_cast<int>(table_.edges().size()); ++edge) {
    const auto [from, to] = table_.edges()[static_cast<std::size_t>(edge)];
    for (const bool forward : {true, false}) {
      const int here = forward ? from : to, there = forward ? to : from;
      std::vector<double> costs, limits;
      for (int c = 0; c < candidates(here); ++c) costs.push_back(any(random));
      for (int c = 0; c < candidates(there); ++c) limits.push_back(c % 4 == 0 ? any(random) : 1);
      const std::vector<double> found = table_.through(edge, forward, costs, limits, false),
                                rough = table_.through(edge, forward, costs, limits, true);
      for (int c = 0; c < candidates(there); ++c) {
        double least = 1;
        for (int other = 0; other < candidates(here); ++other)
          least = std::min(least, costs[static_cast<std::size_t>(other)] +
                                      (forward ? table_.edge_bound(edge, other, c)
                                               : table_.edge_bound(edge, c, other)));
        const auto at = static_cast<std::size_t>(c);
        EXPECT_LE(rough[at], found[at] * (1 + 1e-6)) << "edge " << edge << " candidate " << c;
        EXPECT_LE(found[at], least * (1 + 1e-6)) << "edge " << edge << " candidate " << c;
        EXPECT_GE(found[at], std::min(least, limits[at]) * (1 - 1e-6))
            << "edge " << edge << " candidate " << c;
      }
    }
  }
}

}  // namespace
}  // namespace stratplan
