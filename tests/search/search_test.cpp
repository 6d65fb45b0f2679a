#include "search/search.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <random>

#include "search/random_table.hpp"

namespace stratplan {
namespace {

using test::random_family;
using test::random_table;

/// Checks the search's promises about one answer.
void check_answer(const CostTable& table, const SearchResult& result, std::optional<Bytes> limit) {
  RC_ASSERT(result.assignment.size() == static_cast<std::size_t>(table.nodes()));
  RC_ASSERT(cost_of(table, result.assignment) == result.cost);
  RC_ASSERT(memory_of(table, result.assignment) == result.memory);
  RC_ASSERT(!limit || result.memory <= *limit);
  RC_ASSERT(result.lower_bound <= result.cost);
}

RC_GTEST_PROP(Search, EqualsExhaustive, ()) {
  const DenseTable table = random_table(random_family(), *rc::gen::inRange(1, 8), 4);

  const auto found = search(table);
  const auto best = search_exhaustively(table);

  RC_ASSERT(found && best);
  check_answer(table, *found, {});
  RC_ASSERT(found->cost == best->cost);
  RC_ASSERT(found->optimal());
}

RC_GTEST_PROP(Search, EqualsExhaustiveUnderAMemoryLimit, ()) {
  const DenseTable table =
      random_table(random_family(), *rc::gen::inRange(1, 8), 4, *rc::gen::element(2, 9, 1000));
  const Bytes limit{*rc::gen::inRange(0, 60)};

  const auto found = search(table, limit);
  const auto best = search_exhaustively(table, limit);

  RC_ASSERT(found.has_value() == best.has_value());
  RC_ASSERT(found.has_value() == (least_memory(table) <= limit));
  if (!found) return;
  check_answer(table, *found, limit);
  RC_ASSERT(found->cost == best->cost);
  RC_ASSERT(found->optimal());
}

// A table that prices edges on demand is asked for few of them.
RC_GTEST_PROP(Search, EqualsExhaustiveWhenEdgesAreAskedForLazily, ()) {
  const DenseTable table = random_table(random_family(), *rc::gen::inRange(1, 8), 4);
  const std::optional<Bytes> limit =
      *rc::gen::element(std::optional<Bytes>{}, std::optional<Bytes>{Bytes{25}});
  const std::size_t table_entries = *rc::gen::element<std::size_t>(4, 1000);
  const test::CountingTable lazy(table);

  const auto found = search(lazy, limit, {.table_entries = table_entries});
  const auto best = search_exhaustively(table, limit);

  RC_ASSERT(found.has_value() == best.has_value());
  if (!found) return;
  check_answer(table, *found, limit);
  RC_ASSERT(found->cost == best->cost);
  RC_ASSERT(found->optimal());
}

// Tables of 4 entries make every min-plus message approximate, so the best-first search must close
// the gap.
RC_GTEST_PROP(Search, EqualsExhaustiveWithTinyTables, ()) {
  const DenseTable table = random_table(random_family(), *rc::gen::inRange(1, 8), 4);
  const std::optional<Bytes> limit =
      *rc::gen::element(std::optional<Bytes>{}, std::optional<Bytes>{Bytes{25}});

  const auto found = search(table, limit, {.table_entries = 4});
  const auto best = search_exhaustively(table, limit);

  RC_ASSERT(found.has_value() == best.has_value());
  if (!found) return;
  check_answer(table, *found, limit);
  RC_ASSERT(found->cost == best->cost);
}

RC_GTEST_PROP(Search, LowerBoundIsHonestWhereTheSearchGivesUp, ()) {
  const DenseTable table = random_table(random_family(), *rc::gen::inRange(1, 8), 4);
  const Bytes limit{*rc::gen::inRange(0, 60)};

  const auto found = search(table, limit, {.table_entries = 4, .labels = 2});
  const auto best = search_exhaustively(table, limit);

  RC_ASSERT(found.has_value() == best.has_value());
  if (!found) return;
  check_answer(table, *found, limit);
  RC_ASSERT(found->lower_bound <= best->cost);
  RC_ASSERT(best->cost <= found->cost);
}

/// Returns no limit, a limit that every assignment satisfies, or one that often binds.
std::optional<Bytes> random_limit() {
  return *rc::gen::oneOf(
      rc::gen::element(std::optional<Bytes>{}, std::optional<Bytes>{Bytes{1000}}),
      rc::gen::map(rc::gen::inRange(0, 60),
                   [](int bytes) { return std::optional<Bytes>{Bytes{bytes}}; }));
}

/// Scales every cost, but no memory. It offers its edges like the table, so both are searched in
/// the same way.
class Scaled : public test::CountingTable {
 public:
  Scaled(const CostTable& table, double factor) : CountingTable(table), factor_(factor) {}
  Seconds node_cost(int node, int candidate) const override {
    return CountingTable::node_cost(node, candidate) * factor_;
  }
  Seconds edge_cost(int edge, int from, int to) const override {
    return CountingTable::edge_cost(edge, from, to) * factor_;
  }
  Seconds edge_bound(int edge) const override { return CountingTable::edge_bound(edge) * factor_; }
  bool edges_at_hand() const override { return true; }

