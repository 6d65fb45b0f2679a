// A training started by a request, without the command line.
#include "session/training.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "model/base/error.hpp"
#include "runtime/comm/loopback.hpp"
#include "support/kept_log.hpp"
#include "support/networks.hpp"

namespace stratplan {
namespace {

using ::testing::HasSubstr;

/// Returns a convolution, a ReLU and a classifier, split by `grid`.
PlanAndNetwork planned_on(const char* grid) {
  test::NetworkBuilder net(4, 3);
  const Network network = net.finish_with_loss(net.fully_connected(
      net.global_average_pool(net.relu(net.convolution(net.input({4, 1, 8, 8}), 8, Window{}))), 5));
  Plan plan = uniform_plan(network, Decomposition::parse(grid));
  plan.name = grid;
  return {plan, network};
}

TrainingRequest short_training() {
  TrainingRequest request;
  request.device.backend = "reference";
  request.warmup = 0;
  request.steps = 3;
  request.quiet = true;
  return request;
}

/// Rank 0's result, and the notes in its log.
struct Trained {
  TrainingEnd end;
  test::KeptLog log;
};

Trained train(const PlanAndNetwork& planned, const TrainingRequest& request) {
  Trained trained;
  run_loopback(planned.plan.ranks, [&](Communicator& communicator) {
    test::KeptLog log;
    TrainingEnd end = train_plan(planned, request, communicator, {}, log);
    if (communicator.rank() == 0) trained = {std::move(end), std::move(log)};
  });
  return trained;
}

TEST(TrainPlan, VerifiesWhatItTrained) {
  TrainingRequest request = short_training();
  request.verify = true;
  for (const char* grid : {"N1", "N2", "H2"}) {
    const Trained trained = train(planned_on(grid), request);
    const Timings& timings = trained.end.timings;
    ASSERT_TRUE(timings.verification) << grid;
    EXPECT_TRUE(timings.verification->passed) << grid;
    EXPECT_EQ(timings.timing.losses.size(), 3U) << grid;
    EXPECT_EQ(timings.plan_name, grid);
    EXPECT_FALSE(trained.end.stopped);
  }
}

TEST(TrainPlan, SaysItsPhaseToTheLogOfRankZeroAlone) {
  TrainingRequest request = short_training();
  request.quiet = false;
  run_loopback(2, [&](Communicator& communicator) {
    test::KeptLog log;
    train_plan(planned_on("N2"), request, communicator, {}, log);
    EXPECT_EQ(log.phases.size(), communicator.rank() == 0 ? 1U : 0U);
  });
}

TEST(TrainPlan, GoesOnFromItsCheckpoints) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("stratplan-session-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  TrainingRequest request = short_training();
  const std::vector<double> whole = train(planned_on("N2"), request).end.timings.timing.losses;
  request.checkpoints = folder.string();
  request.steps = 2;
  train(planned_on("N2"), request);
  EXPECT_THROW(train(planned_on("N2"), request), UsageError)
      << "the folder already holds checkpoints";
  request.resume = true;
  request.steps = 3;
  const Trained resumed = train(planned_on("H2"), request);
  std::filesystem::remove_all(folder);
  EXPECT_THAT(resumed.log.text(), HasSubstr("resuming after step 2"));
  ASSERT_EQ(resumed.end.timings.timing.losses.size(), 1U);
  EXPECT_NEAR(resumed.end.timings.timing.losses[0], whole[2], 1e-5);
}

}  // namespace
}  // namespace stratplan
