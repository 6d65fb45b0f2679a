#include "search/arc_consistency.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "model/base/index.hpp"
#include "model/base/sorted_range.hpp"
#include "search/elimination.hpp"
#include "search/numbers.hpp"
#include "search/search.hpp"

namespace stratplan {

namespace {

/// The costs of one edge, in rows by candidate of `from`. A row lies in the table's memory, or is
/// filled on first use.
class EdgeRows {
 public:
  EdgeRows(const CostTable& table, int edge)
      : table_(table), edge_(edge), rows_(at(table.candidates(table.edges()[at(edge)].from))) {}

  /// Returns the edge's costs with this candidate of `from`, by candidate of `to`. Only the entries
  /// of the candidates in `alive` are valid.
  const double* row(int candidate, const std::vector<int>& alive) {
    const double*& row = rows_[at(candidate)];
    if (!row) row = find(candidate, alive);
    return row;
  }

 private:
  const double* find(int candidate, const std::vector<int>& alive) {
    const std::span<const double> at_hand = table_.edge_row(edge_, candidate);
    if (!at_hand.empty()) return at_hand.data();
    std::vector<double>& asked =
        asked_.emplace_back(at(table_.candidates(table_.edges()[at(edge_)].to)));
    for (const int other : alive)
      asked[at(other)] = table_.edge_cost(edge_, candidate, other).value;
    return asked.data();
  }

  const CostTable& table_;
  int edge_;
  std::vector<const double*> rows_;
  std::vector<std::vector<double>> asked_;  // rows_ points to its numbers, which never move
};

/// The current distribution of costs. With candidates i and j at its ends, an edge now costs
/// row(i)[j] - out_from[i] - out_to[j], which is never negative.
struct Costs {
  double constant = 0;
  std::vector<std::vector<double>> unary;  ///< by node and candidate
  std::vector<std::vector<double>> out_from,
      /// by edge and candidate: cost moved out of the edge to the candidate; negative if moved in
      out_to;
};

class ArcConsistency {
 public:
  ArcConsistency(const CostTable& table, Survivors survivors, std::optional<Bytes> memory_limit,
                 Incumbent incumbent)
      : table_(table),
        memory_limit_(memory_limit),
        alive_(std::move(survivors)),
        incumbent_(std::move(incumbent)),
        outgoing_(at(table.nodes())),
        incoming_(at(table.nodes())),
        next_joint_(at(table.nodes()), 0),
        promising_(at(table.nodes())) {
    for (int node = 0; node < table.nodes(); ++node) {
      std::vector<double>& unary = costs_.unary.emplace_back();
      for (int candidate = 0; candidate < table.candidates(node); ++candidate)
        unary.push_back(table.node_cost(node, candidate).value);
      settle(node);
    }
    for (int edge = 0; edge < static_cast<int>(table.edges().size()); ++edge) {
      const auto [from, to] = table.edges()[at(edge)];
      outgoing_[at(from)].push_back(edge);
      incoming_[at(to)].push_back(edge);
      costs_.out_from.emplace_back(at(table.candidates(from)));
      costs_.out_to.emplace_back(at(table.candidates(to)));
      rows_.emplace_back(table, edge);
    }
    find_joints();
  }

  Consistency run() {
    constexpr int most_rounds = 20;
    sweep_forward();
    search_most_promising();
    for (int round = 0; round < most_rounds && alive() > at(table_.nodes()); ++round) {
      const double before = static_cast<double>(alive()), gap = incumbent_.cost - bound_;
      sweep_backward(false);
      search_most_promising();
      sweep_forward();
      search_most_promising();
      if (static_cast<double>(alive()) > worthwhile * before &&
          elimination_is_cheap(table_, alive_))
        break;
      const Costs costs = costs_;
      sweep_backward(true);
      bound_ = std::max(bound_, costs_.constant);
      costs_ = costs;
      search_most_promising();
      if (static_cast<double>(alive()) > worthwhile * before &&
          incumbent_.cost - bound_ > worthwhile * gap)
        break;
    }
    return {std::move(alive_), std::move(incumbent_),
            bound_ * (1 - 1e-12)};  // reduced by possible rounding errors
  }