 private:
  double factor_;
};

RC_GTEST_PROP(Search, DoublingAllCostsDoublesTheBest, ()) {
  const DenseTable table = random_table(random_family(), *rc::gen::inRange(1, 12), 5);
  const std::optional<Bytes> limit = random_limit();

  const auto once = search(table, limit);
  const auto twice = search(Scaled(table, 2), limit);

  RC_ASSERT(twice.has_value() == once.has_value());
  if (!once) return;
  RC_ASSERT(twice->cost == once->cost * 2);
  RC_ASSERT(twice->assignment == once->assignment);
}

RC_GTEST_PROP(Search, OrderAndNamesDoNotMatter, ()) {
  const DenseTable table = random_table(random_family(), *rc::gen::inRange(1, 12), 5);
  const std::optional<Bytes> limit = random_limit();

  const auto before = search(table, limit);
  const auto after = search(test::shuffled(table).table, limit);

  RC_ASSERT(after.has_value() == before.has_value());
  if (before) RC_ASSERT(after->cost == before->cost);
}

RC_GTEST_PROP(Search, AMoreGenerousLimitIsNeverWorse, ()) {
  const DenseTable table = random_table(random_family(), *rc::gen::inRange(1, 14), 6, 1000);
  const Bytes tight = least_memory(table) + Bytes{*rc::gen::inRange(0, 20)};
  const Bytes loose = tight + Bytes{*rc::gen::inRange(0, 20)};

  RC_ASSERT(search(table, loose)->cost <= search(table, tight)->cost);
  RC_ASSERT(search(table)->cost <= search(table, loose)->cost);
}

// Three nodes. Changing between layouts 0 and 1 costs 5. The middle node prefers layout 1 by 4
// (then it stays) or by 11 (then it changes).
struct ByHandCase {
  const char* name;
  std::vector<double> middle;
  std::optional<Bytes> limit;
  std::vector<int> assignment;
  double cost;
};

DenseTable three_nodes(const std::vector<double>& middle) {
  DenseTable table;
  table.add_node({"first", {1, 100}, {1, 1}});
  table.add_node({"middle", middle, {2, 9}});
  table.add_node({"last", {1, 100}, {1, 1}});
  const std::vector<std::vector<double>> move{{0, 5}, {5, 0}};
  table.add_edge(0, 1, move);
  table.add_edge(1, 2, move);
  return table;
}

TEST(Search, ByHand) {
  const std::vector<ByHandCase> cases{
      // name, costs of the middle node, limit, assignment, cost
      {"the detour does not pay", {5, 1}, {}, {0, 0, 0}, 7},
      {"the detour pays", {12, 1}, {}, {0, 1, 0}, 13},
      {"the detour does not fit", {12, 1}, Bytes{10}, {0, 0, 0}, 14},
      {"the detour just fits", {12, 1}, Bytes{11}, {0, 1, 0}, 13},
  };
  for (const ByHandCase& c : cases) {
    SCOPED_TRACE(c.name);
    const auto found = search(three_nodes(c.middle), c.limit);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->assignment, c.assignment);
    EXPECT_EQ(found->cost, Seconds{c.cost});
    EXPECT_TRUE(found->optimal());
    EXPECT_EQ(found->gap(), 0);
  }
}

TEST(Search, SmallestCases) {
  DenseTable empty;
  EXPECT_EQ(search(empty)->cost, Seconds{0});

  DenseTable one;
  one.add_node({"only", {3, 2, 2}, {}});
  EXPECT_EQ(search(one)->assignment, std::vector<int>{1});

  DenseTable apart;
  apart.add_node({"a", {3, 2}, {}});
  apart.add_node({"b", {1}, {}});
  EXPECT_EQ(search(apart)->assignment, (std::vector<int>{1, 0}));
  EXPECT_EQ(search(apart)->cost, Seconds{3});
}

TEST(Search, NothingFits) {
  const DenseTable table = three_nodes({5, 1});
  EXPECT_EQ(least_memory(table), Bytes{4});
  EXPECT_FALSE(search(table, Bytes{3}));
  EXPECT_TRUE(search(table, Bytes{4}));
}

TEST(Search, IsDeterministic) {
  std::mt19937 random(7);
  DenseTable table;
  for (int node = 0; node < 20; ++node) {
    DenseTable::Node made{fmt::format("n{}", node), {}, {}};
    for (int i = 0; i < 8; ++i) {
      made.cost.push_back(static_cast<double>(random() % 3));
      made.memory.push_back(static_cast<std::int64_t>(random() % 5));
    }
    table.add_node(made);
    if (node > 0)
      table.add_edge(node - 1, node,
                     std::vector<std::vector<double>>(8, std::vector<double>(8, 1)));
  }
  EXPECT_EQ(search(table)->assignment, search(table)->assignment);
  const Bytes limit = least_memory(table) + Bytes{5};
  EXPECT_EQ(search(table, limit)->assignment, search(table, limit)->assignment);
}

/// A residual network with `candidates` layouts per node. Node costs differ by at most a factor of
/// `spread`; a change of layout costs up to 1.
DenseTable residual_table(int nodes, int candidates, double spread, bool with_memory = false) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> unit(0, 1);
  DenseTable table;
  for (int node = 0; node < nodes; ++node) {
    DenseTable::Node made{fmt::format("n{}", node), {}, {}};
    for (int i = 0; i < candidates; ++i) {
      made.cost.push_back(1 + (spread - 1) * unit(random));
      if (with_memory)
        made.memory.push_back(1 + static_cast<std::int64_t>(1e6 * (1 + spread - made.cost.back()) *
                                                            (0.5 + unit(random))));
    }
    table.add_node(made);
  }
  const auto connect = [&](int from, int to) {
    std::vector<std::vector<double>> cost(
        static_cast<std::size_t>(candidates),
        std::vector<double>(static_cast<std::size_t>(candidates)));
    for (std::size_t i = 0; i < cost.size(); ++i) {
      for (std::size_t j = 0; j < cost.size(); ++j) cost[i][j] = i == j ? 0 : unit(random);
    }
    table.add_edge(from, to, cost);
  };
  for (int node = 1; node < nodes; ++node) connect(node - 1, node);
  for (int node = 3; node < nodes; node += 3) connect(node - 3, node);
  return table;
}

