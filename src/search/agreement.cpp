#include "search/agreement.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "model/base/index.hpp"

namespace stratplan {
namespace {

/// The cost of a disagreement in seconds. It exceeds the cost of any sensible assignment, even if
/// edges cost far more than nodes. Much more would cost sums their precision.
double far_too_much(double least_costs_of_nodes) { return 1e4 * least_costs_of_nodes + 1e3; }

/// The users of all agreements, and the edges that lead from them to the agreements' nodes.
template <class Edge>
class Users {
 public:
  Users(std::span<const Edge> given, int nodes, const std::vector<Agreement>& agreements)
      : edges_(given.begin(), given.end()), given_(edges_.size()) {
    for (std::size_t i = 0; i < agreements.size(); ++i)
      for (const Agreement::User& user : agreements[i].users) {
        edges_.push_back({user.node, nodes + static_cast<int>(i)});
        users_.push_back(&user);
      }
  }
  /// The edges of the table, then one edge per user.
  const std::vector<Edge>& edges() const { return edges_; }
  /// Whether an edge is one of the table.
  bool is_given(int edge) const { return at(edge) < given_; }
  int choice(int edge, int candidate) const {
    return users_[at(edge) - given_]->choice_of[at(candidate)];
  }
  std::size_t candidates(int edge) const { return users_[at(edge) - given_]->choice_of.size(); }

 private:
  std::vector<Edge> edges_;
  std::size_t given_;
  std::vector<const Agreement::User*> users_;
};

/// A table with a node per agreement behind its own nodes.
class AgreeingTable final : public CostTable {
 public:
  /// All arguments must outlive this object.
  AgreeingTable(const CostTable& table, const std::vector<Agreement>& agreements)
      : table_(table), agreements_(agreements), users_(table.edges(), table.nodes(), agreements) {
    double sum = 0;
    for (int node = 0; node < table.nodes(); ++node) {
      Seconds least = table.node_cost(node, 0);
      for (int candidate = 1; candidate < table.candidates(node); ++candidate)
        least = std::min(least, table.node_cost(node, candidate));
      sum += least.value;
    }
    disagreement_ = {far_too_much(sum)};
  }

  Seconds disagreement() const { return disagreement_; }
  int nodes() const override { return table_.nodes() + static_cast<int>(agreements_.size()); }
  std::string node_name(int node) const override {
    return is_given(node) ? table_.node_name(node) : agreement(node).name;
  }
  int candidates(int node) const override {
    return is_given(node) ? table_.candidates(node) : agreement(node).choices;
  }
  std::span<const Edge> edges() const override { return users_.edges(); }
  Seconds node_cost(int node, int candidate) const override {
    return is_given(node) ? table_.node_cost(node, candidate) : Seconds{};
  }
  Bytes node_memory(int node, int candidate) const override {
    return is_given(node) ? table_.node_memory(node, candidate) : Bytes{};
  }
  Seconds edge_cost(int edge, int from_candidate, int to_candidate) const override {
    if (users_.is_given(edge)) return table_.edge_cost(edge, from_candidate, to_candidate);
    return users_.choice(edge, from_candidate) == to_candidate ? Seconds{} : disagreement_;
  }
  std::span<const double> edge_row(int edge, int from_candidate) const override {
    return users_.is_given(edge) ? table_.edge_row(edge, from_candidate) : std::span<double>{};
  }
  Seconds edge_bound(int edge) const override {
    return users_.is_given(edge) ? table_.edge_bound(edge) : Seconds{};
  }
  bool edge_at_hand(int edge) const override {
    return !users_.is_given(edge) || table_.edge_at_hand(edge);
  }
  bool edges_at_hand() const override { return table_.edges_at_hand(); }

 private:
  bool is_given(int node) const { return node < table_.nodes(); }
  const Agreement& agreement(int node) const { return agreements_[at(node - table_.nodes())]; }

  const CostTable& table_;
  const std::vector<Agreement>& agreements_;
  Users<Edge> users_;
  Seconds disagreement_{};
};

/// A large table with a node per agreement behind its own nodes.
class LargeAgreeingTable final : public LargeTable {
 public:
  /// All arguments must outlive this object. The table's costs must not change.
  LargeAgreeingTable(const LargeTable& table, const std::vector<Agreement>& agreements)
      : table_(table), agreements_(agreements), users_(table.edges(), table.nodes(), agreements) {
    double sum = 0;
    for (int node = 0; node < table.nodes(); ++node)
      sum += std::abs(*std::ranges::min_element(table.node_costs(node)));
    disagreement_ = far_too_much(sum);
    int most = 0;
    for (const Agreement& agreement : agreements) most = std::max(most, agreement.choices);
    no_costs_.resize(at(most));
    no_memory_.resize(at(most));
  }

