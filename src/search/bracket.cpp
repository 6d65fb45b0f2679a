#include "search/bracket.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "model/base/assert.hpp"

namespace stratplan {
namespace {

/// More candidates are taken in as long as the gap shrinks to this part of itself.
constexpr double worthwhile = 0.95;
constexpr double infinity = std::numeric_limits<double>::infinity();

std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Edges of a spanning forest: each node's to the latest node before it that it shares an edge with.
class SpanningTree {
 public:
  explicit SpanningTree(const WideTable& table) : parent_edge_(at(table.nodes()), -1), parent_(at(table.nodes()), -1) {
    for (int edge = 0; edge < static_cast<int>(table.edges().size()); ++edge) {
      const auto [from, to] = table.edges()[at(edge)];
      const int child = std::max(from, to), parent = std::min(from, to);
      if (parent <= parent_[at(child)]) continue;
      parent_[at(child)] = parent;
      parent_edge_[at(child)] = edge;
    }
  }
  int parent(int node) const { return parent_[at(node)]; }
  int parent_edge(int node) const { return parent_edge_[at(node)]; }

 private:
  std::vector<int> parent_edge_, parent_;
};

/// What candidates at the other end cost at least, given `cost` of those at this end, through one edge; by candidate of the other end. Above `limit` it may be
/// anything above.
std::vector<double> message(const WideTable& table, int edge, bool forward, const std::vector<double>& cost, double limit) {
  const WideTable::End from = table.from_end(edge), to = table.to_end(edge);
  const WideTable::End &here = forward ? from : to, &there = forward ? to : from;
  const std::span<const double> same = table.same_label(edge);
  std::vector<double> by_label(at(here.labels), infinity), by_kind(at(here.kinds), infinity);
  const auto lower = [](double& value, double other) { value = std::min(value, other); };
  for (std::size_t c = 0; c < cost.size(); ++c) {
    lower(by_label[at(here.label[c])], forward ? cost[c] : cost[c] + same[c]);
    lower(by_kind[at(here.kind[c])], cost[c]);
  }
  std::vector<std::pair<double, int>> kinds;  // cheapest first
  for (int kind = 0; kind < here.kinds; ++kind)
    if (by_kind[at(kind)] < limit) kinds.emplace_back(by_kind[at(kind)], kind);
  std::ranges::sort(kinds);
  std::vector<double> changed(at(there.kinds));
  for (int other = 0; other < there.kinds; ++other) {
    double best = limit;
    for (const auto& [seconds, kind] : kinds) {
      if (seconds >= best) break;
      lower(best, seconds + (forward ? table.change_of_label(edge, kind, other) : table.change_of_label(edge, other, kind)));
    }
    changed[at(other)] = best;
  }
  std::vector<double> result(there.label.size());
  for (std::size_t c = 0; c < result.size(); ++c)
    result[c] = std::min(changed[at(there.kind[c])], by_label[at(there.label[c])] + (forward ? same[c] : 0));
  return result;
}

void add_to(std::vector<double>& sum, const std::vector<double>& terms, double sign = 1) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += sign * terms[i];
}

}  // namespace

double cost_of(const WideTable& table, const std::vector<int>& assignment) {
  double cost = 0;
  for (int node = 0; node < table.nodes(); ++node) cost += table.node_costs(node)[at(assignment[at(node)])];
  for (int edge = 0; edge < static_cast<int>(table.edges().size()); ++edge) {
    const auto [from, to] = table.edges()[at(edge)];
    cost += table.edge_cost(edge, assignment[at(from)], assignment[at(to)]);
  }
  return cost;
}

std::vector<std::vector<double>> completion_bounds(const WideTable& table, double limit) {
  const SpanningTree tree(table);
  const int nodes = table.nodes();
  const auto forward_to_parent = [&](int node) { return table.edges()[at(tree.parent_edge(node))].from == node; };
  std::vector<std::vector<double>> belief(at(nodes)), upward(at(nodes));
  std::vector<double> least(at(nodes));  // of a node and all below it, without edges
  for (int node = 0; node < nodes; ++node) {
    belief[at(node)].assign(table.node_costs(node).begin(), table.node_costs(node).end());
    least[at(node)] = *std::ranges::min_element(belief[at(node)]);
  }
  const double whole = std::accumulate(least.begin(), least.end(), 0.0);
  double others = 0;  // of trees already closed
  for (int node = nodes - 1; node >= 0; --node) {
    if (tree.parent(node) < 0) {
      others += *std::ranges::min_element(belief[at(node)]);
      continue;
    }
    // What costs more than this cannot be completed below the limit: each node left costs its least.
    const double room = limit - (whole - least[at(node)]);
    upward[at(node)] = message(table, tree.parent_edge(node), forward_to_parent(node), belief[at(node)], room);
    add_to(belief[at(tree.parent(node))], upward[at(node)]);
    least[at(tree.parent(node))] += least[at(node)];
  }
  std::vector<double> rest(at(nodes));  // least cost of the trees that a node is not in
  for (int node = 0; node < nodes; ++node) {
    if (tree.parent(node) < 0) {
      rest[at(node)] = others - *std::ranges::min_element(belief[at(node)]);
      continue;
    }
    std::vector<double> without = belief[at(tree.parent(node))];
    add_to(without, upward[at(node)], -1);
    add_to(belief[at(node)], message(table, tree.parent_edge(node), !forward_to_parent(node), without, limit - least[at(node)]));
    rest[at(node)] = rest[at(tree.parent(node))];
  }
  for (int node = 0; node < nodes; ++node)
    for (double& bound : belief[at(node)]) bound += rest[at(node)];
  return belief;
}

