#include "search/bracket.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <functional>

#include "search/random_table.hpp"

namespace stratplan {
namespace {

/// A wide table over a dense one: random labels and kinds, bounds that are the least of the edges they speak of.
class Labelled final : public WideTable {
 public:
  using Pick = std::function<int(int)>;  ///< any number below
  explicit Labelled(
      const DenseTable& table, const Pick& pick = [](int below) { return *rc::gen::inRange(0, below); })
      : table_(table) {
    for (int node = 0; node < table.nodes(); ++node) {
      costs_.emplace_back();
      memory_.emplace_back();
      labels_.emplace_back();
      kinds_.emplace_back();
      for (int candidate = 0; candidate < table.candidates(node); ++candidate) {
        costs_.back().push_back(table.node_cost(node, candidate).value);
        memory_.back().push_back(table.node_memory(node, candidate).value);
        labels_.back().push_back(pick(labels));
        kinds_.back().push_back(pick(kinds));
      }
    }
    for (const CostTable::Edge& edge : table.edges()) {
      // Every other edge leads against the order of the nodes.
      const bool turned = edges_.size() % 2 == 1;
      edges_.push_back(turned ? Edge{edge.to, edge.from} : Edge{edge.from, edge.to});
      bound(static_cast<int>(edges_.size()) - 1);
    }
  }

  int nodes() const override { return table_.nodes(); }
  std::string node_name(int node) const override { return table_.node_name(node); }
  std::span<const double> node_costs(int node) const override { return costs_[static_cast<std::size_t>(node)]; }
  std::span<const std::int64_t> memory(int node) const override { return memory_[static_cast<std::size_t>(node)]; }
  std::span<const Edge> edges() const override { return edges_; }
  End from_end(int edge) const override { return end(edges_[static_cast<std::size_t>(edge)].from); }
  End to_end(int edge) const override { return end(edges_[static_cast<std::size_t>(edge)].to); }
  std::span<const double> same_label(int edge) const override { return same_[static_cast<std::size_t>(edge)]; }
  double change_of_label(int edge, int from_kind, int to_kind) const override {
    return change_[static_cast<std::size_t>(edge)][static_cast<std::size_t>(from_kind * kinds + to_kind)];
  }
  double edge_cost(int edge, int from, int to) const override {
    return edge % 2 == 1 ? table_.edge_cost(edge, to, from).value : table_.edge_cost(edge, from, to).value;
  }

 private:
  static constexpr int labels = 3, kinds = 2;
  End end(int node) const { return {labels_[static_cast<std::size_t>(node)], kinds_[static_cast<std::size_t>(node)], labels, kinds}; }
  void bound(int edge) {
    const End a = from_end(edge), b = to_end(edge);
    std::vector<double>& same = same_.emplace_back(b.label.size(), 99);
    std::vector<double>& change = change_.emplace_back(kinds * kinds, 99);
    for (std::size_t i = 0; i < a.label.size(); ++i) {
      for (std::size_t j = 0; j < b.label.size(); ++j) {
        const double cost = edge_cost(edge, static_cast<int>(i), static_cast<int>(j));
        double& bound = a.label[i] == b.label[j] ? same[j] : change[static_cast<std::size_t>(a.kind[i] * kinds + b.kind[j])];
        bound = std::min(bound, cost);
      }
    }
  }

  const DenseTable& table_;
  std::vector<std::vector<double>> costs_;
  std::vector<std::vector<std::int64_t>> memory_;
  std::vector<std::vector<int>> labels_, kinds_;
  std::vector<Edge> edges_;
  std::vector<std::vector<double>> same_, change_;
};

RC_GTEST_PROP(Bracket, HoldsTheOptimum, ()) {
  const DenseTable dense = test::random_table(test::random_family(), *rc::gen::inRange(1, 6), 5);
  const Labelled table(dense);
  const double optimum = search_exhaustively(dense)->cost.value;
  const auto found = bracket(table, {}, {.tolerance = 0, .first_candidates = 1, .most_candidates = 64});
  RC_ASSERT(found);
  RC_ASSERT(found->lower_bound <= optimum + 1e-9);
  RC_ASSERT(found->cost >= optimum - 1e-9);
  RC_ASSERT(std::abs(cost_of(table, found->assignment) - found->cost) < 1e-9);
}

RC_GTEST_PROP(Bracket, WithRoomForAllCandidatesItCloses, ()) {
  const DenseTable dense = test::random_table(test::random_family(), *rc::gen::inRange(1, 6), 5);
  const Labelled table(dense);
  const auto found = bracket(table, {}, {.tolerance = 0, .first_candidates = 64, .most_candidates = 64});
  RC_ASSERT(found);
  RC_ASSERT(std::abs(found->cost - search_exhaustively(dense)->cost.value) < 1e-9);
  RC_ASSERT(found->gap() < 1e-9);
}

RC_GTEST_PROP(Bracket, CompletionsCostAtLeastTheirBounds, ()) {
  const DenseTable dense = test::random_table(test::random_family(), *rc::gen::inRange(1, 5), 4);
  const Labelled table(dense);
  const auto bounds = completion_bounds(table, 1e9);
  std::vector<int> assignment;
  for (int node = 0; node < dense.nodes(); ++node) assignment.push_back(*rc::gen::inRange(0, dense.candidates(node)));
  const double cost = cost_of(table, assignment);
  for (int node = 0; node < dense.nodes(); ++node)
    RC_ASSERT(bounds[static_cast<std::size_t>(node)][static_cast<std::size_t>(assignment[static_cast<std::size_t>(node)])] <= cost + 1e-9);
}

RC_GTEST_PROP(Bracket, AMemoryLimitHolds, ()) {
  const DenseTable dense = test::random_table(test::random_family(), *rc::gen::inRange(1, 6), 5);
  const Labelled table(dense);
  const Bytes limit{*rc::gen::inRange(0, 20)};
  const auto truth = search_exhaustively(dense, limit);
  const auto found = bracket(table, {}, {.tolerance = 0, .first_candidates = 64, .most_candidates = 64, .memory_limit = limit});
  RC_ASSERT(found.has_value() == truth.has_value());
  if (found) RC_ASSERT(std::abs(found->cost - truth->cost.value) < 1e-9);
}

TEST(Bracket, IsNoWorseThanWhatIsKnown) {
  DenseTable dense;
  dense.add_node({"a", {1, 2}, {}});
  dense.add_node({"b", {2, 1}, {}});
  dense.add_edge(0, 1, {{0, 9}, {9, 0}});
  const Labelled table(dense, [](int) { return 0; });
  const auto found = bracket(table, {{0, 0}, {1, 1}}, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cost, 3);
}

}  // namespace
}  // namespace stratplan
