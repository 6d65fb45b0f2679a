// Whole networks trained over loopback: every decomposition gives the undivided run's numbers.
#include "runtime/exec/trainer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/network/network.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/verify/dump.hpp"
#include "runtime/verify/verify.hpp"
#include "support/training.hpp"

namespace stratplan::trainer_test {
namespace {

struct Outcome {
  Timing timing;
  std::vector<NamedTensor> first;   ///< loss and gradients of the first iteration
  std::vector<NamedTensor> values;  ///< parameters at the end
};

/// Trains on as many ranks as the decompositions have. Poisons memory before each iteration.
Outcome train_network(const Network& network, const LayerDecompositions& decompositions,
                      const Execution& execution, int steps) {
  Outcome outcome;
  run_loopback(decompositions.back().grid.ranks(), [&](Communicator& communicator) {
    const Program program = lower(network, decompositions, execution, communicator.rank());
    const auto backend = make_reference_backend();
    const TrainingSettings settings{.seed = 7, .learning_rate = 0.05};
    SyntheticData data(settings.seed);
    Executor executor(network, program, *backend, communicator, data, settings);
    initialize_parameters(network, program, settings.seed, executor);
    executor.poison();
    std::vector<NamedTensor> first;
    TrainingRun run{
        .warmup = 1, .steps = steps, .after_step = [&](std::int64_t iteration, double, Seconds) {
          if (iteration == 0) first = gather_iteration(network, program, executor, communicator);
          executor.poison();
        }};
    const Timing timing = train(executor, communicator, run);
    const auto values =
        gather_parameters(network, program, executor, communicator, ParameterPart::Value);
    if (communicator.rank() == 0) outcome = {timing, first, values};
  });
  return outcome;
}

LayerDecompositions uniform(const Network& network, const std::string& text) {
  return uniform_plan(network, Decomposition::parse(text)).layers;
}

/// Compares the first step's loss and gradients, and the losses of later steps, with the undivided
/// run.
void expect_same_numbers(const Network& network, const LayerDecompositions& decompositions,
                         const Execution& execution, const std::string& what) {
  const Outcome whole =
      train_network(network, LayerDecompositions(network.layers.size()), Execution{}, 3);
  const Outcome split = train_network(network, decompositions, execution, 3);
  const VerificationResult verification =
      compare(whole.first, split.first, verification_tolerance(network));
  EXPECT_TRUE(verification.passed)
      << what << ": loss " << verification.loss_difference << ", " << verification.worst_tensor
      << " " << verification.gradient_difference << ", tolerance " << verification.tolerance;
  ASSERT_EQ(split.timing.losses.size(), 4U) << what;
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(split.timing.losses[i], whole.timing.losses[i], 1e-4 * whole.timing.losses[i])
        << what << ", step " << i;
}

class TinyOn : public testing::TestWithParam<const char*> {};

TEST_P(TinyOn, EqualsTheUndividedRun) {
  const Network network = read_network("tiny");
  expect_same_numbers(network, uniform(network, GetParam()), Execution{}, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Grids, TinyOn,
                         testing::Values("N1", "N2", "H2", "W2", "C2", "F2", "R2", "C2 all-reduce",
                                         "N2 H2", "C2 F2", "C2 F2 all-reduce", "H2 W2", "H3 W2",
                                         "C3 F2", "H2 R2", "N3", "H4", "W5", "N2 | H2",
                                         "N2 | C2 F2", "F2 | F2", "H2 | H2 W2", "N4 W3"));

TEST(Trainer, LayersThatAllDiffer) {
  const Network network = read_network("tiny");
  const char* grids[] = {"N4", "H4", "C2 F2", "W4", "N2 H2", "R4", "C4", "F4", "H2 W2", "N2 R2"};
  for (int shift = 0; shift < 10; ++shift) {
    LayerDecompositions decompositions(network.layers.size());
    for (std::size_t i = 1; i < decompositions.size(); ++i)
      decompositions[i] =
          nearest_legal(network.layers[i],
                        Decomposition::parse(grids[(i + static_cast<std::size_t>(shift)) % 10]))
              .decomposition;
    expect_same_numbers(network, decompositions, Execution{}, "shift " + std::to_string(shift));
  }
}

TEST(Trainer, SmallBucketsChangeNothing) {
  const Network network = read_network("tiny");
  Execution execution;
  execution.bucket_bytes = {64};
  for (const char* grid : {"N2", "N2 H2", "C2 F2", "N2 C2"})
    expect_same_numbers(network, uniform(network, grid), execution, grid);
}

TEST(Trainer, LossFallsAndRedundantRanksAgree) {
  const Network network = read_network("tiny");
  const Outcome outcome = train_network(network, uniform(network, "N2"), Execution{}, 30);
  EXPECT_LT(outcome.timing.losses.back(), 0.5 * outcome.timing.losses.front());
}

TEST(Trainer, BeginsAndEndsWhereItIsTold) {
  struct Row {
    std::int64_t first;
    int stop_after;             ///< number of iterations; 0: never
    std::size_t losses, timed;  ///< of 2 warm-up and 4 timed iterations
  };
  for (const Row& row : {Row{0, 0, 6, 4}, Row{3, 0, 3, 1}, Row{5, 0, 1, 1}, Row{6, 0, 0, 0},
                         Row{0, 3, 3, 1}, Row{1, 1, 1, 0}}) {
    test::on_ranks(read_network("tiny"), "N2", {}, [&](test::Rank& rank) {
      int asked = 0;
      const TrainingRun run{.warmup = 2, .steps = 4, .first = row.first, .stop = [&] {
                              return ++asked == row.stop_after;
                            }};
      const Timing timing = train(rank.executor, rank.communicator, run);
      EXPECT_EQ(timing.losses.size(), row.losses) << "from " << row.first;
      EXPECT_EQ(timing.steps.size(), row.timed) << "from " << row.first;
    });
  }
}

TEST(Trainer, TimesEveryOpOfEveryRank) {
  const Network network = read_network("tiny");
  const LayerDecompositions decompositions = uniform(network, "N2");
  const Timing timing = train_network(network, decompositions, Execution{}, 3).timing;
  EXPECT_EQ(timing.steps.size(), 3U);
  EXPECT_EQ(timing.losses.size(), 4U);
  ASSERT_EQ(timing.op_medians.size(), 2U);
  for (int rank = 0; rank < 2; ++rank) {
    const auto& medians = timing.op_medians[static_cast<std::size_t>(rank)];
    EXPECT_EQ(medians.size(), lower(network, decompositions, Execution{}, rank).ops.size());
    for (std::size_t i = 0; i < medians.size(); ++i) {
      EXPECT_GT(timing.op_p10.at(static_cast<std::size_t>(rank)).at(i), Seconds{0});
      EXPECT_LE(timing.op_p10[static_cast<std::size_t>(rank)][i], medians[i]);
      EXPECT_LE(medians[i], timing.op_p90.at(static_cast<std::size_t>(rank)).at(i));
    }
  }
}

TEST(Trainer, RecordsOneWholeStep) {
  const Network network = read_network("tiny");
  const LayerDecompositions decompositions = uniform(network, "H2");
  for (const int steps : {1, 5, 40}) {
    const Timing timing = train_network(network, decompositions, Execution{}, steps).timing;
    const RecordedStep& step = timing.recorded;
    ASSERT_GE(step.iteration, std::max(1, steps - 15)) << steps;  // one of the last sixteen
    ASSERT_LE(step.iteration, steps) << steps;
    const Seconds whole = timing.steps.at(static_cast<std::size_t>(step.iteration - 1));
    ASSERT_EQ(step.ranks.size(), 2U);
    EXPECT_EQ(step.clock_errors[0], Seconds{});
    for (int rank = 0; rank < 2; ++rank) {
      const std::vector<Span>& spans = step.ranks[static_cast<std::size_t>(rank)];
      ASSERT_EQ(spans.size(), lower(network, decompositions, Execution{}, rank).ops.size());
      for (std::size_t i = 0; i < spans.size(); ++i) {
        EXPECT_EQ(spans[i].op, static_cast<int>(i));
        EXPECT_LE(spans[i].start, spans[i].end);
        // One op begins where the one before it ends, on whichever clock.
        const Seconds before = i > 0 ? spans[i - 1].end : spans[i].start;
        EXPECT_NEAR(spans[i].start.value, before.value, 1e-8);
      }
      EXPECT_LE((spans.back().end - spans.front().start).value, whole.value + 1e-8);
    }
  }
}

// Medians of several iterations need not add up, since each may come from another iteration.
TEST(Trainer, AnIterationTakesAsLongAsItsOps) {
  const Timing one =
      train_network(read_network("tiny"), uniform(read_network("tiny"), "N2"), Execution{}, 1)
          .timing;
  ASSERT_EQ(one.steps.size(), 1U);
  for (const auto& durations : one.op_medians) {
    Seconds total{};
    for (const Seconds duration : durations) total += duration;
    EXPECT_LT(total, one.steps[0]);
  }
}

TEST(Trainer, ParametersStartFromSeedAndNameWhateverTheDecomposition) {
  const Network network = read_network("tiny");
  std::vector<std::vector<NamedTensor>> starts;
  for (const char* grid : {"N1", "C2 F2", "H2"}) {
    const LayerDecompositions decompositions = uniform(network, grid);
    run_loopback(decompositions.back().grid.ranks(), [&](Communicator& communicator) {
      const Program program = lower(network, decompositions, Execution{}, communicator.rank());
      const auto backend = make_reference_backend();
      SyntheticData data(1);
      Executor executor(network, program, *backend, communicator, data, {});
      initialize_parameters(network, program, 1, executor);
      const auto values =
          gather_parameters(network, program, executor, communicator, ParameterPart::Value);
      if (communicator.rank() == 0) starts.push_back(values);
    });
  }
  ASSERT_EQ(starts.size(), 3U);
  std::vector<std::string> names;
  for (const NamedTensor& tensor : starts[0]) names.push_back(tensor.name);
  EXPECT_THAT(
      names, testing::UnorderedElementsAre("conv1.weights", "bn1.scale", "bn1.shift",
                                           "conv2.weights", "conv2.bias", "fc.weights", "fc.bias"));
  for (const auto& start : starts)
    for (std::size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(start[i].name, names[i]);
      EXPECT_EQ(start[i].shape, starts[0][i].shape) << names[i];
      EXPECT_EQ(start[i].values, starts[0][i].values) << names[i];
    }
}

}  // namespace
}  // namespace stratplan::trainer_test
