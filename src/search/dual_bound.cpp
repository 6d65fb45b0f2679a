#include "search/dual_bound.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "model/base/index.hpp"
#include "search/numbers.hpp"

namespace stratplan {
namespace {

/// If the first pass's bound is further below the limit than this share, the second is rough, too.
constexpr double far = 0.05;

double least_of(const std::vector<double>& costs) { return *std::ranges::min_element(costs); }

}  // namespace

DualBound::DualBound(const LargeTable& table, double limit, Stop stop)
    : table_(table),
      limit_(limit),
      stop_(std::move(stop)),
      parent_(at(table.nodes()), -1),
      parent_edge_(at(table.nodes()), -1),
      children_(at(table.nodes())),
      besides_of_low_(at(table.nodes())),
      besides_of_high_(at(table.nodes())),
      to_parent_(at(table.nodes())),
      completion_(at(table.nodes())),
      root_(at(table.nodes()), -1),
      least_(at(table.nodes())) {
  span();
  for (int node = 0; node < table.nodes(); ++node) {
    own_.emplace_back(table.node_costs(node).begin(), table.node_costs(node).end());
    from_parent_.emplace_back(own_.back().size(), 0);
  }
  below_ = own_;
  for (const int node : order_) {
    if (parent_[at(node)] < 0) continue;
    children_[at(parent_[at(node)])].push_back(node);
    to_parent_[at(node)].assign(own_[at(parent_[at(node)])].size(), 0);
  }
  std::vector<int> place(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) place[at(order_[i])] = static_cast<int>(i);
  for (int edge = 0; edge < static_cast<int>(table.edges().size()); ++edge) {
    auto [low, high] = table.edges()[at(edge)];
    if (place[at(low)] > place[at(high)]) std::swap(low, high);
    if (parent_edge_[at(high)] == edge) continue;
    besides_of_low_[at(low)].push_back(static_cast<int>(besides_.size()));
    besides_of_high_[at(high)].push_back(static_cast<int>(besides_.size()));
    besides_.push_back(
        {edge, low, high, Costs(own_[at(low)].size(), 0), Costs(own_[at(high)].size(), 0)});
  }
}

/// Builds the spanning tree by depth-first search, and stores its nodes in preorder.
void DualBound::span() {
  const auto edges = table_.edges();
  std::vector<std::vector<std::pair<int, int>>> ways(at(table_.nodes()));  // other end, edge
  for (int edge = 0; edge < static_cast<int>(edges.size()); ++edge) {
    ways[at(edges[at(edge)].from)].emplace_back(edges[at(edge)].to, edge);
    ways[at(edges[at(edge)].to)].emplace_back(edges[at(edge)].from, edge);
  }
  for (auto& of_node : ways) std::ranges::sort(of_node, std::greater{});
  for (int root = 0; root < table_.nodes(); ++root) {
    std::vector<int> path;
    const auto enter = [&](int node) {
      root_[at(node)] = root;
      order_.push_back(node);
      path.push_back(node);
    };
    if (root_[at(root)] < 0) enter(root);
    while (!path.empty()) {
      const int node = path.back();
      if (ways[at(node)].empty()) {
        path.pop_back();
        continue;
      }
      const auto [next, edge] = ways[at(node)].back();
      ways[at(node)].pop_back();
      if (root_[at(next)] >= 0) continue;
      parent_[at(next)] = node;
      parent_edge_[at(next)] = edge;
      enter(next);
    }
  }
}

void DualBound::restrict_to(const std::vector<std::vector<int>>& few) {
  for (int node = 0; node < table_.nodes(); ++node) {
    Costs kept(own_[at(node)].size(), infinity);
    for (const int candidate : few[at(node)]) kept[at(candidate)] = own_[at(node)][at(candidate)];
    own_[at(node)] = below_[at(node)] = std::move(kept);
  }
}

void DualBound::expect(const std::vector<int>& assignment) {
  std::vector<double> subtree(at(table_.nodes()), 0);
  for (auto place = order_.rbegin(); place != order_.rend(); ++place) {
    const int node = *place;
    subtree[at(node)] += own_[at(node)][at(assignment[at(node)])];
    if (parent_[at(node)] < 0) continue;
    const auto [from, to] = table_.edges()[at(parent_edge_[at(node)])];
    subtree[at(parent_[at(node)])] +=
        subtree[at(node)] +
        table_.edge_cost(parent_edge_[at(node)], assignment[at(from)], assignment[at(to)]);
  }
  for (int node = 0; node < table_.nodes(); ++node) {
    Costs& beyond = from_parent_[at(node)];
    beyond.assign(beyond.size(), subtree[at(root_[at(node)])] - subtree[at(node)]);
  }
}

DualBound::Costs DualBound::through(int edge, int from_node, const Costs& costs,
                                    const Costs& limits) const {
  const bool forward = table_.edges()[at(edge)].from == from_node;
  return table_.through(edge, forward, costs, limits, rough_);
}

void DualBound::gather(int node) {
  below_[at(node)] = own_[at(node)];
  for (const int child : children_[at(node)]) add_to(below_[at(node)], to_parent_[at(child)]);
}

/// The sum of the lower bounds of the trees that do not contain the node.
double DualBound::other_trees(int node) const {
  double others = 0;
  for (int root = 0; root < table_.nodes(); ++root)
    if (root_[at(root)] == root && root != root_[at(node)]) others += least_[at(root)];
  return others;
}

/// Returns, by candidate of the child's parent, a lower bound of the tree's cost without the
/// child's subtree.
DualBound::Costs DualBound::without(int child) const {
  const int node = parent_[at(child)];
  Costs costs = own_[at(node)];
  for (const int other : children_[at(node)])
    if (other != child) add_to(costs, to_parent_[at(other)]);
  add_to(costs, from_parent_[at(node)]);
  return costs;
}

/// Computes lower bounds of whole assignments for a node's candidates, and rules out candidates at
/// or above the limit.
void DualBound::settle(int node) {
  const double others = other_trees(node);
  Costs& completion = completion_[at(node)] = below_[at(node)];
  add_to(completion, from_parent_[at(node)]);
  if (descents_ > 0) least_[at(root_[at(node)])] = least_of(completion);
  for (double& seconds : completion) seconds += others;
  if (descents_ == 0) return;  // before the first descent, costs outside the subtree are guesses
  for (std::size_t i = 0; i < completion.size(); ++i)
    if (completion[i] >= limit_) completion[i] = own_[at(node)][i] = below_[at(node)][i] = infinity;
  bound_ = std::max(bound_, std::min(limit_, least_of(completion)));
}

/// Returns the limits of a message to the node. The message need not be exact where its sum with
/// `costs` exceeds the limit on an assignment's cost.
DualBound::Costs DualBound::room(int node, const Costs& costs) const {
  const double others = other_trees(node);
  Costs limits(costs);
  for (double& seconds : limits) seconds = limit_ - others - seconds;
  return limits;
}

/// Moves a share of each candidate's cost above the bound into a non-tree edge. Then charges each
/// candidate at the other end with the least cost of the edge. `upward`: from the edge's high node
/// to its low node.
void DualBound::lend(Beside& beside, bool upward, double share) {
  const int lender = upward ? beside.high : beside.low,
            borrower = upward ? beside.low : beside.high;
  Costs &lent = upward ? beside.at_high : beside.at_low,
        &charged = upward ? beside.at_low : beside.at_high;
  const Costs& completion = completion_[at(lender)];
  const double least = least_of(completion);
  if (least == infinity) return;
  Costs costs(lent.size(), infinity);
  for (std::size_t i = 0; i < lent.size(); ++i) {
    if (completion[i] == infinity) continue;
    const double excess = share * (completion[i] - least);
    lent[i] -= excess;
    own_[at(lender)][i] -= excess;
    costs[i] = -lent[i];
  }
  // A charge that just rules out a candidate is large enough.
  Costs limits(charged);
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const double missing = limit_ - completion_[at(borrower)][i];
    limits[i] = own_[at(borrower)][i] == infinity ? -infinity : limits[i] + std::max(0.0, missing);
  }
  Costs least_charge = through(beside.edge, lender, costs, limits);
  for (std::size_t i = 0; i < charged.size(); ++i) {
    if (own_[at(borrower)][i] == infinity) continue;
    const double charge = std::min(least_charge[i], limits[i]);
    own_[at(borrower)][i] += charge - charged[i];
    charged[i] = charge;
  }
}

