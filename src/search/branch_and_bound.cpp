#include "search/branch_and_bound.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "model/base/assert.hpp"
#include "model/base/in_parallel.hpp"
#include "model/base/index.hpp"
#include "model/base/sorted_range.hpp"
#include "search/dual_bound.hpp"
#include "search/least_by_bounds.hpp"
#include "search/numbers.hpp"

namespace stratplan {
namespace {

/// With this many candidates per node the exact search takes negligible time.
constexpr std::size_t few_enough = 40;
/// An assignment that costs at most this many times the sum of the nodes' least costs is good
/// enough to rule out candidates. No better assignment is looked for before the bounds are
/// computed.
constexpr double nearly = 1.02;
/// Most searches among the same candidates. Each search knows more exact edge costs than the one
/// before.
constexpr int most_searches = 8;
constexpr double rounding = 1e-12;

}  // namespace

double cost_of(const LargeTable& table, const std::vector<int>& assignment) {
  double cost = 0;
  for (int node = 0; node < table.nodes(); ++node)
    cost += table.node_costs(node)[at(assignment[at(node)])];
  for (int edge = 0; edge < static_cast<int>(table.edges().size()); ++edge) {
    const auto [from, to] = table.edges()[at(edge)];
    cost += table.edge_cost(edge, assignment[at(from)], assignment[at(to)]);
  }
  return cost;
}

Bytes memory_of(const LargeTable& table, const std::vector<int>& assignment) {
  Bytes sum{};
  for (int node = 0; node < table.nodes(); ++node)
    sum += Bytes{table.memory(node)[at(assignment[at(node)])]};
  return sum;
}

namespace {

/// A cost table over some candidates of each node of a large table. Each edge cost is replaced by
/// its lower bound.
class Selection final : public CostTable {
 public:
  Selection(const LargeTable& table, const std::vector<std::vector<int>>& chosen)
      : table_(table), chosen_(chosen) {
    std::map<std::pair<int, int>, std::size_t> known;
    for (int edge = 0; edge < static_cast<int>(table.edges().size()); ++edge) {
      const auto [from, to] = table.edges()[at(edge)];
      const auto [place, fresh] =
          known.try_emplace({std::min(from, to), std::max(from, to)}, edges_.size());
      if (fresh) {
        edges_.push_back({std::min(from, to), std::max(from, to)});
        parts_.emplace_back();
      }
      parts_[place->second].push_back(edge);
    }
    for (std::size_t edge = 0; edge < table.edges().size(); ++edge)
      bounds_.emplace_back(at_from(edge).size() * at_to(edge).size());
    set_bounds(
        [&](int edge, int from, int to, double) { return table.edge_bound(edge, from, to); });
  }

  /// Takes over the exact edge costs that the large table knows by now.
  void learn() {
    set_bounds([&](int edge, int from, int to, double bound) {
      return table_.known_cost(edge, from, to).value_or(bound);
    });
  }

  int nodes() const override { return table_.nodes(); }
  std::string node_name(int node) const override { return table_.node_name(node); }
  int candidates(int node) const override { return static_cast<int>(chosen_[at(node)].size()); }
  std::span<const Edge> edges() const override { return edges_; }
  Seconds node_cost(int node, int candidate) const override {
    return {table_.node_costs(node)[at(chosen_[at(node)][at(candidate)])]};
  }
  Bytes node_memory(int node, int candidate) const override {
    return {table_.memory(node)[at(chosen_[at(node)][at(candidate)])]};
  }
  Seconds edge_cost(int edge, int from_candidate, int to_candidate) const override {
    double cost = 0;
    for (const int part : parts_[at(edge)]) {
      const bool same_way = table_.edges()[at(part)].from == edges_[at(edge)].from;
      const int from = same_way ? from_candidate : to_candidate,
                to = same_way ? to_candidate : from_candidate;
      cost += bounds_[at(part)][at(from) * at_to(at(part)).size() + at(to)];
    }
    return {cost};
  }
  /// There are few candidates per node, so all pairs may be requested at once.
  bool edges_at_hand() const override { return true; }

