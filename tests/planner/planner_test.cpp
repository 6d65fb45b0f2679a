#include "planner/planner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>

#include "model/base/error.hpp"
#include "model/cost/plan_table.hpp"
#include "planner/prediction.hpp"
#include "planner/recommendation.hpp"
#include "planner/small_cases.hpp"
#include "support/message_of.hpp"

namespace stratplan {
namespace {

using test::small_machine;
using test::small_mesh;
using test::small_resnet;
using testing::AllOf;
using testing::HasSubstr;

struct PlanCase {
  const char* name;
  Network network;
  int ranks;
  MachineProfile machine;
};

std::vector<PlanCase> plan_cases() {
  return {
      // name, network, ranks, machine
      {"one rank", small_resnet(4), 1, small_machine()},
      {"two ranks", small_resnet(4), 2, small_machine()},
      {"slow link", small_resnet(4), 2, small_machine(1e6, 1e-3)},
      {"three ranks, batch 2", small_resnet(2), 3, small_machine()},
      {"across nodes", small_mesh(4, {3, 1, 12, 12}), 6, small_machine()},
      {"one large sample", small_mesh(1, {3, 1, 64, 64}), 4, small_machine()},
      {"one volume", small_mesh(1, {2, 8, 8, 8}), 2, small_machine()},
  };
}

/// Requires that nothing usable was predicted faster than the recommended plan, unless that plan
/// ties with the fastest.
void expect_nothing_faster(const PlanningResult& result) {
  const Prediction &ours = *result.recommended.prediction,
                   &least = *fastest(result).plan->prediction;
  EXPECT_EQ(result.fastest_step, least.step);
  for (const auto* list : {&result.searched, &result.baselines})
    for (const Considered& considered : *list) {
      if (!considered.usable()) continue;
      EXPECT_LE(least.step, considered.plan->prediction->step * (1 + 1e-9)) << considered.name;
    }
  if (ours.step > least.step * (1 + 1e-9)) {
    EXPECT_TRUE(result.tie);
    EXPECT_TRUE(is_tie(least, ours));
  }
}

TEST(Planner, RecommendsNothingSlowerThanAnythingConsidered) {
  for (const PlanCase& c : plan_cases()) {
    SCOPED_TRACE(c.name);
    const PlanningResult result = plan(c.network, "net.json", c.ranks, c.machine);
    ASSERT_TRUE(result.recommended.prediction);
    EXPECT_EQ(*result.recommended.prediction, predict(result.recommended, c.network, c.machine));
    for (const auto* list : {&result.searched, &result.baselines})
      for (const Considered& considered : *list)
        EXPECT_EQ(considered.usable(), considered.infeasible.empty());
    expect_nothing_faster(result);
    EXPECT_EQ(result.reranking.empty(), result.chosen == "searched") << result.reranking;
    EXPECT_TRUE(result.optimal);
    EXPECT_EQ(result.gap, 0);
  }
}

TEST(Planner, SearchedIsTheBestOfAllAssignments) {
  const Network network = small_mesh(2, {3, 1, 8, 8});
  const MachineProfile machine = small_machine(1e7, 1e-5);

  const PlanningResult result = plan(network, "net.json", 4, machine);

  const auto blocks = fold(network);
  std::vector<std::vector<Decomposition>> legal;
  for (const Block& block : blocks)
    legal.push_back(candidates(network, block, machine.topology(4)).legal);
  const Execution execution;
  const PlanTable table(network, blocks, legal, execution, machine);
  const auto best = search_exhaustively(table);
  EXPECT_NEAR(result.objective / best->cost, 1, 1e-12);
  EXPECT_EQ(result.blocks, blocks.size());
  EXPECT_EQ(result.candidates, legal[0].size() + legal[1].size());
  EXPECT_GT(result.rejections, 0U);  // for example D
}

TEST(Planner, FillsInWhatPlanFilesNeed) {
  const Network network = small_resnet(4);
  PlanningOptions options;
  options.overrides.input_size = {16, 16};
  options.execution.threads_per_rank = 3;

  const PlanningResult result = plan(network, "nets/small.json", 2, small_machine(), options);

  const Plan& recommended = result.recommended;
  EXPECT_EQ(recommended.name, "recommended");
  EXPECT_EQ(recommended.network_source, "nets/small.json");
  EXPECT_EQ(recommended.network_fingerprint, network.fingerprint());
  EXPECT_EQ(recommended.overrides.batch, 4);
  EXPECT_EQ(recommended.overrides.input_size, (std::vector<std::int64_t>{16, 16}));
  EXPECT_EQ(recommended.ranks_offered, 2);
  EXPECT_EQ(recommended.machine_name, "small");
  EXPECT_EQ(recommended.machine_fingerprint, small_machine().fingerprint());
  EXPECT_EQ(recommended.execution.threads_per_rank, 3);
}

TEST(Planner, TheLinkDecides) {
  // A link that costs next to nothing is worth using. If a message takes a second, a rank works
  // best alone.
  const Network network = small_mesh(2, {3, 1, 32, 32});
  EXPECT_EQ(plan(network, "net.json", 2, small_machine(1e12, 1e-9)).recommended.ranks, 2);
  const PlanningResult alone = plan(network, "net.json", 2, small_machine(1e6, 1));
  EXPECT_EQ(alone.recommended.ranks, 1);
  EXPECT_EQ(alone.chosen, "sample on 1");
  EXPECT_THAT(alone.reranking, HasSubstr("\"sample on 1\" takes"));
}

TEST(Planner, KeepsWithinTheMemoryLimit) {
  const Network network = small_mesh(4, {3, 1, 32, 32});
  const MachineProfile machine = small_machine();
  const PlanningResult free = plan(network, "net.json", 4, machine);
  Bytes least = free.recommended.prediction->memory, most = least;
  for (const Considered& baseline : free.baselines) {
    if (!baseline.plan) continue;
    least = std::min(least, baseline.plan->prediction->memory);
    most = std::max(most, baseline.plan->prediction->memory);
  }
  ASSERT_LT(least, most);
  PlanningOptions options;
  options.memory_limit = least + (most - least) / 4;

  const PlanningResult result = plan(network, "net.json", 4, machine, options);

  EXPECT_LE(result.recommended.prediction->memory, *options.memory_limit);
  const bool some_refused = std::any_of(result.baselines.begin(), result.baselines.end(),
                                        [](const Considered& c) { return c.plan && !c.usable(); });
  EXPECT_TRUE(some_refused);
  for (const Considered& considered : result.baselines) {
    if (!considered.plan) continue;
    EXPECT_EQ(considered.usable(), considered.plan->prediction->memory <= *options.memory_limit)
        << considered.name;
    EXPECT_THAT(considered.infeasible,
                testing::HasSubstr(considered.usable() ? "" : "the limit is"));
  }
}

TEST(Planner, TheMachinesMemoryIsALimitToo) {
  MachineProfile machine = small_machine();
  machine.device.memory = {1 << 30};
  EXPECT_EQ(plan(small_resnet(2), "net.json", 2, machine).memory_limit, Bytes{1 << 30});
  PlanningOptions options;
  options.memory_limit = Bytes{1 << 29};
  EXPECT_EQ(plan(small_resnet(2), "net.json", 2, machine, options).memory_limit, Bytes{1 << 29});
}

/// Returns the message of the error if no plan fits.
std::string why_not(Bytes limit, int ranks) {
  PlanningOptions options;
  options.memory_limit = limit;
  MachineProfile machine = small_machine();
  machine.levels = {{"node", 2, {1e-6}, 1e9}, {"device", 4, {1e-6}, 1e9}};
  return test::message_of<InfeasibleError>([&] {
    plan(small_mesh(4, {3, 1, 256, 256}), "net.json", ranks, machine, options);
  });
}

TEST(Planner, InfeasibleSaysWhatWouldDo) {
  // 220 parameters with gradients and state, and 4 x 256 x 256 elements, on 2 and on 8 ranks.
  EXPECT_THAT(why_not({1 << 10}, 2),
              AllOf(HasSubstr("does not fit into 1 KiB per rank on 2 ranks: every plan needs at "
                              "least 51"),
                    HasSubstr("on all 8 ranks of small, every plan needs at least 12")));
  const std::string hopeless = why_not({600 << 10}, 2);
  EXPECT_THAT(hopeless, HasSubstr("does not fit into 600 KiB per rank on 2 ranks: the leanest plan "
                                  "found needs"));
  EXPECT_THAT(hopeless, HasSubstr("doubling the ranks up to 8 does not help"));
  EXPECT_THAT(why_not({300 << 10}, 8),
              HasSubstr("twice as many ranks would exceed the 8 ranks of small"));

  // One MiB below the leanest plan's memory is not enough, but more ranks would be.
  const auto needed = [](const std::string& message) {
    long long mebibytes = 0;
    const std::size_t numbers = message.find("the leanest plan found needs ");
    EXPECT_EQ(std::sscanf(message.c_str() + std::min(numbers, message.size()),
                          "the leanest plan found needs %lld MiB", &mebibytes),
              1)
        << message;
    return Bytes{mebibytes << 20};
  };
  const Bytes enough = needed(hopeless), too_little = enough - Bytes{1 << 20};
  EXPECT_EQ(why_not(enough, 2), "no exception");
  const std::string message = why_not(too_little, 2);
  EXPECT_EQ(needed(message), enough);
  int ranks = 0;
  const std::size_t offer = message.find(" MiB; ");
  ASSERT_NE(offer, std::string::npos) << message;
  ASSERT_EQ(std::sscanf(message.c_str() + offer, " MiB; %d ranks would be enough", &ranks), 1)
      << message;
  EXPECT_EQ(why_not(too_little, ranks), "no exception");
}

TEST(Planner, MachineWithTooFewRanks) {
  MachineProfile machine = small_machine();
  machine.levels = {{"node", 1, {1e-6}, 1e9}, {"device", 2, {1e-6}, 1e9}};
  EXPECT_THROW(plan(small_resnet(4), "net.json", 3, machine), InfeasibleError);
}

/// Imitates a profiler: every kernel of the plan takes its estimated time, times a factor from 1 to
/// 4 per kernel.
void measure(const Plan& plan, const Network& network, MachineProfile& machine) {
  for (const Program& program : programs_of(plan, network)) {
    for (const Op& op : program.ops) {
      Kernel kernel;
      if (const auto* compute = std::get_if<ComputeOp>(&op.body)) {
        kernel = compute->kernel;
      } else if (const auto* load = std::get_if<LoadOp>(&op.body)) {
        kernel = load_kernel(*load);
      } else {
        continue;
      }
      const std::string key = kernel.key();
      if (machine.kernels.contains(key)) continue;
      std::minstd_rand random(static_cast<unsigned>(std::hash<std::string>{}(key)));
      const double factor = 1 + std::uniform_real_distribution<double>(0, 3)(random);
      const Seconds seconds = estimate_kernel(kernel, machine.device) * factor;
      machine.kernels[key] = {seconds, seconds, seconds, 10, "made up", ""};
    }
  }
}

TEST(Planner, PlanningAndMeasuringAlternateUntilNothingIsEstimated) {
  const Network network = small_resnet(4);
  MachineProfile machine = test::pair_with_measured_links();
  int rounds = 0;
  PlanningResult result = plan(network, "net.json", 2, machine);
  EXPECT_FALSE(fully_measured(programs_of(result.recommended, network), machine));
  while (!fully_measured(programs_of(result.recommended, network), machine)) {
    ASSERT_LT(++rounds, 100);
    measure(*plans_to_measure(result).front(), network, machine);
    result = plan(network, "net.json", 2, machine);
  }
  // Estimates are lower bounds. So a plan that is best by measurements alone stays the best if all
  // other kernels are measured too.
  EXPECT_GT(rounds, 1) << "the first plan was already the last, so this test shows nothing";
  expect_nothing_faster(result);
}

TEST(Planner, PlansToMeasureAreDistinctAndBeginWithTheRecommended) {
  const PlanningResult result = plan(small_resnet(4), "net.json", 2, small_machine());
  const auto plans = plans_to_measure(result);
  EXPECT_EQ(plans.front(), &result.recommended);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(plans[i]->layers, plans[j]->layers);
  }
}

}  // namespace
}  // namespace stratplan