void DualBound::lend_all(const std::vector<int>& besides, bool upward) {
  for (const int beside : besides)
    lend(besides_[at(beside)], upward, 1.0 / static_cast<double>(besides.size() + 1));
}

/// Raises the bound to what the first ascent knows that has reached the nodes of `order_` from this
/// place on. Messages to other nodes are not counted yet.
void DualBound::count_reached(std::size_t place) {
  double sum = 0;
  std::vector<bool> reached(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const int node = order_[i], parent = parent_[at(node)];
    reached[at(node)] = i >= place;
    if (!reached[at(node)]) sum += least_of(own_[at(node)]);
    if (reached[at(node)] && (parent < 0 || !reached[at(parent)]))
      sum += least_of(below_[at(node)]);
  }
  bound_ = std::max(bound_, std::min(limit_, sum));
}

void DualBound::ascend() {
  rough_ = descents_ == 0 || (descents_ == 1 && bound_ < limit_ * (1 - far));
  std::size_t place = order_.size();
  for (; place > 0 && !says_stop(stop_); --place) {
    const int node = order_[place - 1];
    gather(node);
    settle(node);
    if (descents_ > 0) lend_all(besides_of_high_[at(node)], true);
    gather(node);
    if (const int parent = parent_[at(node)]; parent >= 0)
      to_parent_[at(node)] =
          through(parent_edge_[at(node)], node, below_[at(node)], room(parent, without(node)));
  }
  if (descents_ == 0) count_reached(place);
}

