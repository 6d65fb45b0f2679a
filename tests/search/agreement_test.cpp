// Searches with agreements find what trying every assignment finds.
#include "search/agreement.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>

#include "search/random_table.hpp"
#include "search/widened_table.hpp"

namespace stratplan {
namespace {

/// Returns agreements among random nodes. Some candidates make none of the choices.
std::vector<Agreement> random_agreements(const CostTable& table) {
  std::vector<Agreement> agreements(static_cast<std::size_t>(*rc::gen::inRange(0, 3)));
  for (Agreement& agreement : agreements) {
    agreement.choices = *rc::gen::inRange(1, 4);
    std::vector<int> nodes = test::random_order(table.nodes());
    nodes.resize(static_cast<std::size_t>(*rc::gen::inRange(1, table.nodes() + 1)));
    std::ranges::sort(nodes);
    for (const int node : nodes) {
      Agreement::User user{node, {}};
      for (int candidate = 0; candidate < table.candidates(node); ++candidate)
        user.choice_of.push_back(*rc::gen::inRange(-1, agreement.choices));
      agreement.users.push_back(std::move(user));
    }
  }
  return agreements;
}

/// Tries every assignment. Returns the least cost of those that agree; nothing if none does.
std::optional<Seconds> least_cost(const CostTable& table, const std::vector<Agreement>& agreements,
                                  std::optional<Bytes> limit) {
  std::optional<Seconds> least;
  std::vector<int> assignment(static_cast<std::size_t>(table.nodes()), 0);
  for (;;) {
    if (agrees(agreements, assignment) && (!limit || memory_of(table, assignment) <= *limit))
      least = std::min(cost_of(table, assignment), least.value_or(cost_of(table, assignment)));
    int node = table.nodes() - 1;
    while (node >= 0 && ++assignment[static_cast<std::size_t>(node)] == table.candidates(node))
      assignment[static_cast<std::size_t>(node--)] = 0;
    if (node < 0) return least;
  }
}

RC_GTEST_PROP(Agreement, IsKeptByTheCheapestAssignment, ()) {
  const DenseTable dense = test::random_table(test::random_family(), *rc::gen::inRange(1, 6), 4);
  const test::CountingTable lazy(dense);
  const std::vector<Agreement> agreements = random_agreements(dense);
  std::optional<Bytes> limit;
  if (*rc::gen::arbitrary<bool>()) limit = Bytes{*rc::gen::inRange(0, 30)};
  const std::optional<Seconds> least = least_cost(dense, agreements, limit);
  for (const CostTable* table :
       {static_cast<const CostTable*>(&dense), static_cast<const CostTable*>(&lazy)}) {
    const auto found = search(*table, agreements, limit);
    RC_ASSERT(found.has_value() == least.has_value());
    if (!found) continue;
    RC_ASSERT(std::abs((found->cost - *least).value) < 1e-9);
    RC_ASSERT(found->cost == cost_of(dense, found->assignment));
    RC_ASSERT(agrees(agreements, found->assignment));
    RC_ASSERT(!limit || found->memory <= *limit);
  }
}

RC_GTEST_PROP(Agreement, IsKeptInALargeTable, ()) {
  const DenseTable dense = test::random_table(test::random_family(), *rc::gen::inRange(1, 6), 5);
  const test::Widened table(dense);
  const std::vector<Agreement> agreements = random_agreements(dense);
  const auto found =
      branch_and_bound(table, agreements, {}, {.tolerance = 0, .most_candidates = 64});
  const std::optional<Seconds> least = least_cost(dense, agreements, {});
  RC_ASSERT(found.has_value() == least.has_value());
  if (!found) return;
  RC_ASSERT(std::abs(found->cost - least->value) < 1e-9);
  RC_ASSERT(found->gap() < 1e-9);
  RC_ASSERT(agrees(agreements, found->assignment));
}

}  // namespace
}  // namespace stratplan