 private:
  /// Sets each bound to `bound_of`(edge, from, to, the bound so far), on all cores.
  void set_bounds(const auto& bound_of) {
    in_parallel(bounds_.size(), [&](std::size_t edge) {
      auto bound = bounds_[edge].begin();
      for (const int from : at_from(edge))
        for (const int to : at_to(edge)) {
          *bound = bound_of(static_cast<int>(edge), from, to, *bound);
          ++bound;
        }
    });
  }
  const std::vector<int>& at_from(std::size_t edge) const {
    return chosen_[at(table_.edges()[edge].from)];
  }
  const std::vector<int>& at_to(std::size_t edge) const {
    return chosen_[at(table_.edges()[edge].to)];
  }

  const LargeTable& table_;
  const std::vector<std::vector<int>>& chosen_;
  std::vector<Edge> edges_;
  std::vector<std::vector<int>> parts_;
  /// by edge of the large table, row-major over the chosen candidates of (from, to)
  std::vector<std::vector<double>> bounds_;
};

class BranchAndBound {
  using Candidates = std::vector<std::vector<int>>;  ///< by node

 public:
  BranchAndBound(const LargeTable& table, const BranchAndBoundOptions& options)
      : table_(table), options_(options), chosen_(at(table.nodes())) {}

  std::optional<BoundedSolution> run(const std::vector<std::vector<int>>& known,
                                     const std::vector<std::vector<int>>& few) {
    for (const std::vector<int>& assignment : known) {
      offer(assignment);
      least_known_ = std::min(least_known_, cost_of(table_, assignment));
    }
    if (found_) improve();
    if (!few.empty() && found_ && !says_stop(options_.stop) && best_.cost > nearly * least_nodes())
      look_among(few, 2);
    const double ignored_from = limit();
    bound();
    if (found_ && (best_.gap() <= options_.tolerance || says_stop(options_.stop))) return best_;
    const double left_out = choose(options_.most_candidates, chosen_);
    if (std::ranges::any_of(chosen_, [](const auto& chosen) { return chosen.empty(); }))
      return std::nullopt;
    const std::optional<double> optimum = solve(chosen_, left_out);
    if (!optimum) return std::nullopt;
    improve();
    best_.lower_bound =
        std::max(best_.lower_bound, std::min({*optimum, left_out, best_.cost, ignored_from}));
    return best_;
  }

  std::vector<int> run_among(std::vector<std::vector<int>>& few, const std::vector<int>& known) {
    offer(known);
    look_among(few, 1);
    few.assign(few.size(), {});
    choose(few_enough, few);
    return best_.assignment;
  }

 private:
  /// The sum of the nodes' least costs, without edges.
  double least_nodes() const {
    double sum = 0;
    for (int node = 0; node < table_.nodes(); ++node)
      sum += *std::ranges::min_element(table_.node_costs(node));
    return sum;
  }

  void look_among(const std::vector<std::vector<int>>& few, int passes) {
    DualBound& dual = dual_.emplace(table_, found_ ? best_.cost : infinity);
    dual.restrict_to(few);
    for (int pass = 0; pass < passes; ++pass) {
      dual.ascend();
      dual.descend();
      if (offer(dual.follow())) improve();
      look_among_best();
      dual.lower_limit(best_.cost);
    }
  }

  /// The cost from which on assignments are ignored. If no known assignment satisfies the memory
  /// limit, the best one within the limit is assumed to cost at most `for_memory` times the
  /// cheapest known one.
  double limit() const {
    constexpr double for_memory = 2;
    return found_ ? best_.cost : for_memory * least_known_;
  }

