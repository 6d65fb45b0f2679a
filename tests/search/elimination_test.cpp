#include "search/elimination.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "search/random_table.hpp"
#include "search/search.hpp"

namespace stratplan {
namespace {

Survivors all_candidates(const CostTable& table) {
  Survivors all(static_cast<std::size_t>(table.nodes()));
  for (int node = 0; node < table.nodes(); ++node) {
    for (int i = 0; i < table.candidates(node); ++i)
      all[static_cast<std::size_t>(node)].push_back(i);
  }
  return all;
}

RC_GTEST_PROP(Elimination, IsExactInAnyOrder, ()) {
  const DenseTable table = test::random_table(test::random_family(), *rc::gen::inRange(1, 7), 4);
  const Problem given = make_problem(table, all_candidates(table));
  std::vector<int> order = *rc::gen::exec([&] {
    std::vector<int> rest = elimination_order(given), shuffled;
    while (!rest.empty()) {
      const auto at = static_cast<std::ptrdiff_t>(*rc::gen::inRange<std::size_t>(0, rest.size()));
      shuffled.push_back(rest[static_cast<std::size_t>(at)]);
      rest.erase(rest.begin() + at);
    }
    return shuffled;
  });
  Problem problem = reordered(given, order);
  const auto pairs = take_pair_factors(problem);

  const Elimination elimination(problem, pairs, 0, 1 << 20);

  const auto best = search_exhaustively(table);
  RC_ASSERT(elimination.exact());
  RC_ASSERT(elimination.bound() == best->cost.value);
  RC_ASSERT(cost_of(table, problem.in_table(elimination.decode())) == best->cost);
}

RC_GTEST_PROP(Elimination, RisesAddUpToTheCost, ()) {
  const DenseTable table = test::random_table(test::random_family(), *rc::gen::inRange(1, 7), 4);
  Problem problem = make_problem(table, all_candidates(table));
  const auto pairs = take_pair_factors(problem);
  std::vector<int> assignment;
  for (int node = 0; node < table.nodes(); ++node)
    assignment.push_back(*rc::gen::inRange(0, table.candidates(node)));
  const auto table_entries = *rc::gen::element<std::size_t>(1, 4, 1000);

  const Elimination elimination(problem, pairs, 2, table_entries);

  double total = elimination.bound();
  for (int node = table.nodes() - 1; node >= 0; --node) {
    const auto rises = elimination.rises(node, assignment);
    for (const double rise : rises) RC_ASSERT(rise >= 0);
    total += rises[static_cast<std::size_t>(assignment[static_cast<std::size_t>(node)])];
  }
  RC_ASSERT(total == cost_of(table, assignment).value +
                         2 * static_cast<double>(memory_of(table, assignment).value));
}

TEST(Elimination, OrderPrefersSmallTables) {
  // In a star the leaves are eliminated first, lowest index first, then the centre. (The last leaf
  // is as good as the centre, and the lower index wins.)
  DenseTable table;
  for (int node = 0; node < 4; ++node) table.add_node({fmt::format("n{}", node), {0, 1}, {}});
  for (int leaf = 1; leaf < 4; ++leaf) table.add_edge(0, leaf, {{0, 1}, {1, 0}});
  EXPECT_EQ(elimination_order(make_problem(table, all_candidates(table))),
            (std::vector<int>{1, 2, 0, 3}));
}

TEST(Dominance, KeepsWhatANeighbourMightWant) {
  struct Case {
    const char* name;
    std::vector<double> cost;
    std::vector<std::int64_t> memory;
    std::vector<int> kept;
  };
  // Candidates 0 and 1 differ by at most 5 in the costs of the neighbour's edges.
  const std::vector<Case> cases{
      // name, cost, memory, kept candidates
      {"neighbour may prefer the dear", {1, 5}, {0, 0}, {0, 1}},
      {"too dear for any neighbour", {1, 7}, {0, 0}, {0}},
      {"just as dear", {1, 6}, {0, 0}, {0}},
      {"dear but lean", {1, 7}, {2, 1}, {0, 1}},
      {"the first is the dear one", {7, 1}, {0, 0}, {1}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    DenseTable table;
    table.add_node({"node", c.cost, c.memory});
    table.add_node({"neighbour", {1, 1}, {0, 0}});
    table.add_edge(0, 1, {{0, 5}, {5, 0}});
    const Problem pruned = without_dominated(make_problem(table, all_candidates(table)));
    EXPECT_EQ(pruned.candidates[0], c.kept);
  }
}

}  // namespace
}  // namespace stratplan