 private:
  /// Another round follows if a round shrinks the number of candidates, or the gap, at least to
  /// this share.
  static constexpr double worthwhile = 0.9;

  int from(int edge) const { return table_.edges()[at(edge)].from; }
  int to(int edge) const { return table_.edges()[at(edge)].to; }

  /// The most that a candidate may cost beyond the constant. A candidate that costs more cannot be
  /// in an assignment as good as the incumbent, even with rounding errors.
  double room() const { return incumbent_.cost * (1 + 1e-9) - costs_.constant; }

  std::size_t alive() const {
    std::size_t count = 0;
    for (const auto& candidates : alive_) count += candidates.size();
    return count;
  }

  /// Finds the joints: nodes such that no edge connects an earlier node with a later one. The costs
  /// on one side of a joint do not depend on choices on the other side.
  void find_joints() {
    int farthest = 0, last = -1;
    for (int node = 0; node < table_.nodes(); ++node) {
      if (farthest <= node) {
        if (last >= 0) next_joint_[at(last)] = node;
        last = node;
      }
      for (const int edge : outgoing_[at(node)]) farthest = std::max(farthest, to(edge));
    }
    if (last >= 0) next_joint_[at(last)] = table_.nodes() - 1;
  }

  /// Moves the least cost among the node's candidates into the constant, and drops the candidates
  /// that cost more than room().
  void settle(int node) {
    std::vector<double>& unary = costs_.unary[at(node)];
    double least = infinity;
    for (const int candidate : alive_[at(node)]) least = std::min(least, unary[at(candidate)]);
    costs_.constant += least;
    for (const int candidate : alive_[at(node)]) unary[at(candidate)] -= least;
    std::erase_if(alive_[at(node)], [&](int candidate) { return unary[at(candidate)] > room(); });
  }

  void sweep_forward() {
    for (int node = 0; node < table_.nodes(); ++node) {
      settle(node);
      keep_promising(node);
      share_out(node, outgoing_[at(node)]);
    }
  }

  void sweep_backward(bool lifting) {
    for (int node = table_.nodes() - 1; node >= 0; --node) {
      settle(node);
      if (lifting && next_joint_[at(node)] > node + 1) {
        lift(node);
        settle(node);
      }
      keep_promising(node);
      share_out(node, incoming_[at(node)]);
    }
  }

  // ---------------------------------------------------------------- single candidates of a joint

  /// Raises the cost of each candidate of a joint by a lower bound of the edges' cost up to the
  /// next joint. In this bound all branches use the same candidate of the joint; in sweeps, each
  /// branch may use another one. out_from and out_to do not record the increase, so the caller
  /// restores all costs after the sweep.
  void lift(int joint) {
    std::vector<double>& unary = costs_.unary[at(joint)];
    std::vector<int> order = alive_[at(joint)];
    std::ranges::sort(order, {},
                      [&](int candidate) { return std::pair(unary[at(candidate)], candidate); });
    double best = room();
    for (const int candidate : order) {
      if (unary[at(candidate)] >= best) break;
      unary[at(candidate)] += alone(joint, candidate, room() - unary[at(candidate)]);
      best = std::min(best, unary[at(candidate)]);
    }
  }

  /// Returns a lower bound of the edges' cost between this joint and the next one if this joint
  /// takes `candidate`. The returned bound is at most `most`.
  double alone(int joint, int candidate, double most) {
    const int last = next_joint_[at(joint)];
    reached_.resize(at(table_.nodes()));
    reached_[at(joint)] = {{0, candidate}};
    double total = 0;
    for (int node = joint + 1; node <= last && total < most; ++node) {
      reach(node, joint, most);
      if (node < last && !outgoing_[at(node)].empty()) continue;
      double least = most;
      for (const auto& [cost, end] : reached_[at(node)]) least = std::min(least, cost);
      total += least;
    }
    return std::min(total, most);
  }

