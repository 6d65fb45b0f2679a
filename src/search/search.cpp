#include "search/search.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "model/base/assert.hpp"
#include "search/arc_consistency.hpp"
#include "search/elimination.hpp"
#include "search/label_search.hpp"
#include "search/lazy_search.hpp"
#include "search/pruning.hpp"

namespace stratplan {

namespace {

/// One search: the pruned and ordered problem, the best assignment so far, and the proven lower
/// bound of all assignments.
class Search {
 public:
  Search(const CostTable& table, std::optional<Bytes> memory_limit, const SearchLimits& limits,
         const Survivors& fitting)
      : table_(table),
        memory_limit_(memory_limit),
        limits_(limits),
        incumbent_(start(table, fitting, memory_limit)),
        survivors_(below(table, fitting, incumbent_.cost)) {
    if (table.edges_at_hand()) {
      Consistency consistent =
          make_consistent(table, std::move(survivors_), memory_limit, std::move(incumbent_));
      survivors_ = std::move(consistent.survivors);
      incumbent_ = std::move(consistent.incumbent);
      raise(consistent.lower_bound);
    }
    Problem given = make_problem(table, survivors_);
    if (!memory_limit) {  // without a limit, memory must not keep a dominated candidate
      for (auto& memory : given.memory) std::fill(memory.begin(), memory.end(), 0);
    }
    if (memory_limit || !elimination_is_cheap(table, survivors_))
      given = without_dominated(std::move(given));
    const std::vector<int> order = elimination_order(given);
    problem_ = reordered(std::move(given), order);
    pairs_ = take_pair_factors(problem_);
  }

  SearchResult run() {
    const Elimination free(problem_, pairs_, 0, limits_.table_entries);
    raise(free.bound());
    const Point cheapest = offer(free.decode());
    if (!proven()) {
      std::vector<const Elimination*> bounds{&free};
      if (memory_limit_ && cheapest.memory > memory_limit_->value) price_memory(cheapest);
      if (priced_) bounds.push_back(priced_.get());
      if (!proven()) close_gap(bounds);
    }
    return {incumbent_.assignment,
            {incumbent_.cost},
            {proven() ? incumbent_.cost : lower_bound_},
            memory_of(table_, incumbent_.assignment)};
  }

 private:
  /// Cost (seconds) and memory (bytes) of an assignment.
  struct Point {
    double cost;
    std::int64_t memory;
  };

  /// Returns the first incumbent. Without a limit, any assignment is good enough if arc consistency
  /// runs next, because arc consistency finds better ones.
  static Incumbent start(const CostTable& table, const Survivors& fitting,
                         std::optional<Bytes> memory_limit) {
    if (memory_limit || !table.edges_at_hand())
      return first_incumbent(table, fitting, memory_limit);
    std::vector<int> cheap;
    for (int node = 0; node < table.nodes(); ++node)
      cheap.push_back(*std::ranges::min_element(
          fitting[static_cast<std::size_t>(node)], {},
          [&](int candidate) { return table.node_cost(node, candidate); }));
    return {cheap, cost_of(table, cheap).value};
  }

  bool proven() const { return incumbent_.cost <= lower_bound_ * (1 + 1e-12); }
  void raise(double bound) { lower_bound_ = std::max(lower_bound_, bound); }

  /// Makes an assignment of the problem the incumbent if it fits the limit and costs less. With a
  /// limit, the assignment is first improved one node at a time. Returns the cost and memory of the
  /// assignment as given.
  Point offer(const std::vector<int>& assignment) {
    const std::vector<int> candidate = problem_.in_table(assignment);
    const Point point{cost_of(table_, candidate).value, memory_of(table_, candidate).value};
    if (memory_limit_ && point.memory > memory_limit_->value) return point;
    Incumbent found{candidate, point.cost};
    if (memory_limit_) found = descend(table_, survivors_, memory_limit_, candidate);
    if (found.cost < incumbent_.cost) incumbent_ = std::move(found);
    return point;
  }

  /// Finds the price of memory (seconds per byte) with the highest lower bound min(cost + price *
  /// memory) - price * limit. The bound is concave in the price. One assignment above the limit
  /// (`over`) and one below it give the next price to try. The search ends when no assignment lies
  /// below the line through these two points.
  void price_memory(Point over) {
    const double limit = static_cast<double>(memory_limit_->value);
    Point under{incumbent_.cost, memory_of(table_, incumbent_.assignment).value};
    double best = -INFINITY;
    constexpr int rounds = 30;
    for (int round = 0;
         round < rounds && !proven() && under.memory < over.memory && under.cost > over.cost;
         ++round) {
      const double price =
          (under.cost - over.cost) / static_cast<double>(over.memory - under.memory);
      auto elimination =
          std::make_unique<Elimination>(problem_, pairs_, price, limits_.table_entries);
      const double bound = elimination->bound() - price * limit;
      raise(bound);
      const Point point = offer(elimination->decode());
      if (bound > best) {
        best = bound;
        priced_ = std::move(elimination);
      }
      const double line = over.cost + price * static_cast<double>(over.memory);
      if (point.cost + price * static_cast<double>(point.memory) >= line * (1 - 1e-12)) break;
      (static_cast<double>(point.memory) > limit ? over : under) = point;
    }
  }

  void close_gap(const std::vector<const Elimination*>& bounds) {
    std::optional<std::int64_t> memory_limit;
    if (memory_limit_) memory_limit = memory_limit_->value;
    const LabelOutcome outcome =
        label_search(problem_, bounds, memory_limit, incumbent_.cost, limits_.labels);
    raise(std::min(outcome.lower_bound, incumbent_.cost));
    if (!outcome.assignment.empty()) {
      offer(outcome.assignment);
      raise(incumbent_.cost);
    }
  }

  const CostTable& table_;
  std::optional<Bytes> memory_limit_;
  SearchLimits limits_;
  Incumbent incumbent_;
  Survivors survivors_;
  Problem problem_;
  std::vector<Factor> pairs_;
  std::unique_ptr<Elimination> priced_;
  double lower_bound_ = 0;
};

}  // namespace

std::optional<SearchResult> search(const CostTable& table, std::optional<Bytes> memory_limit,
                                   const SearchLimits& limits) {
  for (int node = 0; node < table.nodes(); ++node) {
    if (table.candidates(node) == 0) return std::nullopt;
  }
  if (memory_limit && least_memory(table) > *memory_limit) return std::nullopt;
  if (table.nodes() == 0) return SearchResult{};
  if (!table.edges_at_hand()) {
    const auto best = lazy_search(table, limits.table_entries);
    const Bytes memory = best ? memory_of(table, *best) : Bytes{};
    if (best && (!memory_limit || memory <= *memory_limit)) {
      const Seconds cost = cost_of(table, *best);
      return SearchResult{*best, cost, cost, memory};
    }
  }
  return Search(table, memory_limit, limits, within_memory(table, memory_limit)).run();
}

}  // namespace stratplan
