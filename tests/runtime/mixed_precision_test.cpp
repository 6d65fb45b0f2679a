// Training with activations in bf16 and fp16: its results on one rank and on several, and the
// effects of an overflow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/base/error.hpp"
#include "model/partition/lowering/recompute.hpp"
#include "runtime/verify/verify.hpp"
#include "support/message_of.hpp"
#include "support/networks.hpp"
#include "support/training.hpp"

namespace stratplan {
namespace {

using test::on_ranks;
using test::Rank;

Execution mixed(DataType type) { return {.precision = {.activations = type}}; }

/// Returns the losses of so many steps. They must be the same on all ranks.
std::vector<double> losses(const Network& network, const std::string& grid,
                           const Execution& execution, int steps,
                           const TrainingSettings& settings = {}) {
  std::vector<double> found;
  on_ranks(
      network, grid, settings,
      [&](Rank& rank) {
        const Timing timing =
            train(rank.executor, rank.communicator, {.warmup = 0, .steps = steps});
        if (rank.communicator.rank() == 0) found = timing.losses;
      },
      execution);
  return found;
}

TEST(MixedPrecision, LearnsAsInF32) {
  for (const Network& network : {test::small_network(4, 4), test::residual_network(4, 4)}) {
    const TrainingSettings settings{.learning_rate = 0.05};
    const std::vector<double> wide = losses(network, "N1", {}, 30, settings);
    for (const DataType type : {DataType::BF16, DataType::F16}) {
      const std::vector<double> narrow = losses(network, "N1", mixed(type), 30, settings);
      EXPECT_NEAR(narrow.front(), wide.front(), 0.01 * wide.front()) << name_of(type);
      EXPECT_LT(narrow.back(), 0.5 * narrow.front()) << name_of(type);
      EXPECT_NEAR(narrow.back(), wide.back(), 0.1 * wide.front()) << name_of(type);
    }
  }
}

/// Compares the first step of a plan with the undivided one, in the same precision.
TEST(MixedPrecision, APlanDoesNotChangeTheNumbers) {
  for (const Network& network : {test::small_network(4, 4), test::residual_network(4, 4),
                                 test::activated_contractions(4, true)})
    for (const DataType type : {DataType::BF16, DataType::F16})
      for (const char* grid : {"N2", "H2 W2", "C2", "F2", "C2 F2", "N2 H2"}) {
        const TrainingSettings settings{.loss_scale = {.initial = 256}};
        on_ranks(
            network, grid, settings,
            [&](Rank& rank) {
              rank.executor.run(0);
              const auto backend = make_reference_backend();
              SyntheticData data(settings.seed);
              const auto actual =
                  gather_iteration(network, rank.program, rank.executor, rank.communicator);
              std::vector<NamedTensor> expected;
              if (rank.communicator.rank() == 0)
                expected = undivided_iteration(network, mixed(type), *backend, settings, data);
              const VerificationResult result =
                  verify_first_step(network, rank.program, mixed(type), settings, *backend, data,
                                    rank.executor, rank.communicator, expected, actual);
              EXPECT_TRUE(result.passed)
                  << name_of(type) << " " << grid << ": " << result.worst_tensor << " "
                  << result.gradient_difference << " of " << result.tolerance;
            },
            mixed(type));
      }
}

TEST(MixedPrecision, WhatSavesMemoryChangesNoBit) {
  const Network network = test::residual_network(4, 4);
  const LayerDecompositions decompositions =
      uniform_plan(network, Decomposition::parse("N2")).layers;
  const test::Trained expected =
      test::train_two_steps(network, decompositions, mixed(DataType::BF16), "reference");
  for (const int sharding : {0, 1, 2, 3})
    for (const bool again : {false, true}) {
      Execution execution = mixed(DataType::BF16);
      execution.bucket_bytes = {700};
      execution.sharding = sharding;
      if (again) execution.recompute = layers_to_recompute(network);
      EXPECT_EQ(test::first_difference(expected, test::train_two_steps(network, decompositions,
                                                                       execution, "reference")),
                "")
          << "sharding " << sharding << (again ? ", made again" : "");
    }
}

TEST(MixedPrecision, GradientsComeOutUnscaled) {
  const Network network = test::small_network(4, 4);
  const auto gradients = [&](const Execution& execution, double scale) {
    std::vector<NamedTensor> found;
    on_ranks(
        network, "N1", {.loss_scale = {.initial = scale}},
        [&](Rank& rank) {
          rank.executor.run(0);
          found = gather_iteration(network, rank.program, rank.executor, rank.communicator);
        },
        execution);
    return found;
  };
  const auto wide = gradients({}, 1), scaled = gradients(mixed(DataType::F16), 1024);
  const VerificationResult result = compare(wide, scaled, 0.02);
  EXPECT_TRUE(result.passed) << result.worst_tensor << " " << result.gradient_difference;
}

/// A loss scale at which all gradients overflow. All ranks skip such steps until the scale has been
/// halved often enough.
TEST(MixedPrecision, StepsThatOverflowAreLeftOut) {
  const Network network = test::residual_network(4, 4);
  for (const char* grid : {"N1", "N2", "C2 F2"}) {
    std::vector<double> found;
    on_ranks(
        network, grid, {.learning_rate = 0.05, .loss_scale = {.initial = 0x1p24}},
        [&](Rank& rank) {
          const auto before = test::parameters(rank);
          rank.executor.run(0);
          EXPECT_EQ(rank.executor.loss_scaling().scale, 0x1p23) << grid;
          const auto after = test::parameters(rank);
          for (std::size_t i = 0; i < before.size(); ++i)
            EXPECT_EQ(after[i].values, before[i].values) << grid << " " << before[i].name;
          const Timing timing = train(rank.executor, rank.communicator, {.warmup = 0, .steps = 40});
          EXPECT_LT(rank.executor.loss_scaling().scale, 0x1p23);
          if (rank.communicator.rank() == 0) found = timing.losses;
        },
        mixed(DataType::F16));
    EXPECT_LT(found.back(), 0.5 * found.front()) << grid;
  }
}

TEST(LossScaling, TableOfSteps) {
  struct Row {
    LossScaling now;
    bool overflow;
    std::int64_t growth_steps;
    double scale, steps;
  };
  const Row rows[] = {
      {{1024, 3}, true, 10, 512, 0},       {{1024, 3}, false, 10, 1024, 4},
      {{1024, 9}, false, 10, 2048, 0},     {{1, 3}, true, 10, 1, 0},
      {{0x1p24, 9}, false, 10, 0x1p24, 0}, {{1024, 3}, true, 0, 1024, 0},
      {{1024, 9}, false, 0, 1024, 10},  // a static scale
  };
  for (const Row& row : rows) {
    const LossScaling next = adjusted(row.now, row.overflow, row.growth_steps);
    EXPECT_EQ(next.scale, row.scale);
    EXPECT_EQ(next.steps, row.steps);
  }
}

TEST(MixedPrecision, TheCpuBackendSaysThatItCannot) {
  if (!cpu_part().built) GTEST_SKIP() << "no cpu backend";
  const auto backend = make_backend("cpu", 1);
  Kernel kernel{.kind = KernelKind::PointwiseForward, .type = DataType::BF16};
  EXPECT_THAT(test::message_of<EnvironmentError>([&] { backend->prepare(kernel); }),
              testing::HasSubstr("computes in fp32 alone, not in bf16"));
}

}  // namespace
}  // namespace stratplan
