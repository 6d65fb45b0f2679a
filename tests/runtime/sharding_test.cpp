// Sharded parameters give the same numbers as whole ones, and are gathered wherever whole tensors
// are needed.
#include "model/partition/sharding.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/partition/lowering/recompute.hpp"
#include "runtime/late_communicator.hpp"
#include "runtime/verify/verify.hpp"
#include "support/any_network.hpp"
#include "support/temporary_folder.hpp"
#include "support/training.hpp"

namespace stratplan::sharding_test {
namespace {

using test::first_difference;
using test::train_two_steps;

Network trained_with(OptimizerKind optimizer, std::int64_t micro_batches = 1) {
  Network network = test::residual_network(4 / micro_batches, 2);
  network.batch = 4;
  network.training = {optimizer, micro_batches};
  network.running_momentum = 0.1;
  return network;
}

struct Row {
  const char* what;
  Network network;
  const char* grid;
};
std::vector<Row> rows() {
  using enum OptimizerKind;
  return {
      {"two ranks, momentum", trained_with(Momentum), "N2"},
      {"no state", trained_with(Sgd), "H2"},
      {"two values of state", trained_with(Adam), "N2"},
      {"adamw, a group of four", trained_with(AdamW), "N2 H2"},
      {"a group of three", trained_with(Nesterov), "H3"},
      {"groups of two, a pair for each half of the filters", trained_with(Momentum), "N2 F2"},
      {"sums over channels", trained_with(Momentum), "N2 C2"},
      {"work repeated", trained_with(Momentum), "N2 R2"},
      {"nobody to share with", trained_with(Momentum), "R2"},
      {"one rank", trained_with(Momentum), "N1"},
  };
}

TEST(Sharding, GivesTheSameNumbersBitForBit) {
  for (const Row& row : rows()) {
    const LayerDecompositions decompositions =
        uniform_plan(row.network, Decomposition::parse(row.grid)).layers;
    const test::Trained expected = train_two_steps(row.network, decompositions, {}, "reference");
    for (const int sharding : {1, 2, 3}) {
      for (const std::int64_t bucket : {1, 700, 4 << 20}) {
        SCOPED_TRACE(fmt::format("{}: sharding {} in buckets of {}", row.what, sharding, bucket));
        Execution execution{.bucket_bytes = {bucket},
                            .concurrent_streams = bucket == 700,
                            .precision = {},
                            .sharding = sharding};
        EXPECT_EQ(first_difference(expected, train_two_steps(row.network, decompositions, execution,
                                                             "reference")),
                  "");
        execution.recompute = layers_to_recompute(row.network);
        EXPECT_EQ(first_difference(expected, train_two_steps(row.network, decompositions, execution,
                                                             "reference")),
                  "")
            << "with recomputation";
      }
    }
  }
}

/// Nothing moves messages before somebody waits, so buffers of messages under way must be neither
/// read nor overwritten.
TEST(Sharding, HoweverLateMessagesAre) {
  const Network network = trained_with(OptimizerKind::Momentum);
  const LayerDecompositions decompositions =
      uniform_plan(network, Decomposition::parse("N2 H2")).layers;
  const test::Trained expected = train_two_steps(network, decompositions, {}, "reference");
  for (const int sharding : {0, 1, 2, 3}) {
    const Execution execution{.bucket_bytes = {700},
                              .concurrent_streams = true,
                              .precision = {},
                              .recompute = layers_to_recompute(network),
                              .sharding = sharding};
    run_loopback(4, [&](Communicator& loopback) {
      test::LateCommunicator communicator(loopback);
      const test::Trained found = train_two_steps(network, decompositions, execution, "reference",
                                                  communicator, communicator);
      if (communicator.rank() > 0) return;
      EXPECT_EQ(first_difference(expected, found), "") << sharding;
    });
  }
}

/// From stage 2 on, the gradients of micro-batches are added up after the sum over ranks, which is
/// another order.
TEST(Sharding, OfMicroBatchesGivesTheSameNumbersToRounding) {
  const Network network = trained_with(OptimizerKind::Momentum, 2);
  const LayerDecompositions decompositions =
      uniform_plan(network, Decomposition::parse("N2")).layers;
  const test::Trained expected = train_two_steps(network, decompositions, {}, "reference");
  for (const int sharding : {1, 2, 3}) {
    const test::Trained found = train_two_steps(
        network, decompositions, {.precision = {}, .sharding = sharding}, "reference");
    EXPECT_EQ(first_difference(expected, found).empty(), sharding == 1);
    const VerificationResult verification =
        compare(expected.gradients, found.gradients, verification_tolerance(network));
    EXPECT_TRUE(verification.passed)
        << sharding << ": " << verification.worst_tensor << " " << verification.gradient_difference;
  }
}

TEST(Sharding, GivesTheSameNumbersOnTheCpuBackend) {
  if (!cpu_part().built) GTEST_SKIP() << "built without oneDNN";
  for (const Row& row : rows()) {
    const LayerDecompositions decompositions =
        uniform_plan(row.network, Decomposition::parse(row.grid)).layers;
    const test::Trained expected = train_two_steps(row.network, decompositions, {}, "cpu");
    for (const int sharding : {1, 2, 3}) {
      const Execution execution{.bucket_bytes = {700}, .precision = {}, .sharding = sharding};
      EXPECT_EQ(first_difference(expected,
                                 train_two_steps(row.network, decompositions, execution, "cpu")),
                "")
          << row.what << ", sharding " << sharding;
    }
  }
}

RC_GTEST_PROP(Sharding, GivesTheSameNumbersOfAnyNetwork, ()) {
  const Network network = test::any_network();
  const LayerDecompositions decompositions =
      uniform_plan(network, {test::any_grid(test::any_of<Topology>({{2}, {3}, {4}, {2, 2}}),
                                            {all_dims.begin(), all_dims.end()})})
          .layers;
  const Execution execution{
      .bucket_bytes = {test::any_int(1, 3000)}, .precision = {}, .sharding = test::any_int(1, 3)};
  const test::Trained expected = train_two_steps(network, decompositions, {}, "reference");
  RC_ASSERT(first_difference(
                expected, train_two_steps(network, decompositions, execution, "reference")) == "");
}

/// A checkpoint holds whole tensors. So training continues under any stage, bit for bit, from a
/// checkpoint of another stage.
TEST(Sharding, CheckpointsGoOnUnderAnyStage) {
  const Network network = trained_with(OptimizerKind::Adam);
  const TrainingSettings settings{.seed = 3};
  std::vector<NamedTensor> expected;
  test::on_ranks(network, "N2 H2", settings, [&](test::Rank& rank) {
    test::train_steps(rank, 0, 4);
    const std::vector<NamedTensor> mine = test::parameters(rank);
    if (rank.communicator.rank() == 0) expected = mine;
  });
  for (const int sharding : {0, 1, 2, 3}) {
    const test::TemporaryFolder folder;
    const Execution before{.bucket_bytes = {700}, .precision = {}, .sharding = 3 - sharding},
        after{.precision = {}, .sharding = sharding};
    const auto checkpoints_of = [&](test::Rank& rank) {
      return Checkpoints(folder / "state", 1, rank.network, rank.program, settings.seed,
                         rank.executor, rank.communicator);
    };
    const auto first_half = [&](test::Rank& rank) {
      test::train_steps(rank, 0, 2);
      checkpoints_of(rank).save(2);
    };
    const auto second_half = [&](test::Rank& rank) {
      EXPECT_EQ(checkpoints_of(rank).restore().step, 2);
      test::train_steps(rank, 2, 4);
      const std::vector<NamedTensor> found = test::parameters(rank);
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_EQ(found[i].values, expected[i].values)
            << found[i].name << ", sharding " << sharding;
    };
    test::on_ranks(network, "N2 H2", settings, first_half, before);
    test::on_ranks(network, "N2 H2", settings, second_half, after);
  }
}

}  // namespace
}  // namespace stratplan::sharding_test