  /// Finds the node's candidates for which the edges since the joint cost less than `most`. A node
  /// with several outgoing edges passes on an equal share of its cost along each of them.
  void reach(int node, int joint, double most) {
    std::vector<std::pair<double, int>>& reached = reached_[at(node)];
    reached.clear();
    sums_.assign(costs_.unary[at(node)].size(), 0);
    for (const int edge : incoming_[at(node)]) {
      if (from(edge) < joint) continue;
      const double share = 1 / static_cast<double>(outgoing_[at(from(edge))].size());
      least_.assign(sums_.size(), most);
      for (const auto& [cost, i] : reached_[at(from(edge))]) {
        const double* row = rows_[at(edge)].row(i, alive_[at(node)]);
        const double base = cost * share - costs_.out_from[at(edge)][at(i)];
        const double* out = costs_.out_to[at(edge)].data();
        double* least = least_.data();
        for (std::size_t j = 0; j < least_.size(); ++j)
          least[j] = std::min(least[j], base + row[j] - out[j]);
      }
      for (std::size_t j = 0; j < sums_.size(); ++j) sums_[j] += least_[j];
    }
    for (const int candidate : alive_[at(node)])
      if (sums_[at(candidate)] < most)
        reached.emplace_back(std::max(0.0, sums_[at(candidate)]), candidate);
  }

  // ---------------------------------------------------------------- assignments

  void keep_promising(int node) {
    constexpr std::size_t most = 8;
    std::vector<int> order = alive_[at(node)];
    const auto less = [&](int a, int b) {
      return std::pair(costs_.unary[at(node)][at(a)], a) <
             std::pair(costs_.unary[at(node)][at(b)], b);
    };
    const std::size_t count = std::min(most, order.size());
    std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(count), less);
    order.resize(count);
    order.push_back(incumbent_.assignment[at(node)]);
    make_sorted_set(order);
    promising_[at(node)] = std::move(order);
  }

  /// Looks for the cheapest assignment of promising candidates. If it is better than the incumbent,
  /// it becomes the incumbent.
  void search_most_promising() {
    constexpr std::size_t table_entries = std::size_t{1} << 16;
    Problem given = make_problem(table_, promising_);
    const std::vector<int> order = elimination_order(given);
    Problem problem = reordered(std::move(given), order);
    const std::vector<Factor> pairs = take_pair_factors(problem);
    const std::vector<int> assignment =
        problem.in_table(Elimination(problem, pairs, 0, table_entries).decode());
    if (memory_limit_ && memory_of(table_, assignment) > *memory_limit_) return;
    const double cost = cost_of(table_, assignment).value;
    if (cost < incumbent_.cost) incumbent_ = {assignment, cost};
  }

  /// Moves all of a node's costs through these edges to their other ends, in equal shares.
  void share_out(int node, const std::vector<int>& edges) {
    if (edges.empty()) return;
    std::vector<double>& unary = costs_.unary[at(node)];
    std::vector<int>& alive = alive_[at(node)];
    const double share = 1 / static_cast<double>(edges.size());
    shares_.clear();
    for (const int candidate : alive) shares_.emplace_back(share * unary[at(candidate)], candidate);
    std::ranges::sort(shares_);
    for (const int edge : edges) {
      const bool forward = from(edge) == node;
      std::vector<double>& out = forward ? costs_.out_from[at(edge)] : costs_.out_to[at(edge)];
      for (const auto& [amount, candidate] : shares_) out[at(candidate)] -= amount;
      if (forward) {
        move_on(edge);
      } else {
        move_back(edge);
      }
    }
    for (const int candidate : alive) unary[at(candidate)] = 0;
  }

  /// Returns an increase of a candidate's cost that rules the candidate out. Larger increases need
  /// not be computed.
  double enough(int node, int candidate) const {
    return std::max(0.0, incumbent_.cost * (1 + 2e-9) - costs_.constant -
                             costs_.unary[at(node)][at(candidate)]);
  }

