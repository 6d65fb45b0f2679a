// Checkpoints: any plan reads back what was written; damaged checkpoints are skipped; checkpoints
// of another training are refused.
#include "runtime/io/checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "model/base/error.hpp"
#include "runtime/io/safetensors.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"
#include "support/training.hpp"

namespace stratplan::checkpoint_test {
namespace {

using testing::HasSubstr;
using State = std::vector<NamedTensor>;

constexpr TrainingSettings settings{.seed = 3, .learning_rate = 0.02};

Network tiny(const Training& training = {}) {
  return read_network("tiny", {.batch = {}, .input_size = {}, .training = training});
}

Checkpoints checkpoints_of(test::Rank& rank, const std::filesystem::path& folder, int keep = 3,
                           std::uint64_t seed = settings.seed) {
  return {folder, keep, rank.network, rank.program, seed, rank.executor, rank.communicator};
}

/// Returns parameters and running statistics.
State state_of(test::Rank& rank) {
  State state = test::parameters(rank);
  for (NamedTensor& tensor :
       gather_running_statistics(rank.network, rank.program, rank.executor, rank.communicator))
    state.push_back(std::move(tensor));
  return state;
}

/// Trains steps [0, end) without a stop, and writes a checkpoint after each of the steps `saved`.
State uninterrupted(const Network& network, const std::string& grid, int end,
                    const std::filesystem::path& folder, const std::vector<int>& saved) {
  State state;
  test::on_ranks(network, grid, settings, [&](test::Rank& rank) {
    Checkpoints checkpoints = checkpoints_of(rank, folder);
    int step = 0;
    for (const int save : saved) {
      test::train_steps(rank, step, save);
      checkpoints.save(save);
      step = save;
    }
    test::train_steps(rank, step, end);
    const State mine = state_of(rank);
    if (rank.communicator.rank() == 0) state = mine;
  });
  return state;
}

struct Resumed {
  Restored restored;
  State state;
};

/// Trains from the folder's newest checkpoint to step `end`.
Resumed resumed(const Network& network, const std::string& grid, int end,
                const std::filesystem::path& folder, std::uint64_t seed = settings.seed) {
  Resumed result;
  test::on_ranks(network, grid, settings, [&](test::Rank& rank) {
    const Restored restored = checkpoints_of(rank, folder, 3, seed).restore();
    test::train_steps(rank, restored.step, end);
    const State mine = state_of(rank);
    if (rank.communicator.rank() == 0) result = {restored, mine};
  });
  return result;
}

void expect_equal(const State& actual, const State& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].name, expected[i].name) << what;
    EXPECT_EQ(actual[i].values, expected[i].values)
        << what << ": " << actual[i].name;  // bit for bit, since no value is -0 or NaN
  }
}

TEST(Checkpoint, TheSamePlanGoesOnBitByBit) {
  for (const OptimizerKind optimizer :
       {OptimizerKind::Sgd, OptimizerKind::Momentum, OptimizerKind::Adam, OptimizerKind::Lars})
    for (const char* grid : {"N1", "N2 H2", "C2 F2", "H2 R2", "C2 all-reduce"}) {
      const test::TemporaryFolder folder;
      const std::string what = std::string(name_of(optimizer)) + " on " + grid;
      const Network network = tiny({.optimizer = optimizer});
      const State expected = uninterrupted(network, grid, 6, folder.path(), {3});
      const Resumed again = resumed(network, grid, 6, folder.path());
      EXPECT_EQ(again.restored.step, 3) << what;
      expect_equal(again.state, expected, what);
    }
}

TEST(Checkpoint, AnotherPlanGoesOnToRounding) {
  const test::TemporaryFolder folder;
  const State expected =
      uninterrupted(tiny({.optimizer = OptimizerKind::Adam}), "C2 F2", 6, folder.path(), {3});
  for (const char* grid : {"N1", "N2", "H3 W2", "F2", "N2 C2 R2"}) {
    const Resumed again = resumed(tiny({.optimizer = OptimizerKind::Adam}), grid, 6, folder.path());
    ASSERT_EQ(again.state.size(), expected.size());
    for (const NamedTensor& tensor : again.state) {
      const auto same = std::ranges::find(expected, tensor.name, &NamedTensor::name);
      ASSERT_NE(same, expected.end());
      for (std::size_t i = 0; i < tensor.values.size(); ++i)
        EXPECT_NEAR(tensor.values[i], same->values[i], 2e-4) << grid << ": " << tensor.name;
    }
  }
}

TEST(Checkpoint, RunningStatisticsGoOnBitByBit) {
  for (const char* grid : {"N1", "N2 H2", "C2 F2", "H2 R2"}) {
    const test::TemporaryFolder folder;
    const State expected = uninterrupted(tiny(), grid, 6, folder.path(), {3});
    const auto mean = std::ranges::find(expected, "bn1.running_mean", &NamedTensor::name);
    ASSERT_NE(mean, expected.end());
    EXPECT_THAT(mean->values, testing::Each(testing::Ne(0.0F)));
    expect_equal(resumed(tiny(), grid, 6, folder.path()).state, expected, grid);
    for (const char* other : {"N1", "C2"}) {
      // No step is left to do, so the state is as it was written.
      const Resumed again = resumed(tiny(), other, 3, folder.path());
      for (const NamedTensor& tensor : again.state) {
        if (!tensor.name.starts_with("bn1.running")) continue;
        const SafetensorsFile file = read_safetensors_file(folder / "step-00000003.safetensors");
        const auto written = std::ranges::find(file.tensors, tensor.name, &NamedTensor::name);
        ASSERT_NE(written, file.tensors.end()) << tensor.name;
        EXPECT_EQ(written->shape, tensor.shape);
        EXPECT_EQ(written->values, tensor.values) << grid << " to " << other << ": " << tensor.name;
      }
    }
  }
}