  int nodes() const override { return table_.nodes() + static_cast<int>(agreements_.size()); }
  std::string node_name(int node) const override {
    return is_given(node) ? table_.node_name(node) : agreement(node).name;
  }
  std::span<const double> node_costs(int node) const override {
    return is_given(node) ? table_.node_costs(node)
                          : std::span(no_costs_).first(at(agreement(node).choices));
  }
  std::span<const std::int64_t> memory(int node) const override {
    return is_given(node) ? table_.memory(node)
                          : std::span(no_memory_).first(at(agreement(node).choices));
  }
  std::span<const Edge> edges() const override { return users_.edges(); }
  double edge_cost(int edge, int from_candidate, int to_candidate) const override {
    return users_.is_given(edge) ? table_.edge_cost(edge, from_candidate, to_candidate)
                                 : cost(edge, from_candidate, to_candidate);
  }
  double edge_bound(int edge, int from_candidate, int to_candidate) const override {
    return users_.is_given(edge) ? table_.edge_bound(edge, from_candidate, to_candidate)
                                 : cost(edge, from_candidate, to_candidate);
  }
  std::optional<double> known_cost(int edge, int from, int to) const override {
    return users_.is_given(edge) ? table_.known_cost(edge, from, to) : std::nullopt;
  }
  std::vector<double> through(int edge, bool forward, std::span<const double> costs,
                              std::span<const double> limits, bool rough) const override {
    return users_.is_given(edge) ? table_.through(edge, forward, costs, limits, rough)
                                 : through_agreement(edge, forward, costs);
  }

 private:
  bool is_given(int node) const { return node < table_.nodes(); }
  const Agreement& agreement(int node) const { return agreements_[at(node - table_.nodes())]; }
  double cost(int edge, int candidate, int choice) const {
    return users_.choice(edge, candidate) == choice ? 0 : disagreement_;
  }

  /// Each choice, or each candidate, gets the least cost of those at the other end that agree with
  /// it, or the least of all and a disagreement.
  std::vector<double> through_agreement(int edge, bool forward,
                                        std::span<const double> costs) const {
    const std::size_t candidates = users_.candidates(edge);
    const double otherwise = *std::ranges::min_element(costs) + disagreement_;
    if (!forward) {
      std::vector<double> result(candidates, otherwise);
      for (std::size_t i = 0; i < candidates; ++i)
        if (const int choice = users_.choice(edge, static_cast<int>(i)); choice >= 0)
          result[i] = std::min(otherwise, costs[at(choice)]);
      return result;
    }
    std::vector<double> result(node_costs(edges()[at(edge)].to).size(), otherwise);
    for (std::size_t i = 0; i < candidates; ++i)
      if (const int choice = users_.choice(edge, static_cast<int>(i)); choice >= 0)
        result[at(choice)] = std::min(result[at(choice)], costs[i]);
    return result;
  }

  const LargeTable& table_;
  const std::vector<Agreement>& agreements_;
  Users<Edge> users_;
  std::vector<double> no_costs_;
  std::vector<std::int64_t> no_memory_;
  double disagreement_ = 0;
};

/// Appends the choice of each agreement's first user.
void add_choices(const std::vector<Agreement>& agreements, std::vector<int>& assignment) {
  for (const Agreement& agreement : agreements) {
    const Agreement::User& user = agreement.users.front();
    assignment.push_back(std::max(0, user.choice_of[at(assignment[at(user.node)])]));
  }
}

/// Adds all choices of each agreement to the candidates of nodes.
void add_all_choices(const std::vector<Agreement>& agreements, std::vector<std::vector<int>>& few) {
  if (few.empty()) return;
  for (const Agreement& agreement : agreements) {
    std::vector<int>& all = few.emplace_back(at(agreement.choices));
    std::iota(all.begin(), all.end(), 0);
  }
}

}  // namespace

bool agrees(const std::vector<Agreement>& agreements, const std::vector<int>& assignment) {
  return std::ranges::all_of(agreements, [&](const Agreement& agreement) {
    const auto choice = [&](const Agreement::User& user) {
      return user.choice_of[at(assignment[at(user.node)])];
    };
    const int first = choice(agreement.users.front());
    return first >= 0 && std::ranges::all_of(agreement.users, [&](const Agreement::User& user) {
             return choice(user) == first;
           });
  });
}

std::optional<SearchResult> search(const CostTable& table, const std::vector<Agreement>& agreements,
                                   std::optional<Bytes> memory_limit, const SearchLimits& limits) {
  if (agreements.empty()) return search(table, memory_limit, limits);
  const AgreeingTable agreeing(table, agreements);
  auto found = search(agreeing, memory_limit, limits);
  if (!found) return found;
  found->assignment.resize(at(table.nodes()));
  if (!agrees(agreements, found->assignment)) return std::nullopt;
  return found;
}

std::optional<BoundedSolution> branch_and_bound(const LargeTable& table,
                                                const std::vector<Agreement>& agreements,
                                                std::vector<std::vector<int>> known,
                                                const BranchAndBoundOptions& options,
                                                std::vector<std::vector<int>> few) {
  if (agreements.empty()) return branch_and_bound(table, known, options, few);
  for (std::vector<int>& assignment : known) add_choices(agreements, assignment);
  add_all_choices(agreements, few);
  auto found = branch_and_bound(LargeAgreeingTable(table, agreements), known, options, few);
  if (!found) return found;
  found->assignment.resize(at(table.nodes()));
  if (!agrees(agreements, found->assignment)) return std::nullopt;
  return found;
}

std::vector<int> best_among(const LargeTable& table, const std::vector<Agreement>& agreements,
                            std::vector<std::vector<int>>& few, const std::vector<int>& known) {
  if (agreements.empty()) return best_among(table, few, known);
  std::vector<int> start = known;
  add_choices(agreements, start);
  add_all_choices(agreements, few);
  std::vector<int> best = best_among(LargeAgreeingTable(table, agreements), few, start);
  best.resize(at(table.nodes()));
  few.resize(at(table.nodes()));
  return best;
}

}  // namespace stratplan