TEST(Search, LooksAtFewPairs) {
  struct Case {
    const char* name;
    double spread;
    std::size_t share;  ///< at most one in so many of all pairs is asked for
  };
  const std::vector<Case> cases{
      // name, spread, share
      {"edges matter most", 1.5, 4},
      {"nodes and edges matter", 3, 5},
      {"most candidates are hopeless", 1000, 20},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const DenseTable table = residual_table(30, 60, c.spread);
    const test::CountingTable counting(table);

    const auto found = search(counting);

    ASSERT_TRUE(found && found->optimal());
    EXPECT_EQ(found->cost, search(table)->cost);
    const std::size_t all = table.edges().size() * 60 * 60;
    EXPECT_LT(counting.distinct_pairs(), all / c.share) << "of " << all;
  }
}

TEST(Search, LargeResidualNetworkIsSolvedExactly) {
  const DenseTable table = residual_table(57, 100, 3);

  const auto found = search(table);

  ASSERT_TRUE(found);
  EXPECT_TRUE(found->optimal());
}

TEST(Search, LargeResidualNetworkUnderAMemoryLimitStatesItsGap) {
  const DenseTable table = residual_table(57, 40, 3, true);
  const auto free = search(table);
  const Bytes limit = least_memory(table) + (free->memory - least_memory(table)) / 2;

  const auto found = search(table, limit);

  ASSERT_TRUE(found);
  EXPECT_LE(found->memory, limit);
  EXPECT_GE(found->cost, free->cost);
  EXPECT_GE(found->lower_bound, free->cost * (1 - 1e-12));
  EXPECT_LE(found->gap(), 0.005);
}

}  // namespace
}  // namespace stratplan