void DualBound::descend() {
  if (says_stop(stop_)) return;
  ++descents_;
  for (const int node : order_) {
    if (says_stop(stop_)) return;
    gather(node);
    if (const int parent = parent_[at(node)]; parent >= 0)
      from_parent_[at(node)] =
          through(parent_edge_[at(node)], parent, without(node), room(node, below_[at(node)]));
    settle(node);
    lend_all(besides_of_low_[at(node)], false);
  }
}

std::size_t DualBound::most_survivors() const {
  std::ptrdiff_t most = 0;
  for (const Costs& costs : completion_)
    most = std::max(
        most, std::ranges::count_if(costs, [](double seconds) { return seconds < infinity; }));
  return static_cast<std::size_t>(most);
}

std::vector<int> DualBound::follow() {
  std::vector<int> assignment(at(table_.nodes()));
  for (const int node : order_) {
    gather(node);
    Costs costs = below_[at(node)];
    const auto charge = [&](int edge, int known) {
      Costs limits(costs);
      for (double& seconds : limits) seconds = seconds < infinity ? infinity : -infinity;
      add_to(costs, table_.through_one(edge, table_.edges()[at(edge)].from == known,
                                       assignment[at(known)], limits));
    };
    if (parent_[at(node)] >= 0) charge(parent_edge_[at(node)], parent_[at(node)]);
    for (const int index : besides_of_high_[at(node)]) {
      const Beside& beside = besides_[at(index)];
      for (std::size_t i = 0; i < costs.size(); ++i) costs[i] -= beside.at_high[i];
      charge(beside.edge, beside.low);
    }
    assignment[at(node)] = static_cast<int>(std::ranges::min_element(costs) - costs.begin());
  }
  return assignment;
}

}  // namespace stratplan