  /// Runs passes of the dual bound while they help.
  void bound() {
    constexpr int most_passes = 40;
    // At the last pass's rate, so many more passes must be enough to close the gap.
    constexpr double hopeful = 16;
    const double worthwhile = options_.memory_limit ? 0.002 : 0.0003;
    // With a memory limit, the exact search takes longer.
    const std::size_t enough = options_.memory_limit ? few_enough : options_.most_candidates;
    DualBound& dual = dual_.emplace(table_, limit(), options_.stop);
    if (found_) dual.expect(best_.assignment);
    for (int pass = 0; pass < most_passes; ++pass) {
      const double bound_before = best_.lower_bound, cost_before = best_.cost;
      dual.ascend();
      best_.lower_bound = std::max(best_.lower_bound, dual.bound());
      if (found_ && best_.gap() <= rounding) break;
      dual.descend();
      best_.lower_bound = std::max(best_.lower_bound, dual.bound());
      if (says_stop(options_.stop)) break;
      if (offer(dual.follow())) improve();
      if (best_.gap() > options_.tolerance) look_among_best();
      if (found_) dual.lower_limit(best_.cost);
      const double gain = best_.lower_bound - bound_before;
      const bool helped = (gain > worthwhile * best_.lower_bound &&
                           best_.cost - best_.lower_bound < hopeful * gain) ||
                          best_.cost < cost_before;
      if ((!helped && !dual.was_rough()) || (found_ && best_.gap() <= options_.tolerance) ||
          dual.most_survivors() <= enough)
        break;
    }
  }

  /// Searches among the currently most promising candidates. A better assignment lowers limit(), so
  /// that the next pass rules out more candidates.
  void look_among_best() {
    if (!found_ || options_.memory_limit)
      return;  // with a memory limit the exact search may take long
    Candidates promising(at(table_.nodes()));
    choose(few_enough, promising);
    const double before = best_.cost;
    solve(promising, infinity);
    if (best_.cost < before) improve();
  }

  bool offer(const std::vector<int>& assignment) {
    if (options_.memory_limit && memory_of(table_, assignment) > *options_.memory_limit)
      return false;
    const double cost = cost_of(table_, assignment);
    if (found_ && cost >= best_.cost) return false;
    best_.assignment = assignment;
    best_.cost = cost;
    return found_ = true;
  }

  /// Adds each node's most promising candidates to `all_chosen`. An assignment with any other
  /// candidate costs at least the returned value, at least as much as the best known assignment, or
  /// at least the limit() with which the dual bound began.
  double choose(std::size_t count, Candidates& all_chosen) const {
    double left_out = infinity;
    const double limit = found_ ? best_.cost : infinity;
    for (int node = 0; node < table_.nodes(); ++node) {
      const std::vector<double>& bound = dual_->bounds(node);
      std::vector<int> order;
      for (int candidate = 0; candidate < static_cast<int>(bound.size()); ++candidate)
        if (bound[at(candidate)] < limit) order.push_back(candidate);
      if (order.size() > count) {
        const auto next = order.begin() + static_cast<std::ptrdiff_t>(count);
        std::ranges::nth_element(order, next, {}, [&](int candidate) {
          return std::pair(bound[at(candidate)], candidate);
        });
        left_out = std::min(left_out, bound[at(*next)]);
        order.resize(count);
      }
      std::vector<int>& chosen = all_chosen[at(node)];
      chosen.insert(chosen.end(), order.begin(), order.end());
      if (found_) chosen.push_back(best_.assignment[at(node)]);
      make_sorted_set(chosen);
    }
    return left_out;
  }

  /// Returns a proven lower bound of the cost over the assignments of chosen candidates within the
  /// memory limit; nothing if there is no such assignment. Each search finds the assignment that is
  /// best by the edges' bounds, and computes its exact edge costs. The searches end when these
  /// costs confirm the bounds, or when a lower bound of `enough` is proven.
  std::optional<double> solve(const Candidates& chosen, double enough) {
    Selection selection(table_, chosen);
    double proven = 0;
    for (int look = 0; look < most_searches; ++look) {
      const auto result = search(selection, options_.memory_limit);
      if (!result) return {};
      proven = std::max(proven, result->lower_bound.value);
      std::vector<int> assignment;
      for (int node = 0; node < table_.nodes(); ++node)
        assignment.push_back(chosen[at(node)][at(result->assignment[at(node)])]);
      offer(assignment);
      if (cost_of(table_, assignment) <= result->cost.value * (1 + rounding) || proven >= enough ||
          (found_ && best_.cost <= proven * (1 + options_.tolerance)))
        break;
      selection.learn();
    }
    return proven;
  }

