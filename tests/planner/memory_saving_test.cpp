// Memory limits: micro-batches, sharding and recomputation, chosen so that a plan fits.
#include "planner/memory_saving.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/base/error.hpp"
#include "model/cost/memory.hpp"
#include "model/network/micro_batches.hpp"
#include "model/partition/lowering/recompute.hpp"
#include "planner/memory_limit.hpp"
#include "planner/prediction.hpp"
#include "planner/small_cases.hpp"
#include "support/message_of.hpp"

namespace stratplan {
namespace {

using test::small_machine;
using test::small_mesh;
using test::small_resnet;
using testing::HasSubstr;

/// A network whose weights take most of its memory.
Network small_perceptron(std::int64_t batch) {
  test::NetworkBuilder net(batch);
  const LayerIndex x = net.relu(net.fully_connected(net.input({4, 1, 4, 4}), 256));
  net.cross_entropy(net.fully_connected(x, 10));
  return net.finish();
}

PlanningResult plan_within(const Network& network, int ranks, std::optional<Bytes> limit,
                           const FreeMemoryOptions& free, bool front = false) {
  PlanningOptions options;
  options.memory_limit = limit;
  options.free = free;
  options.front = front;
  return plan(network, "net.json", ranks, small_machine(), options);
}

constexpr FreeMemoryOptions nothing{false, false, false}, micro_batches{true, false, false},
    sharding{false, true, false}, recompute{false, false, true}, all{};

struct FitCase {
  const char* name;
  Network network;
  int ranks;
  FreeMemoryOptions free;
  double share;     ///< the memory limit, as a fraction of a plan's memory with options as given
  bool of_leanest;  ///< whether that plan is the leanest or the fastest one
  bool in_micro_batches, shared_out, recomputed;
};

std::vector<FitCase> fit_cases() {
  return {
      // name, network, ranks, free options, share, of_leanest, expected: micro-batches, sharding,
      // recomputation
      {"micro-batches alone", small_mesh(32, {3, 1, 16, 16}), 2, micro_batches, 0.85, true, true,
       false, false},
      {"sharding alone", small_resnet(32, 8, 64), 2, sharding, 0.97, false, false, true, false},
      {"recomputation alone", small_resnet(8, 32), 2, recompute, 0.9, true, false, false, true},
      {"no sharding",
       small_mesh(32, {3, 1, 16, 16}),
       2,
       {true, false, true},
       0.8,
       true,
       true,
       false,
       false},
      {"one rank", small_mesh(32, {3, 1, 16, 16}), 1, all, 0.85, true, true, false, false},
      {"many ranks", small_mesh(64, {3, 1, 16, 16}), 16, micro_batches, 0.85, true, true, false,
       false},
  };
}

Bytes least_of(const PlanningResult& result) {
  return result.front.back().plan->prediction->memory;
}

TEST(MemoryChoices, ABindingLimitChoosesWhatFits) {
  for (const FitCase& c : fit_cases()) {
    SCOPED_TRACE(c.name);
    const PlanningResult as_given = plan_within(c.network, c.ranks, {}, nothing, true);
    const Bytes given = c.of_leanest ? least_of(as_given) : as_given.recommended.prediction->memory;
    const Bytes limit{static_cast<std::int64_t>(static_cast<double>(given.value) * c.share)};

    const PlanningResult result = plan_within(c.network, c.ranks, limit, c.free);

    const Plan& plan = result.recommended;
    EXPECT_LE(plan.prediction->memory, limit);
    EXPECT_EQ(plan.overrides.training.micro_batches > 1, c.in_micro_batches)
        << memory_options_text(plan);
    EXPECT_EQ(plan.execution.sharding > 0, c.shared_out) << memory_options_text(plan);
    EXPECT_EQ(!plan.execution.recompute.empty(), c.recomputed) << memory_options_text(plan);
    const Network planned = network_of(plan, c.network);
    EXPECT_EQ(plan.network_fingerprint, planned.fingerprint());
    EXPECT_EQ(*plan.prediction, predict(plan, planned, small_machine()));
    ASSERT_TRUE(result.without_limit);
    EXPECT_GT(result.without_limit->memory, limit);
  }
}

TEST(MemoryChoices, AnyDivisorOfTheBatchIsANumberOfMicroBatches) {
  const Network network = small_mesh(15, {3, 1, 16, 16});
  const Bytes given = least_of(plan_within(network, 1, {}, nothing, true));

  const Plan plan = plan_within(network, 1, Bytes{given.value / 2}, micro_batches).recommended;

  EXPECT_THAT(plan.overrides.training.micro_batches, testing::AnyOf(3, 5, 15));
  EXPECT_LE(plan.prediction->memory.value, given.value / 2);
}

TEST(MemoryChoices, ARefusalSaysWhyThereAreNoMicroBatches) {
  Network network = small_resnet(16, 32);
  network.statistics_samples = network.batch;
  const auto refusal = [&](const FreeMemoryOptions& free) {
    const Bytes given = least_of(plan_within(network, 1, {}, nothing, true));
    return test::message_of<InfeasibleError>(
        [&] { plan_within(network, 1, Bytes{given.value / 2}, free); });
  };
  const char* why =
      "there are no micro-batches: batch normalization takes its statistics over 16 samples";
  EXPECT_THAT(refusal(micro_batches), HasSubstr(why));
  EXPECT_THAT(refusal(nothing), testing::Not(HasSubstr(why)));
}

/// Concurrent streams may be what exceeds the limit. The plan without the limit has them.
TEST(MemoryChoices, WithoutTheLimitIsTheUnlimitedPlan) {
  const Network network = read_network("resnet18", {.batch = 64, .input_size = {}});
  const MachineProfile machine = read_machine("lassen");
  const auto planned = [&](std::optional<Bytes> limit) {
    PlanningOptions options;
    options.memory_limit = limit;
    options.free = all;
    return plan(network, "resnet18", 4, machine, options);
  };
  const Prediction unlimited = *planned({}).searched.front().plan->prediction;
  const PlanningResult limited = planned(Bytes{unlimited.memory.value * 4 / 5});
  ASSERT_TRUE(limited.without_limit);
  EXPECT_EQ(*limited.without_limit, unlimited);
}

/// Also where memory is short, and on the front of time against memory.
TEST(MemoryChoices, AreOnesThatTheSoftwareRuns) {
  const Network network = read_network("vgg16", {.batch = 64, .input_size = {}});
  const MachineProfile machine = read_machine("lassen", 4, 1, read_software("pytorch-eager"));
  PlanningOptions options;
  options.memory_limit = Bytes{std::int64_t{2500} << 20};
  options.execution = as_run_by(machine.software, {});
  options.free = free_under(machine.software, all);
  options.front = true;
  const PlanningResult result = plan(network, "vgg16", 4, machine, options);
  int plans = 0;
  for (const auto* list : {&result.searched, &result.baselines, &result.fitted, &result.front})
    for (const Considered& considered : *list) {
      if (!considered.plan) continue;
      ++plans;
      EXPECT_EQ(considered.plan->execution.sharding, 0) << considered.name;
      for (const Decomposition& layer : considered.plan->layers)
        EXPECT_TRUE(can_run(machine.software, layer.grid)) << considered.name << layer.text();
    }
  EXPECT_GT(plans, 4);
}

/// The estimates prefer two micro-batches here, but leave out the sums that these repeat.
TEST(MemoryChoices, MoreFreedomMakesNoSlowerPlan) {
  const Network network = read_network("resnet18", {.batch = 64, .input_size = {}});
  const MachineProfile machine = read_machine("lassen");
  const auto step_with = [&](const FreeMemoryOptions& free) {
    PlanningOptions options;
    options.memory_limit = {std::int64_t{525} << 20};
    options.free = free;
    return plan(network, "resnet18", 2, machine, options).fastest_step.value;
  };
  EXPECT_LE(step_with(all), step_with({false, true, true}));
}

struct RepeatedCase {
  const char* name;
  Network network;
  const char* grid;
  std::int64_t micro_batches;
  int sharding;
  bool recomputes;
};

/// However many micro-batches there are, few are lowered, and the memory is that of all.
TEST(PeakMemory, IsThatOfAllMicroBatches) {
  const RepeatedCase cases[] = {
      {"few", small_resnet(64), "N2", 2, 0, false},
      {"as many as are lowered", small_resnet(64), "N2", 4, 0, false},
      {"one more", small_mesh(40, {3, 1, 16, 16}), "N2", 5, 0, false},
      {"many", small_resnet(64), "N2", 32, 0, false},
      {"in space", small_mesh(64, {3, 1, 16, 16}), "H2 W2", 64, 0, false},
      {"recomputed", small_resnet(64, 32), "N4", 16, 0, true},
      {"sharded optimizer's state", small_perceptron(64), "N4", 8, 1, false},
      {"sharded gradients", small_resnet(64), "N4", 8, 2, true},
      {"sharded parameters", small_perceptron(64), "N2", 16, 3, false},
      {"filters", small_perceptron(64), "F2", 16, 0, false},
  };
  for (const RepeatedCase& c : cases) {
    SCOPED_TRACE(c.name);
    Network samples = c.network;
    samples.statistics_samples = c.network.batch / c.micro_batches;
    const Network network = with_micro_batches(samples, c.micro_batches).value();
    Plan plan = uniform_plan(network, Decomposition::parse(c.grid));
    plan.execution.sharding = c.sharding;
    if (c.recomputes) plan.execution.recompute = layers_to_recompute(network);
    const MachineProfile machine = small_machine();

    const Bytes of_all = peak_memory(modelled_programs(plan, network), machine).total();

    EXPECT_EQ(peak_memory(plan, network, machine).value, of_all.value);
  }
}

TEST(MemoryChoices, AsFewLayersAsNeededAreMadeAgain) {
  const Network network = small_resnet(8, 32);
  const Bytes given = least_of(plan_within(network, 1, {}, nothing, true));
  const std::size_t most = layers_to_recompute(network).size();

  const PlanningResult result = plan_within(network, 1, given - Bytes{1}, recompute);

  EXPECT_GT(result.recommended.execution.recompute.size(), 0U);
  EXPECT_LT(result.recommended.execution.recompute.size(), most);
}

TEST(MemoryChoices, WithoutNeedNothingIsChosen) {
  const Network network = small_mesh(4, {3, 1, 32, 32});
  const PlanningResult result = plan_within(network, 4, {}, all);
  EXPECT_EQ(memory_options_text(result.recommended), "no memory-saving options");
  EXPECT_TRUE(result.fitted.empty());
  EXPECT_FALSE(result.without_limit);
}

TEST(MemoryChoices, WhatIsFixedStays) {
  const Network network = *with_micro_batches(small_mesh(32, {3, 1, 16, 16}), 2);
  const Bytes given = least_of(plan_within(network, 2, {}, nothing, true));
  EXPECT_THROW(plan_within(network, 2, given - Bytes{1}, nothing), InfeasibleError);
  PlanningOptions options;
  options.front = true;
  options.free = {.micro_batches = false, .sharding = false, .recompute = true};
  options.execution.sharding = 1;
  for (const Considered& point : plan(network, "net.json", 2, small_machine(), options).front) {
    EXPECT_EQ(point.plan->overrides.training.micro_batches, 2);
    EXPECT_EQ(point.plan->execution.sharding, 1);
  }
}

struct FrontCase {
  const char* name;
  Network network;
  int ranks;
};

TEST(MemoryChoices, TheFrontHasNoDominatedPointAndTheFastest) {
  const std::vector<FrontCase> cases = {
      // name, network, ranks
      {"mesh", small_mesh(8, {3, 1, 256, 256}), 2},
      {"resnet", small_resnet(8, 64), 4},
      {"perceptron", small_perceptron(8), 2},
  };
  for (const FrontCase& c : cases) {
    SCOPED_TRACE(c.name);
    const PlanningResult result = plan_within(c.network, c.ranks, {}, all, true);
    ASSERT_GT(result.front.size(), 1U);
    for (std::size_t i = 1; i < result.front.size(); ++i) {
      EXPECT_GT(result.front[i].plan->prediction->step, result.front[i - 1].plan->prediction->step);
      EXPECT_LT(result.front[i].plan->prediction->memory,
                result.front[i - 1].plan->prediction->memory);
    }
    EXPECT_EQ(result.front.front().plan->prediction->step, result.fastest_step);
    if (!result.tie) {
      EXPECT_EQ(result.front.front().plan->prediction, result.recommended.prediction);
    }
    const Bytes least = least_of(result);
    EXPECT_LE(least_conceivable_memory(c.network, c.ranks, {}, all), least);
    EXPECT_LE(plan_within(c.network, c.ranks, least, all).recommended.prediction->memory, least);
    const std::string message = test::message_of<InfeasibleError>(
        [&] { plan_within(c.network, c.ranks, least - Bytes{1}, all); });
    EXPECT_THAT(message, HasSubstr(fmt::format("the leanest plan found needs {} MiB",
                                               (least.value + (1 << 20) - 1) >> 20)));
    EXPECT_THAT(message, HasSubstr("ranks would be enough"));
  }
}

TEST(MemoryChoices, ALimitMovesTheRecommendedAlongTheFront) {
  const Network network = small_mesh(16, {3, 1, 32, 32});
  const PlanningResult free = plan_within(network, 2, {}, all, true);
  const Bytes limit = free.front[free.front.size() / 2].plan->prediction->memory;

  const PlanningResult bound = plan_within(network, 2, limit, all, true);

  EXPECT_LE(bound.recommended.prediction->memory, limit);
  EXPECT_LE(bound.fastest_step, free.front[free.front.size() / 2].plan->prediction->step);
  const bool on_it = std::ranges::any_of(bound.front, [&](const Considered& point) {
    return point.plan->prediction->step == bound.fastest_step;
  });
  EXPECT_TRUE(on_it);
}

}  // namespace
}  // namespace stratplan