  /// For each candidate of `to`, moves the least cost of the edge over all candidates of `from` out
  /// of the edge. The shares are in ascending order. Once a share reaches all least costs found so
  /// far, no further candidate of `from` can lower these costs.
  void move_on(int edge) {
    const std::vector<int>& alive = alive_[at(to(edge))];
    std::vector<double>& out = costs_.out_to[at(edge)];
    sums_.assign(out.size(), -infinity);
    for (const int j : alive) sums_[at(j)] = out[at(j)] + enough(to(edge), j);
    constexpr std::size_t looks = 8;  // rows between two updates of `most`
    for (std::size_t k = 0; k < shares_.size(); ++k) {
      const auto& [amount, i] = shares_[k];
      if (k % looks == 0) {
        double most = 0;
        for (const int j : alive) most = std::max(most, sums_[at(j)] - out[at(j)]);
        if (amount >= most) break;
      }
      const double* row = rows_[at(edge)].row(i, alive);
      const double moved = costs_.out_from[at(edge)][at(i)];
      double* sums = sums_.data();
      for (std::size_t j = 0; j < sums_.size(); ++j) sums[j] = std::min(sums[j], row[j] - moved);
    }
    for (const int j : alive) gain(to(edge), j, sums_[at(j)] - out[at(j)], out);
  }

  /// For each candidate of `from`, moves the least cost of the edge over all candidates of `to` out
  /// of the edge. If there are few shares, they are tried in ascending order. If there are many,
  /// they are added to whole rows, which is faster than reading parts of rows.
  void move_back(int edge) {
    constexpr std::size_t few = 40;
    std::vector<double>& out = costs_.out_from[at(edge)];
    const std::vector<double>& other = costs_.out_to[at(edge)];
    const bool whole = shares_.size() > few;
    sums_.assign(other.size(), infinity);
    for (const auto& [amount, j] : shares_) sums_[at(j)] = -other[at(j)];
    for (const int i : alive_[at(from(edge))]) {
      const double* row = rows_[at(edge)].row(i, alive_[at(to(edge))]);
      const double most = enough(from(edge), i);
      double least = whole ? std::min(most, least_sum(row, sums_) - out[at(i)]) : most;
      for (std::size_t k = 0; !whole && k < shares_.size() && shares_[k].first < least; ++k) {
        const int j = shares_[k].second;
        least = std::min(least, row[j] + sums_[at(j)] - out[at(i)]);
      }
      gain(from(edge), i, least, out);
    }
  }

  /// Returns the least a[j] + b[j] over all j. Four independent lanes let the additions overlap.
  static double least_sum(const double* a, const std::vector<double>& b) {
    constexpr std::size_t lanes = 4;
    std::array<double, lanes> least;
    least.fill(infinity);
    std::size_t j = 0;
    for (; j + lanes <= b.size(); j += lanes)
      for (std::size_t lane = 0; lane < lanes; ++lane)
        least[lane] = std::min(least[lane], a[j + lane] + b[j + lane]);
    for (; j < b.size(); ++j) least[0] = std::min(least[0], a[j] + b[j]);
    return std::ranges::min(least);
  }

  void gain(int node, int candidate, double amount, std::vector<double>& out) {
    if (amount <= 0) return;  // the amount is below 0 only by rounding
    out[at(candidate)] += amount;
    costs_.unary[at(node)][at(candidate)] += amount;
  }

  const CostTable& table_;
  std::optional<Bytes> memory_limit_;
  Survivors alive_;
  Incumbent incumbent_;
  double bound_ = 0;
  Costs costs_;
  std::vector<EdgeRows> rows_;                         ///< by edge
  std::vector<std::vector<int>> outgoing_, incoming_;  ///< by node
  std::vector<int> next_joint_;  ///< by node: the next joint; 0 if the node is not a joint
  Survivors promising_;
  std::vector<std::pair<double, int>> shares_;  ///< shares of the node in share_out(), ascending
  std::vector<std::vector<std::pair<double, int>>>
      reached_;  ///< by node: cost from the joint, and the candidate reached
  std::vector<double> sums_, least_;
};

}  // namespace

Consistency make_consistent(const CostTable& table, Survivors survivors,
                            std::optional<Bytes> memory_limit, Incumbent incumbent) {
  return ArcConsistency(table, std::move(survivors), memory_limit, std::move(incumbent)).run();
}

}  // namespace stratplan
