// Plans of networks whose blocks share parameters.
#include "planner/agreements.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "model/base/index.hpp"
#include "model/cost/plan_table.hpp"
#include "planner/large_scale_search.hpp"
#include "planner/planner.hpp"
#include "planner/small_cases.hpp"
#include "support/parameter_network.hpp"

namespace stratplan {
namespace {

using test::small_machine;

std::string convolution(const std::string& name, const std::string& weights,
                        const std::string& input) {
  return fmt::format(
      R"({{"name": "{}", "kind": "convolution", "filters": 32, "kernel": 3, "padding": 1,
          "parameters": {{"weights": "{}"}}, "input": "{}"}})",
      name, weights, input);
}

Network network_of(const std::string& layers, std::int64_t batch) {
  return test::network_of(test::document_of(layers), {.batch = batch});
}

/// One convolution that is applied three times.
Network recursive(std::int64_t batch) {
  return network_of(convolution("c0", "first", "x") + "," + convolution("c1", "w", "c0") + "," +
                        convolution("c2", "w", "c1") + "," + convolution("c3", "w", "c2"),
                    batch);
}

/// Two branches with the same two convolutions.
Network siamese(std::int64_t batch) {
  return network_of(convolution("a1", "u", "x") + "," + convolution("a2", "v", "a1") +
                        R"(,{"name": "shifted", "kind": "linear", "summand": 1, "input": "x"},)" +
                        convolution("b1", "u", "shifted") + "," + convolution("b2", "v", "b1") +
                        R"(,{"name": "sum", "kind": "add", "inputs": ["a2", "b2"]})",
                    batch);
}

/// A convolution, a transposed one with the same weights, whose channels are the other's filters,
/// and a convolution with weights of its own between them.
Network tied(std::int64_t batch) {
  return network_of(convolution("c0", "first", "x") + "," + convolution("down", "w", "c0") + "," +
                        convolution("middle", "own", "down") + "," + R"(
      {"name": "up", "kind": "transposed_convolution", "filters": 32, "kernel": 3, "padding": 1,
       "parameters": {"weights": "w"}})",
                    batch);
}

struct SharingCase {
  const char* name;
  Network network;
  int ranks;
  MachineProfile machine;
  bool splits;  ///< whether the best plan splits a shared parameter
};

std::vector<SharingCase> sharing_cases() {
  return {
      // name, network, ranks, machine, splits
      {"recursive, many samples", recursive(16), 2, small_machine(), false},
      {"recursive, one sample", recursive(1), 4, small_machine(1e12, 1e-9), true},
      {"siamese", siamese(1), 4, small_machine(1e12, 1e-9), true},
      {"siamese, many samples", siamese(64), 4, small_machine(), false},
      {"tied", tied(1), 4, small_machine(1e12, 1e-9), true},
  };
}

/// Searches once for each way to choose. Returns the least cost.
double least_over_all_choices(const PlanTable& given, const Network& network,
                              const std::vector<Block>& blocks,
                              const std::vector<std::vector<Decomposition>>& candidates,
                              const std::vector<Agreement>& agreements,
                              const MachineProfile& machine) {
  std::vector<int> choices(agreements.size(), 0);
  double least = std::numeric_limits<double>::infinity();
  for (;;) {
    std::vector<std::vector<Decomposition>> chosen = candidates;
    for (std::size_t block = 0; block < blocks.size(); ++block) {
      std::vector<Decomposition> kept;
      for (int candidate = 0; candidate < given.candidates(static_cast<int>(block)); ++candidate) {
        bool fits = true;
        for (std::size_t i = 0; i < agreements.size(); ++i)
          for (const Agreement::User& user : agreements[i].users)
            fits = fits && (user.node != static_cast<int>(block) ||
                            user.choice_of[at(candidate)] == choices[i]);
        if (fits) kept.push_back(candidates[block][at(candidate)]);
      }
      chosen[block] = std::move(kept);
    }
    const Execution execution;
    const PlanTable table(network, blocks, chosen, execution, machine);
    if (const auto found = search(table)) least = std::min(least, found->cost.value);
    std::size_t next = 0;
    while (next < choices.size() && ++choices[next] == agreements[next].choices)
      choices[next++] = 0;
    if (next == choices.size()) return least;
  }
}

bool splits(const Network& network, const LayerDecompositions& layers) {
  return std::ranges::any_of(shared_between(network, fold(network)), [&](const auto& shared) {
    const ParameterUse use = shared.users.front().uses.front();
    return !distribute(network.layer(use.layer), layers[at(use.layer)])
                .parameter(use.role)
                .dims_with(Role::Block)
                .empty();
  });
}

TEST(SharingBlocks, ArePlannedAsWellAsEveryWayToSplitWhatTheyShare) {
  for (const SharingCase& c : sharing_cases()) {
    SCOPED_TRACE(c.name);
    const PlanningResult result = plan(c.network, "net.json", c.ranks, c.machine);

    const std::vector<Block> blocks = fold(c.network);
    std::vector<std::vector<Decomposition>> legal;
    for (const Block& block : blocks)
      legal.push_back(candidates(c.network, block, c.machine.topology(c.ranks)).legal);
    const std::vector<Agreement> agreements = keep_agreeable(c.network, blocks, legal);
    const Execution execution;
    const PlanTable table(c.network, blocks, legal, execution, c.machine);
    ASSERT_FALSE(agreements.empty());
    EXPECT_NEAR(result.objective.value /
                    least_over_all_choices(table, c.network, blocks, legal, agreements, c.machine),
                1, 1e-9);
    EXPECT_TRUE(result.optimal);
    const LayerDecompositions& searched = result.searched.front().plan->layers;
    EXPECT_FALSE(check_shared(c.network, searched));
    EXPECT_EQ(splits(c.network, searched), c.splits);
  }
}

TEST(SharingBlocks, AreSearchedAtLargeScale) {
  for (const SharingCase& c : sharing_cases()) {
    SCOPED_TRACE(c.name);
    const Execution execution;
    const LargeScaleResult result =
        search_at_large_scale(c.network, fold(c.network), c.ranks, c.machine, execution, {}, {});
    ASSERT_FALSE(result.found.empty());
    for (const LayerDecompositions& layers : result.found)
      EXPECT_FALSE(check_shared(c.network, layers));
    EXPECT_LE(result.objective.value, result.lower_bound.value * 1.005);
    EXPECT_EQ(splits(c.network, result.found.front()), c.splits);
  }
}

TEST(SharingBlocks, FitALimitOfMemoryTogether) {
  const Network network = recursive(1);
  const MachineProfile machine = small_machine(1e12, 1e-9);
  const Bytes free = plan(network, "net.json", 4, machine).recommended.prediction->memory;
  PlanningOptions options;
  options.memory_limit = Bytes{free.value * 9 / 10};
  options.free = {.micro_batches = false, .sharding = false, .recompute = false};
  const PlanningResult result = plan(network, "net.json", 4, machine, options);
  EXPECT_LE(result.recommended.prediction->memory, *options.memory_limit);
  EXPECT_FALSE(check_shared(network, result.recommended.layers));
}

}  // namespace
}  // namespace stratplan