TEST(Checkpoint, HoldsWholeTensorsUnderTheNamesOfTheNetwork) {
  const test::TemporaryFolder folder;
  const State expected =
      uninterrupted(tiny({.optimizer = OptimizerKind::AdamW}), "C2 F2", 2, folder.path(), {2});
  const SafetensorsFile file = read_safetensors_file(folder / "step-00000002.safetensors");
  EXPECT_EQ(file.metadata.at("step"), "2");
  EXPECT_EQ(file.metadata.at("samples_seen"), "8");
  EXPECT_EQ(file.metadata.at("optimizer"), "adamw");
  // Mean and variance of the only normalization, for which optimizers have no state.
  constexpr std::size_t running = 2;
  ASSERT_EQ(file.tensors.size(), 3 * (expected.size() - running) + running);
  for (const char* name :
       {"conv1.weights", "optimizer.exp_avg.conv1.weights", "optimizer.exp_avg_sq.conv1.weights"}) {
    const auto found = std::ranges::find(file.tensors, name, &NamedTensor::name);
    ASSERT_NE(found, file.tensors.end()) << name;
    EXPECT_THAT(found->shape, testing::ElementsAre(4, 2, 1, 3, 3)) << name;
  }
  const auto weights = std::ranges::find(file.tensors, "conv1.weights", &NamedTensor::name);
  EXPECT_EQ(weights->values,
            std::ranges::find(expected, "conv1.weights", &NamedTensor::name)->values);
}

TEST(Checkpoint, KeepsTheLastOnes) {
  const test::TemporaryFolder folder;
  folder.write("step-00000001.safetensors.1.0.tmp", "of a writer that was killed");
  uninterrupted(tiny(), "N1", 6, folder.path(), {1, 2, 3, 4, 5});
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    names.push_back(entry.path().filename().string());
  EXPECT_THAT(
      names, testing::UnorderedElementsAre("step-00000003.safetensors", "step-00000004.safetensors",
                                           "step-00000005.safetensors", "latest"));
}

TEST(Checkpoint, AnEmptyFolderIsABeginning) {
  const test::TemporaryFolder folder;
  EXPECT_FALSE(Checkpoints::any(folder.path()));
  EXPECT_FALSE(Checkpoints::any(folder / "missing"));
  EXPECT_EQ(resumed(tiny(), "N2", 1, folder.path()).restored.step, 0);
}

/// Damages a file by flipping its last byte.
void flip_last_byte(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(-1, std::ios::end);
  file.put(byte);
}
void cut_short(const std::string& path) {
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 5);
}
void empty(const std::string& path) { std::filesystem::resize_file(path, 0); }

TEST(Checkpoint, ADamagedOneFallsBackToTheOneBefore) {
  for (const auto damage : {flip_last_byte, cut_short, empty}) {
    const test::TemporaryFolder folder;
    const State expected = uninterrupted(tiny(), "N2", 6, folder.path(), {2, 4});
    damage(folder / "step-00000004.safetensors");
    const Resumed again = resumed(tiny(), "N2", 6, folder.path());
    EXPECT_EQ(again.restored.step, 2);
    ASSERT_EQ(again.restored.notes.size(), 1U);
    EXPECT_THAT(again.restored.notes[0], HasSubstr("step-00000004.safetensors"));
    expect_equal(again.state, expected, "damaged");
    damage(folder / "step-00000002.safetensors");
    EXPECT_THAT(test::message_of([&] { resumed(tiny(), "N1", 6, folder.path()); }),
                HasSubstr("none of 2 checkpoints is intact"));
  }
}

TEST(Checkpoint, LatestMayPointBack) {
  const test::TemporaryFolder folder;
  uninterrupted(tiny(), "N1", 4, folder.path(), {2, 4});
  folder.write("latest", "step-00000002.safetensors\n");
  EXPECT_EQ(resumed(tiny(), "N1", 4, folder.path()).restored.step, 2);
  folder.write("latest", "nonsense");
  EXPECT_EQ(resumed(tiny(), "N1", 4, folder.path()).restored.step, 4);
}

TEST(Checkpoint, OfAnotherTrainingIsRefused) {
  const test::TemporaryFolder folder;
  uninterrupted(tiny(), "N1", 1, folder.path(), {1});
  Network renamed = tiny(), other = tiny(), steeper = tiny();
  renamed.name = "mini";
  other.layers[5].name = "conv9";
  steeper.layers[2].as<NormalizationLayer>().epsilon = 1e-3;
  const auto message = [&](const Network& network, std::uint64_t seed = settings.seed) {
    return test::message_of([&] { resumed(network, "N1", 1, folder.path(), seed); });
  };
  EXPECT_THAT(message(renamed), HasSubstr("this checkpoint has network tiny, this run has mini"));
  EXPECT_THAT(message(tiny({.optimizer = OptimizerKind::Adam})),
              HasSubstr("this checkpoint has optimizer momentum, this run has adam"));
  EXPECT_THAT(message(tiny(), 4), HasSubstr("this checkpoint has seed 3, this run has 4"));
  EXPECT_THAT(message(read_network("tiny", {.batch = 8, .input_size = {}, .training = {}})),
              HasSubstr("this checkpoint has batch 4, this run has 8"));
  EXPECT_THAT(message(other), HasSubstr("this file has no tensor conv9.weights"));
  EXPECT_THAT(message(steeper), HasSubstr("this checkpoint has fingerprint"));
}

}  // namespace
}  // namespace stratplan::checkpoint_test
