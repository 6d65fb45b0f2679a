#include "profile/measure/sampler.hpp"

#include <gtest/gtest.h>

#include "runtime/comm/loopback.hpp"

namespace stratplan {
namespace {

/// A clock that advances only when told to.
struct HandClock {
  Seconds time{};
  Seconds now() const { return time; }
};

TEST(Sampler, TimesTheRunAlone) {
  run_loopback(1, [](Communicator& communicator) {
    const Team team(communicator);
    HandClock clock;
    int prepared = 0;
    const auto prepare = [&](int run) {
      EXPECT_EQ(run, prepared++);
      clock.time += {100};
    };
    const Measurement measurement =
        sample(clock, team, {}, true, prepare, [&](int) { clock.time += {0.001}; });
    EXPECT_NEAR(measurement.median.value, 0.001, 1e-9);
    EXPECT_EQ(measurement.samples, 3) << "preparing used up the time";
    EXPECT_EQ(prepared, 4) << "a rehearsal and three samples";
  });
}

TEST(Sampler, WhatOutlastsThePatienceIsNotRehearsed) {
  struct Case {
    double seconds;  ///< of one run
    int runs, samples;
  };
  for (const Case& expected : {Case{0.14, 4, 3}, Case{0.15, 3, 3}, Case{2, 3, 3}}) {
    run_loopback(2, [&](Communicator& communicator) {
      const Team team(communicator);
      HandClock clock;
      int made = 0;
      const auto run = [&](int) {
        ++made;
        clock.time += {communicator.rank() == 1 ? expected.seconds : 0.01};
      };
      const auto taken = take_samples(
          clock, team, {.least_samples = 3, .patience = {0.15}}, true, [](int) {}, run);
      EXPECT_EQ(made, expected.runs) << expected.seconds;
      EXPECT_EQ(static_cast<int>(taken[1].size()), expected.samples) << expected.seconds;
    });
  }
}

TEST(Sampler, AveragesTheRanksThatTakePart) {
  run_loopback(3, [](Communicator& communicator) {
    const Team team(communicator);
    HandClock clock;
    const double mine = communicator.rank() + 1;  // 1 s and 2 s; a rank that only watches takes 3 s
    const Measurement measurement = sample(
        clock, team, {}, communicator.rank() < 2, [](int) {}, [&](int) { clock.time += {mine}; });
    EXPECT_DOUBLE_EQ(measurement.median.value, 1.5);
  });
}

TEST(Team, GathersByRank) {
  run_loopback(3, [](Communicator& communicator) {
    const Team team(communicator);
    const double rank = communicator.rank();
    EXPECT_EQ(team.gather({rank, 10 + rank}),
              (std::vector<std::vector<double>>{{0, 10}, {1, 11}, {2, 12}}));
    EXPECT_EQ(team.greatest(-rank), 0);
    EXPECT_EQ(team.sum(rank), 3);
  });
}

}  // namespace
}  // namespace stratplan