namespace {

/// Some candidates of each node of a wide table.
class Selection final : public CostTable {
 public:
  Selection(const WideTable& table, const std::vector<std::vector<int>>& chosen) : table_(table), chosen_(chosen) {
    std::map<std::pair<int, int>, std::size_t> known;
    for (int edge = 0; edge < static_cast<int>(table.edges().size()); ++edge) {
      const auto [from, to] = table.edges()[at(edge)];
      const auto [place, fresh] = known.try_emplace({std::min(from, to), std::max(from, to)}, edges_.size());
      if (fresh) {
        edges_.push_back({std::min(from, to), std::max(from, to)});
        parts_.emplace_back();
      }
      parts_[place->second].push_back(edge);
    }
  }

  int nodes() const override { return table_.nodes(); }
  std::string node_name(int node) const override { return table_.node_name(node); }
  int candidates(int node) const override { return static_cast<int>(chosen_[at(node)].size()); }
  std::span<const Edge> edges() const override { return edges_; }
  Seconds node_cost(int node, int candidate) const override { return {table_.node_costs(node)[at(chosen_[at(node)][at(candidate)])]}; }
  Bytes node_memory(int node, int candidate) const override { return {table_.memory(node)[at(chosen_[at(node)][at(candidate)])]}; }
  Seconds edge_cost(int edge, int from_candidate, int to_candidate) const override {
    const int low = chosen_[at(edges_[at(edge)].from)][at(from_candidate)], high = chosen_[at(edges_[at(edge)].to)][at(to_candidate)];
    double cost = 0;
    for (const int part : parts_[at(edge)])
      cost += table_.edges()[at(part)].from == edges_[at(edge)].from ? table_.edge_cost(part, low, high) : table_.edge_cost(part, high, low);
    return {cost};
  }
  /// Few candidates a node: all pairs are asked for at once.
  bool edges_at_hand() const override { return true; }

 private:
  const WideTable& table_;
  const std::vector<std::vector<int>>& chosen_;
  std::vector<Edge> edges_;
  std::vector<std::vector<int>> parts_;
};

class Bracketing {
 public:
  Bracketing(const WideTable& table, const BracketOptions& options) : table_(table), options_(options), chosen_(at(table.nodes())) {}

  std::optional<Bracket> run(const std::vector<std::vector<int>>& known) {
    for (const std::vector<int>& assignment : known) offer(assignment);
    if (found_) improve();
    bounds_ = completion_bounds(table_, found_ ? best_.cost : infinity);
    best_.lower_bound = *std::ranges::min_element(bounds_.front());
    for (std::size_t candidates = options_.first_candidates;; candidates *= 2) {
      const double gap_before = found_ ? best_.gap() : infinity;
      const double left_out = choose(std::min(candidates, options_.most_candidates));
      const std::optional<double> optimum = solve();
      if (!optimum) return std::nullopt;
      improve();
      best_.lower_bound = std::max(best_.lower_bound, std::min({*optimum, left_out, best_.cost}));
      if (best_.gap() <= options_.tolerance || candidates >= options_.most_candidates || best_.gap() > gap_before * worthwhile) break;
    }
    return best_;
  }

 private:
  Bytes memory_of(const std::vector<int>& assignment) const {
    Bytes sum{};
    for (int node = 0; node < table_.nodes(); ++node) sum += Bytes{table_.memory(node)[at(assignment[at(node)])]};
    return sum;
  }

  void offer(const std::vector<int>& assignment) {
    if (options_.memory_limit && memory_of(assignment) > *options_.memory_limit) return;
    const double cost = cost_of(table_, assignment);
    if (found_ && cost >= best_.cost) return;
    best_.assignment = assignment;
    best_.cost = cost;
    found_ = true;
  }