  /// Improves the best assignment one node at a time, over all candidates of the node. The final
  /// exact search includes the candidates found here.
  void improve() {
    std::vector<std::vector<int>> incident(at(table_.nodes()));
    for (int edge = 0; edge < static_cast<int>(table_.edges().size()); ++edge) {
      incident[at(table_.edges()[at(edge)].from)].push_back(edge);
      incident[at(table_.edges()[at(edge)].to)].push_back(edge);
    }
    constexpr int most_sweeps = 4;
    bool improved = true;
    for (int sweep = 0; improved && sweep < most_sweeps; ++sweep) {
      improved = false;
      for (int node = 0; node < table_.nodes(); ++node)
        improved = improve(node, incident[at(node)]) || improved;
    }
    best_.cost = cost_of(table_, best_.assignment);
  }

  bool improve(int node, const std::vector<int>& incident) {
    std::vector<int>& assignment = best_.assignment;
    const auto other_end = [&](int edge) {
      const auto [from, to] = table_.edges()[at(edge)];
      return from == node ? to : from;
    };
    const int current = assignment[at(node)];
    std::vector<double> costs(table_.node_costs(node).begin(), table_.node_costs(node).end());
    const auto cost_with = [&](int candidate) {
      const int kept = std::exchange(assignment[at(node)], candidate);
      double cost = table_.node_costs(node)[at(candidate)];
      for (const int edge : incident) {
        const auto [from, to] = table_.edges()[at(edge)];
        cost += table_.edge_cost(edge, assignment[at(from)], assignment[at(to)]);
      }
      assignment[at(node)] = kept;
      return cost;
    };
    const double best = cost_with(current);
    Bytes room{std::numeric_limits<std::int64_t>::max()};
    if (options_.memory_limit)
      room = *options_.memory_limit - memory_of(table_, assignment) +
             Bytes{table_.memory(node)[at(current)]};
    for (std::size_t c = 0; c < costs.size(); ++c)
      if (table_.memory(node)[c] > room.value) costs[c] = infinity;
    for (const int edge : incident) {
      std::vector<double> limits(costs);
      for (double& seconds : limits) seconds = best - seconds;
      add_to(costs, table_.through_one(edge, table_.edges()[at(edge)].to == node,
                                       assignment[at(other_end(edge))], limits));
    }
    const auto chosen = least_by_bounds(costs, best * (1 - rounding), cost_with);
    if (!chosen) return false;
    assignment[at(node)] = *chosen;
    chosen_[at(node)].push_back(*chosen);
    make_sorted_set(chosen_[at(node)]);
    return true;
  }

  const LargeTable& table_;
  BranchAndBoundOptions options_;
  std::optional<DualBound> dual_;
  Candidates chosen_;
  /// least cost of the known assignments, whether or not they satisfy the memory limit
  double least_known_ = infinity;
  BoundedSolution best_;
  bool found_ = false;
};

}  // namespace

std::optional<BoundedSolution> branch_and_bound(const LargeTable& table,
                                                const std::vector<std::vector<int>>& known,
                                                const BranchAndBoundOptions& options,
                                                const std::vector<std::vector<int>>& few) {
  if (table.nodes() == 0) return BoundedSolution{};
  return BranchAndBound(table, options).run(known, few);
}

std::vector<int> best_among(const LargeTable& table, std::vector<std::vector<int>>& few,
                            const std::vector<int>& known) {
  return BranchAndBound(table, {}).run_among(few, known);
}

}  // namespace stratplan
