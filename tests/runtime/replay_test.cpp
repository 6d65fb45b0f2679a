// Steps that are captured and replayed give the same results, bit by bit, as steps that are
// launched. The fake device obeys the rules of CUDA graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "model/base/error.hpp"
#include "runtime/comm/staged.hpp"
#include "runtime/fake_device.hpp"
#include "runtime/late_communicator.hpp"
#include "runtime/replayed_training.hpp"
#include "runtime/stream_communicator.hpp"

namespace stratplan::test {
namespace {

using namespace replayed;
using testing::HasSubstr;
using testing::IsEmpty;

class ReplayedOptimizer : public testing::TestWithParam<OptimizerKind> {};

TEST_P(ReplayedOptimizer, TrainsAlikeOnOneRank) {
  const Network network = changing_network(GetParam());
  const LayerDecompositions whole(network.layers.size());
  run_loopback(1, [&](Communicator& alone) {
    FakeDevice device;
    const Outcome replayed = train(network, whole, {}, device, alone, alone, true);
    expect_same(replayed, launched(network, whole, {}), "one rank");
    EXPECT_EQ(replayed.count.segments, 1U);
    EXPECT_EQ(replayed.count.ops, replayed.count.all_ops);
    EXPECT_EQ(device.captures_made(), 1);
    EXPECT_EQ(device.replays(), steps - 1)
        << "the first iteration is launched, so nothing is set up within a capture";
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, ReplayedOptimizer,
                         testing::Values(OptimizerKind::Sgd, OptimizerKind::Momentum,
                                         OptimizerKind::Nesterov, OptimizerKind::Adam,
                                         OptimizerKind::AdamW, OptimizerKind::Lars),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

constexpr const char* grids[] = {"N2", "N3", "H2", "W2", "C2 F2", "F2", "N2 H2", "H2 W2"};

TEST(Replay, IsOfTheWholeStepWhereCommunicationIsCaptured) {
  const Network network = changing_network();
  for (const char* grid : grids)
    for (const bool concurrent : {false, true})
      for (const int sharding : {0, 3}) {
        const LayerDecompositions decompositions =
            uniform_plan(network, Decomposition::parse(grid)).layers;
        const Execution execution = in_pieces(concurrent, sharding);
        const Outcome expected = launched(network, decompositions, execution);
        const std::string what = std::string(grid) + (concurrent ? ", concurrent" : "") +
                                 ", sharding " + std::to_string(sharding);
        run_loopback(decompositions.back().grid.ranks(), [&](Communicator& loopback) {
          FakeDevice device;
          StreamCommunicator communicator(loopback, device);
          const Outcome replayed =
              train(network, decompositions, execution, device, communicator, loopback, true);
          if (loopback.rank() == 0) expect_same(replayed, expected, what);
          EXPECT_EQ(replayed.count.segments, 1U) << what;
          EXPECT_EQ(replayed.count.ops, replayed.count.all_ops) << what;
          EXPECT_EQ(device.captures_made(), 1) << what;
          EXPECT_EQ(communicator.replays(), steps - 1) << what;
        });
      }
}

TEST(Replay, IsBetweenWhatGoesByWayOfTheHost) {
  const Network network = changing_network();
  for (const char* grid : grids)
    for (const bool concurrent : {false, true}) {
      const LayerDecompositions decompositions =
          uniform_plan(network, Decomposition::parse(grid)).layers;
      const Execution execution = in_pieces(concurrent);
      const Outcome expected = launched(network, decompositions, execution);
      const std::string what = std::string(grid) + (concurrent ? ", concurrent" : "");
      run_loopback(decompositions.back().grid.ranks(), [&](Communicator& loopback) {
        FakeDevice device;
        LateCommunicator late(loopback);  // data that nobody waited for has not arrived
        StagedCommunicator communicator(late, device);
        const Outcome replayed =
            train(network, decompositions, execution, device, communicator, loopback, true);
        if (loopback.rank() == 0) expect_same(replayed, expected, what);
        EXPECT_GT(replayed.count.segments, 1U) << what;
        EXPECT_LT(replayed.count.ops, replayed.count.all_ops) << what;
        EXPECT_EQ(device.captures_made(), static_cast<int>(replayed.count.segments)) << what;
        EXPECT_EQ(device.replays(), (steps - 1) * static_cast<int>(replayed.count.segments))
            << what;
      });
    }
}

/// One rank's training on a fake device, with replayed steps.
class Replaying {
 public:
  explicit Replaying(Communicator& communicator)
      : program_(lower(network_, LayerDecompositions(network_.layers.size()), {}, 0)),
        executor_(network_, program_, device_, communicator, data_, settings()) {
    executor_.replay_ops();
    initialize_parameters(network_, program_, 3, executor_);
  }
  Executor& executor() { return executor_; }
  const FakeDevice& device() const { return device_; }
  const Program& program() const { return program_; }
  std::vector<float> weights() {
    const ParameterSlice& slice = program_.parameters.front();
    std::vector<float> values(static_cast<std::size_t>(slice.region.elements()));
    executor_.download(slice.value, values.data());
    return values;
  }

 private:
  Network network_ = changing_network();
  Program program_;
  FakeDevice device_;
  SyntheticData data_{3};
  Executor executor_;
};

TEST(Replay, FollowsTheSchedule) {  // no parameter changes at a rate of zero
  run_loopback(1, [](Communicator& alone) {
    Replaying run(alone);
    std::vector<std::vector<float>> weights;
    for (int step = 0; step < 6; ++step) {
      run.executor().run(step);
      weights.push_back(run.weights());
    }
    for (std::size_t step = 1; step < 4; ++step)
      EXPECT_NE(weights[step], weights[step - 1]) << step;
    EXPECT_EQ(weights[4], weights[3]);
    EXPECT_EQ(weights[5], weights[3]);
  });
}

TEST(Replay, TakesUpWhatIsWrittenInBetween) {
  run_loopback(1, [](Communicator& alone) {
    Replaying run(alone);
    for (int step = 0; step < 4; ++step) run.executor().run(step);
    const std::vector<float> ones(run.weights().size(), 1.0F);
    run.executor().upload(run.program().parameters.front().value, ones.data());
    run.executor().run(10);  // step 10 has a rate of zero
    EXPECT_EQ(run.weights(), ones);
  });
}

TEST(Replay, IsNotOfIterationsThatAreLookedInto) {
  run_loopback(1, [](Communicator& alone) {
    Replaying run(alone);
    std::size_t seen = 0;
    for (int step = 0; step < 3; ++step) run.executor().run(step, [&](std::size_t) { ++seen; });
    EXPECT_EQ(seen, 3 * run.program().ops.size());
    EXPECT_EQ(run.device().captures_made(), 0);
    run.executor().run(3);
    EXPECT_EQ(run.device().replays(), 1);
  });
}

/// A source that records the steps that it is asked for.
class AskedData final : public DataSource {
 public:
  explicit AskedData(bool fixed) : fixed_(fixed) {}
  std::span<const std::byte> load(const LoadOp& load, std::int64_t step) override {
    if (load.what == LoadOp::What::Samples) asked_.push_back(step);
    return source_.load(load, step);
  }
  bool fixed() const override { return fixed_; }
  const std::vector<std::int64_t>& asked() const { return asked_; }

 private:
  bool fixed_;
  SyntheticData source_{3};
  std::vector<std::int64_t> asked_;
};

TEST(Replay, AsksOnceForDataThatAreFixed) {
  const Network network = changing_network();
  const Program program = lower(network, LayerDecompositions(network.layers.size()), {}, 0);
  for (const bool fixed : {false, true})
    run_loopback(1, [&](Communicator& alone) {
      FakeDevice device;
      AskedData data(fixed);
      Executor executor(network, program, device, alone, data, {});
      executor.replay_ops();
      initialize_parameters(network, program, 3, executor);
      for (int step = 0; step < 4; ++step) executor.run(step);
      EXPECT_EQ(data.asked(), fixed ? (std::vector<std::int64_t>{0, 1})
                                    : (std::vector<std::int64_t>{0, 1, 2, 3}));
    });
}

TEST(Replay, HasNoTimesOfOps) {
  run_loopback(1, [](Communicator& alone) {
    Replaying run(alone);
    const Timing timing = train(run.executor(), alone, {.warmup = 2, .steps = 3});
    EXPECT_THAT(run.executor().spans(), IsEmpty());
    EXPECT_THAT(timing.op_medians, IsEmpty());
    EXPECT_EQ(timing.steps.size(), 3U);
    EXPECT_EQ(timing.losses.size(), 5U);
    EXPECT_EQ(run.device().replays(), 4);
  });
}

TEST(Replay, LeavesTheTimesOfOpsToIterationsBehindIt) {
  run_loopback(1, [](Communicator& alone) {
    Replaying run(alone);
    Timing timing = train(run.executor(), alone, {.warmup = 2, .steps = 3});
    const int replays = run.device().replays();
    time_ops(run.executor(), alone, 5, 2, timing);
    EXPECT_EQ(run.device().replays(), replays) << "each step was launched";
    EXPECT_EQ(timing.launched, 2);
    ASSERT_EQ(timing.op_medians.size(), 1U);
    EXPECT_EQ(timing.op_medians[0].size(), run.executor().spans().size());
    EXPECT_FALSE(run.executor().spans().empty());
    EXPECT_EQ(timing.steps.size(), 3U) << "they are not among the timed iterations";
    EXPECT_EQ(timing.losses.size(), 5U);
  });
}

TEST(Replay, TrainsAlikeOnceItHasStopped) {
  const Network network = changing_network();
  const Program program = lower(network, LayerDecompositions(network.layers.size()), {}, 0);
  std::array<std::vector<double>, 2> losses;
  for (const bool stops : {false, true})
    run_loopback(1, [&](Communicator& alone) {
      FakeDevice device;
      MovingData data;
      Executor executor(network, program, device, alone, data, settings());
      executor.replay_ops();
      initialize_parameters(network, program, 3, executor);
      for (int step = 0; step < 5; ++step) {
        if (stops && step == 3) executor.launch_ops();
        executor.run(step);
        losses[stops].push_back(executor.loss());
      }
    });
  EXPECT_EQ(losses[0], losses[1]);
}

TEST(Replay, IsOfTwoStepsAtLeast) {
  run_loopback(1, [](Communicator& alone) {
    const Network network = changing_network();
    Program program = lower(network, LayerDecompositions(network.layers.size()), {}, 0);
    program.ops.resize(1);
    FakeDevice device;
    SyntheticData data(3);
    Executor executor(network, program, device, alone, data, {});
    executor.replay_ops();
    for (int step = 0; step < 3; ++step) executor.run(step);
    EXPECT_EQ(device.captures_made(), 0);
    EXPECT_EQ(executor.replay_count().segments, 0U);
    EXPECT_EQ(executor.replay_count().all_ops, 1U);
    EXPECT_EQ(executor.spans().size(), 1U) << "as if nothing had been asked for";
  });
}

TEST(Replay, LoadsNothingWhereARankHasNoData) {
  run_loopback(1, [](Communicator& alone) {
    Program program;
    Buffer& empty = program.buffers.emplace_back();
    empty.region = whole(Shape{{0, 1, 1, 1, 1}});
    empty.persistent = true;
    const Op load{.reads = {},
                  .writes = {0},
                  .body = LoadOp{LoadOp::What::Samples, empty.region, empty.region.shape(), 0}};
    program.ops = {load, load};
    plan_buffers(program);
    const Network network;
    FakeDevice device;
    SyntheticData data(1);
    Executor executor(network, program, device, alone, data, {});
    executor.replay_ops();
    for (int step = 0; step < 3; ++step) executor.run(step);
    EXPECT_EQ(device.replays(), 2);
  });
}

/// Claims that its calls only enqueue, but waits in them.
class Pretending final : public CommunicatorDecorator {
 public:
  using CommunicatorDecorator::CommunicatorDecorator;
  bool captured() const override { return true; }
};

TEST(Replay, SaysWhatCannotBeCaptured) {
  const Network network = changing_network();
  const LayerDecompositions decompositions =
      uniform_plan(network, Decomposition::parse("N2")).layers;
  run_loopback(2, [&](Communicator& loopback) {
    FakeDevice device;
    StagedCommunicator staged(loopback, device);
    Pretending communicator(staged);
    const Program program = lower(network, decompositions, {}, loopback.rank());
    MovingData data;
    Executor executor(network, program, device, communicator, data, {});
    executor.replay_ops();
    initialize_parameters(network, program, 3, executor);
    executor.run(0);
    const double loss = executor.loss();
    std::optional<std::string> message;
    try {
      executor.run(1);
    } catch (const EnvironmentError& error) {
      message = error.what();
    }
    ASSERT_TRUE(message);
    EXPECT_THAT(*message, HasSubstr("cannot be captured for replay: fake: a capture waits for "
                                    "a stream; --cuda-graph off launches each op on its own"));
    EXPECT_EQ(executor.loss(), loss) << "the device still works";
  });
}

}  // namespace
}  // namespace stratplan::test