  /// Each node's most promising candidates, as many as `count`. Whatever has another one costs at least what is returned.
  double choose(std::size_t count) {
    double left_out = infinity;
    const double limit = found_ ? best_.cost : infinity;
    for (int node = 0; node < table_.nodes(); ++node) {
      const std::vector<double>& bound = bounds_[at(node)];
      std::vector<int> order;
      for (int candidate = 0; candidate < static_cast<int>(bound.size()); ++candidate)
        if (bound[at(candidate)] < limit) order.push_back(candidate);
      if (order.size() > count) {
        const auto next = order.begin() + static_cast<std::ptrdiff_t>(count);
        std::ranges::nth_element(order, next, {}, [&](int candidate) { return std::pair(bound[at(candidate)], candidate); });
        left_out = std::min(left_out, bound[at(*next)]);
        order.resize(count);
      }
      std::vector<int>& chosen = chosen_[at(node)];
      chosen.insert(chosen.end(), order.begin(), order.end());
      if (found_) chosen.push_back(best_.assignment[at(node)]);
      tidy(chosen);
    }
    return left_out;
  }

  static void tidy(std::vector<int>& chosen) {
    std::ranges::sort(chosen);
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  }

  /// The least cost of the chosen candidates' assignments, or what is proven of it; nothing if none satisfies the limit.
  std::optional<double> solve() {
    const Selection selection(table_, chosen_);
    const auto result = search(selection, options_.memory_limit);
    if (!result) return {};
    std::vector<int> assignment;
    for (int node = 0; node < table_.nodes(); ++node) assignment.push_back(chosen_[at(node)][at(result->assignment[at(node)])]);
    offer(assignment);
    return result->lower_bound.value;
  }

  /// One node at a time over all of its candidates; what is found is in the next exact search.
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
      for (int node = 0; node < table_.nodes(); ++node) improved = improve(node, incident[at(node)]) || improved;
    }
    best_.cost = cost_of(table_, best_.assignment);
  }

  bool improve(int node, const std::vector<int>& incident) {
    std::vector<int>& assignment = best_.assignment;
    const auto edge_cost = [&](int edge, int candidate) {
      const auto [from, to] = table_.edges()[at(edge)];
      return from == node ? table_.edge_cost(edge, candidate, assignment[at(to)]) : table_.edge_cost(edge, assignment[at(from)], candidate);
    };
    const std::span<const double> costs = table_.node_costs(node);
    const int current = assignment[at(node)];
    double best = costs[at(current)];
    for (const int edge : incident) best += edge_cost(edge, current);
    std::vector<double> least(costs.begin(), costs.end());
    for (const int edge : incident) add_least(edge, node, least);
    std::vector<int> order;
    for (int candidate = 0; candidate < static_cast<int>(least.size()); ++candidate)
      if (least[at(candidate)] < best) order.push_back(candidate);
    std::ranges::sort(order, {}, [&](int candidate) { return std::pair(least[at(candidate)], candidate); });
    constexpr std::size_t most_asked = 200;
    if (order.size() > most_asked) order.resize(most_asked);
    Bytes room{std::numeric_limits<std::int64_t>::max()};
    if (options_.memory_limit) room = *options_.memory_limit - memory_of(assignment) + Bytes{table_.memory(node)[at(current)]};
    int chosen = current;
    for (const int candidate : order) {
      if (least[at(candidate)] >= best) break;
      if (table_.memory(node)[at(candidate)] > room.value) continue;
      double cost = costs[at(candidate)];
      for (const int edge : incident) cost += edge_cost(edge, candidate);
      if (cost >= best * (1 - 1e-12)) continue;
      best = cost;
      chosen = candidate;
    }
    if (chosen == current) return false;
    assignment[at(node)] = chosen;
    chosen_[at(node)].push_back(chosen);
    tidy(chosen_[at(node)]);
    return true;
  }

  /// Adds what the edge costs at least to each candidate of `node`, with the other end as it is now.
  void add_least(int edge, int node, std::vector<double>& least) const {
    const auto [from, to] = table_.edges()[at(edge)];
    const bool forward = to == node;  // from the fixed end
    const WideTable::End a = table_.from_end(edge), b = table_.to_end(edge);
    const WideTable::End &fixed = forward ? a : b, &moving = forward ? b : a;
    const std::span<const double> same = table_.same_label(edge);
    const auto other = at(best_.assignment[at(forward ? from : to)]);
    std::vector<double> change;
    for (int kind = 0; kind < moving.kinds; ++kind)
      change.push_back(forward ? table_.change_of_label(edge, fixed.kind[other], kind) : table_.change_of_label(edge, kind, fixed.kind[other]));
    for (std::size_t c = 0; c < least.size(); ++c)
      least[c] += moving.label[c] == fixed.label[other] ? same[forward ? c : other] : change[at(moving.kind[c])];
  }

  const WideTable& table_;
  const BracketOptions& options_;
  std::vector<std::vector<double>> bounds_;
  std::vector<std::vector<int>> chosen_;
  Bracket best_;
  bool found_ = false;
};

}  // namespace

std::optional<Bracket> bracket(const WideTable& table, const std::vector<std::vector<int>>& known, const BracketOptions& options) {
  if (table.nodes() == 0) return Bracket{};
  return Bracketing(table, options).run(known);
}

}  // namespace stratplan
