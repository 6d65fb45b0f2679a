#include "search/lazy_search.hpp"

#include "search/elimination.hpp"
#include "search/pruning.hpp"

namespace stratplan {

namespace {

/// A view of another table with exact node costs. Edges that are not at hand cost their lower
/// bounds.
class OptimisticTable final : public CostTable {
 public:
  explicit OptimisticTable(const CostTable& table) : table_(table) {}
  int nodes() const override { return table_.nodes(); }
  std::string node_name(int node) const override { return table_.node_name(node); }
  int candidates(int node) const override { return table_.candidates(node); }
  std::span<const Edge> edges() const override { return table_.edges(); }
  Seconds node_cost(int node, int candidate) const override {
    return table_.node_cost(node, candidate);
  }
  Bytes node_memory(int, int) const override { return {0}; }
  Seconds edge_cost(int edge, int from_candidate, int to_candidate) const override {
    return table_.edge_at_hand(edge) ? table_.edge_cost(edge, from_candidate, to_candidate)
                                     : table_.edge_bound(edge);
  }

 private:
  const CostTable& table_;
};

class LazySearch {
 public:
  LazySearch(const CostTable& table, const Survivors& survivors) : table_(table) {
    Problem given = make_problem(OptimisticTable(table), survivors);
    const std::vector<int> order = elimination_order(given);
    problem_ = reordered(std::move(given), order);
    factors_ = take_pair_factors(problem_);
    for (std::size_t edge = 0; edge < factors_.size(); ++edge)
      asked_.emplace_back(factors_[edge].values.size(), table.edge_at_hand(static_cast<int>(edge)));
  }

  std::optional<std::vector<int>> run(std::size_t table_entries) {
    for (;;) {
      const Elimination elimination(problem_, factors_, 0, table_entries);
      if (!elimination.exact()) return {};
      std::vector<int> best = elimination.decode();
      if (!ask_for(best)) return problem_.in_table(best);
      // The elimination reads new edge costs in its factors, but its messages hold old ones. So
      // further assignments that it decodes prove nothing. They take almost no time, though, and
      // show which edge costs to request next.
      constexpr int further = 7;
      for (int i = 0; i < further && ask_for(elimination.decode()); ++i) {
      }
    }
  }

 private:
  /// Requests the edge costs of an assignment. Returns whether any of them was new.
  bool ask_for(const std::vector<int>& assignment) {
    bool any = false;
    const auto edges = table_.edges();
    for (std::size_t edge = 0; edge < factors_.size(); ++edge) {
      const auto from = static_cast<std::size_t>(factors_[edge].scope[0]),
                 to = static_cast<std::size_t>(factors_[edge].scope[1]);
      const auto i = static_cast<std::size_t>(assignment[from]),
                 j = static_cast<std::size_t>(assignment[to]);
      const std::size_t place = i * factors_[edge].strides[0] + j;
      if (asked_[edge][place]) continue;
      const int a = problem_.candidates[from][i], b = problem_.candidates[to][j];
      const bool turned = problem_.origin[from] != edges[edge].from;
      factors_[edge].values[place] = (turned ? table_.edge_cost(static_cast<int>(edge), b, a)
                                             : table_.edge_cost(static_cast<int>(edge), a, b))
                                         .value;
      asked_[edge][place] = any = true;
    }
    return any;
  }

  const CostTable& table_;
  Problem problem_;
  /// per edge of the table: exact costs where requested, bounds elsewhere
  std::vector<Factor> factors_;
  std::vector<std::vector<bool>> asked_;
};

}  // namespace

std::optional<std::vector<int>> lazy_search(const CostTable& table, std::size_t table_entries) {
  const Survivors all = within_memory(table, {});
  const Incumbent incumbent = descend(table, all, {}, greedy_assignment(table, all));
  return LazySearch(table, below(table, all, incumbent.cost)).run(table_entries);
}

}  // namespace stratplan
