// The search alone, on tables that were built before.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>

#include "bench/cases.hpp"
#include "model/cost/plan_table.hpp"
#include "search/branch_and_bound.hpp"
#include "search/dense_table.hpp"
#include "search/search.hpp"

namespace stratplan::bench {
namespace {

/// Each node's cheapest candidate. This assignment is poor, but the same on every machine.
std::vector<int> cheapest_nodes(const ClosedTable& table) {
  std::vector<int> assignment;
  for (int node = 0; node < table.nodes(); ++node) {
    const auto costs = table.node_costs(node);
    assignment.push_back(static_cast<int>(std::ranges::min_element(costs) - costs.begin()));
  }
  return assignment;
}

void add_branch_and_bound() {
  for (const Case& of : {resnet50_64, unet3d_64, densenet121_8})
    add_threaded(fmt::format("search/bracket/{}", of.name()), [of](State& state) {
      const ClosedTable& table = table_of(of);
      const std::vector<std::vector<int>> known{cheapest_nodes(table)};
      for (auto _ : state) benchmark::DoNotOptimize(branch_and_bound(table, known));
    });
}

/// The costs of all candidates and all pairs of a network, as plain numbers.
DenseTable dense_table_of(const Case& of) {
  const ClosedTable& table = table_of(of);
  DenseTable dense;
  for (int node = 0; node < table.nodes(); ++node) {
    const auto costs = table.node_costs(node);
    const auto memory = table.memory(node);
    dense.add_node(
        {table.node_name(node), {costs.begin(), costs.end()}, {memory.begin(), memory.end()}});
  }
  for (int edge = 0; edge < static_cast<int>(table.edges().size()); ++edge) {
    const auto [from, to] = table.edges()[static_cast<std::size_t>(edge)];
    std::vector<std::vector<double>> costs(table.node_costs(from).size());
    for (std::size_t i = 0; i < costs.size(); ++i)
      for (std::size_t j = 0; j < table.node_costs(to).size(); ++j)
        costs[i].push_back(table.edge_cost(edge, static_cast<int>(i), static_cast<int>(j)));
    dense.add_edge(from, to, costs);
  }
  return dense;
}

/// The table that the planner searches if each candidate is lowered. A first search computes the
/// prices, so later searches only look them up.
struct LoweredTable {
  explicit LoweredTable(const Job& job)
      : candidates(candidates_of(job)),
        table(job.network, job.blocks, candidates, job.execution, job.machine) {
    search(table);
  }
  static std::vector<std::vector<Decomposition>> candidates_of(const Job& job) {
    std::vector<std::vector<Decomposition>> legal;
    for (const Block& block : job.blocks)
      legal.push_back(
          stratplan::candidates(job.network, block, job.machine.topology(job.ranks)).legal);
    return legal;
  }
  std::vector<std::vector<Decomposition>> candidates;
  PlanTable table;
};

void add_exact_searches() {
  add(fmt::format("search/dense/{}", resnet50_8.name()), [](State& state) {
    const DenseTable& table = kept<DenseTable>(
        resnet50_8, [] { return std::make_unique<DenseTable>(dense_table_of(resnet50_8)); });
    for (auto _ : state) benchmark::DoNotOptimize(search(table));
  });
  add(fmt::format("search/lowered/{}", resnet50_4.name()), [](State& state) {
    const LoweredTable& lowered = kept<LoweredTable>(
        resnet50_4, [] { return std::make_unique<LoweredTable>(job_of(resnet50_4)); });
    for (auto _ : state) benchmark::DoNotOptimize(search(lowered.table));
  });
}

}  // namespace

void add_search_benchmarks() {
  add_branch_and_bound();
  add_exact_searches();
}

}  // namespace stratplan::bench
