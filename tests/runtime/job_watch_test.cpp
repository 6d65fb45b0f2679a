// The conclusions that a launcher draws from its ranks' records. The ranks are processes of this
// test.
#include "runtime/watch/job_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <thread>

#include "model/base/text.hpp"
#include "support/forked_rank.hpp"
#include "support/started_rank.hpp"

namespace stratplan {
namespace {

using test::ForkedRank;
using test::StartedRank;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr JobWatch::Seconds patience{0.6};

std::string op_text(int rank, std::size_t step) { return fmt::format("step {} of {}", step, rank); }

/// The address that a watch tells its ranks to write records to.
std::string records() { return std::getenv(flight_records_variable); }

void stand_still(FlightRecorder) {
  for (;;) pause();
}

/// A watch whose time passes only when the test says so. A busy machine does not disturb it.
class TimedWatch {
 public:
  explicit TimedWatch(int ranks, JobWatch::Seconds still = patience,
                      JobWatch::Seconds to_join = JobWatch::least_to_join)
      : watch_(ranks, still, op_text, to_join, [this] { return now_; }),
        records_(FlightRecords::open(records())) {}

  const FlightRecord& operator[](int rank) const { return records_[rank]; }
  const std::string& hang_text() const { return watch_.hang_text(); }
  /// Lets the watch look once more, after the usual time between two looks.
  bool look() {
    now_ += std::chrono::milliseconds(250);
    return watch_.hangs();
  }
  /// Waits without a limit; ctest has one.
  void wait_for_hang() {
    while (!look()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  /// Returns whether the watch reports a hang within ten times the patience.
  bool hangs() {
    for (int i = 0; i < 24; ++i)
      if (look()) return true;
    return false;
  }

 private:
  std::chrono::steady_clock::time_point now_;
  JobWatch watch_;
  FlightRecords records_;
};

void until(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

bool stopped(int process) { return state_of_process(process).stopped(); }

TEST(PlaceOf, SpeaksOfStepsFromOne) {
  const auto text = [](std::size_t step) { return op_text(0, step); };
  const std::vector<std::pair<Operation, std::string>> cases{
      {{-1, Operation::joining}, "while joining the other ranks"},
      {{}, "before the first step"},
      {{16, 5}, "in step 17 during step 5 of 0"},
      {{16}, "after step 17"},
      {{16, Operation::checkpoint}, "after step 17 during a checkpoint"},
      {{20, Operation::verification}, "while verifying the first step"}};
  for (const auto& [operation, expected] : cases) EXPECT_EQ(place_of(operation, text), expected);
}

TEST(JobWatch, BlamesWhoIsStoppedAmongThoseThatWait) {
  TimedWatch watch(2);
  const ForkedRank waiting(records(), 0, [](FlightRecorder recorder) {
    recorder.begin({2, 3});
    recorder.waits(true);
    stand_still(recorder);
  });
  const ForkedRank still(records(), 1, [](FlightRecorder recorder) {
    for (const int step : {1, 2, 3}) recorder.begin({2, step});
    recorder.waits(true);
    std::raise(SIGSTOP);
  });
  until([&] { return watch[0].waiting && stopped(still.process()); });
  watch.wait_for_hang();
  EXPECT_THAT(
      watch.hang_text(),
      AllOf(StartsWith("rank 1 on " + host_name() +
                       " hangs in step 3 during step 3 of 1: the job has stood still for 1 s"),
            HasSubstr("is stopped\n  rank 1 before that: before the first step\n"),
            HasSubstr("\n  rank 1 before that: in step 3 during step 2 of 1\n"),
            EndsWith("\n  rank 0 waits in step 3 during step 3 of 0")));
}

TEST(JobWatch, BlamesWhoWaitsForNobody) {
  TimedWatch watch(2);
  const ForkedRank asleep(records(), 0, [](FlightRecorder recorder) {
    recorder.begin({2, 3});
    stand_still(recorder);
  });
  const ForkedRank behind(records(), 1, [](FlightRecorder recorder) {
    recorder.begin({1, 3});
    recorder.waits(true);
    stand_still(recorder);
  });
  until([&] { return watch[0].count == 2 && watch[1].waiting; });
  watch.wait_for_hang();
  EXPECT_THAT(watch.hang_text(), StartsWith("rank 0 on "));
}

TEST(JobWatch, BlamesWhoIsFurthestBehindWhereAllWait) {
  TimedWatch watch(3);
  std::vector<std::unique_ptr<ForkedRank>> ranks;
  for (const int rank : {0, 1, 2})
    ranks.push_back(std::make_unique<ForkedRank>(records(), rank, [rank](FlightRecorder recorder) {
      recorder.begin({2, rank == 1 ? 3 : 4});
      recorder.waits(true);
      stand_still(recorder);
    }));
  until([&] { return watch[0].waiting && watch[1].waiting && watch[2].waiting; });
  watch.wait_for_hang();
  EXPECT_THAT(watch.hang_text(), StartsWith("rank 1 on "));
}

TEST(JobWatch, ALongOperationIsNoHang) {
  TimedWatch watch(2);
  const ForkedRank working(records(), 0, [](FlightRecorder recorder) {
    recorder.begin({0, 0});
    for (std::atomic<int> i = 0;; ++i) continue;
  });
  const ForkedRank waiting(records(), 1, [](FlightRecorder recorder) {
    recorder.waits(true);
    stand_still(recorder);
  });
  until([&] { return watch[0].begun() && watch[1].waiting; });
  const auto ticks = [&] { return state_of_process(working.process()).processor_ticks; };
  for (int i = 0; i < 10; ++i) {
    until([&, before = ticks()] { return ticks() != before; });
    EXPECT_FALSE(watch.look()) << watch.hang_text();
  }
}

TEST(JobWatch, StepsAreNoHang) {
  TimedWatch watch(1);
  const ForkedRank stepping(records(), 0, [](FlightRecorder recorder) {
    for (std::int64_t i = 0;; ++i) {
      recorder.begin({i});
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  for (int i = 0; i < 10; ++i) {
    until([&, before = watch[0].count.load()] { return watch[0].count != before; });
    EXPECT_FALSE(watch.look()) << watch.hang_text();
  }
}

TEST(JobWatch, WithoutPatienceItNeverHangs) {
  TimedWatch watch(2, JobWatch::Seconds(0));
  const ForkedRank still(records(), 0, stand_still);
  const StartedRank halted("STRATPLAN_RANK=1", "kill -STOP $$");
  until([&] { return watch[0].begun() && stopped(halted.process()); });
  EXPECT_FALSE(watch.hangs());
}

/// A rank in MPI_Init, which polls.
void join(FlightRecorder recorder) {
  recorder.begin({-1, Operation::joining});
  recorder.waits(true);
  for (std::atomic<int> i = 0;; ++i) continue;
}

TEST(JobWatch, NamesWhoIsStoppedBeforeItBegins) {
  TimedWatch watch(2);
  const ForkedRank joining(records(), 0, join);
  until([&] { return watch[0].waiting.load(); });
  const StartedRank halted("OMPI_COMM_WORLD_RANK=1", "kill -STOP $$");
  watch.wait_for_hang();
  EXPECT_EQ(watch.hang_text(),
            fmt::format("rank 1 has not begun: the job has stood still for 1 s, and process {} is "
                        "stopped\n  rank 0 waits while joining the other ranks",
                        halted.process()));
}

TEST(JobWatch, NamesWhoIsStoppedWhileJoining) {
  TimedWatch watch(2);
  const ForkedRank joining(records(), 0, join);
  until([&] { return watch[0].waiting.load(); });
  const ForkedRank halted(records(), 1, [](FlightRecorder recorder) {
    recorder.begin({-1, Operation::joining});
    recorder.waits(true);
    std::raise(SIGSTOP);
  });
  watch.wait_for_hang();
  EXPECT_THAT(watch.hang_text(),
              AllOf(StartsWith("rank 1 on " + host_name() + " hangs while joining the other ranks"),
                    HasSubstr("is stopped\n")));
}

TEST(JobWatch, NamesTheProgramThatIsStoppedBeforeItStartsRanks) {
  TimedWatch watch(2);
  const StartedRank starter("NO_RANK=1", "kill -STOP $$");
  watch.wait_for_hang();
  EXPECT_EQ(watch.hang_text(),
            fmt::format("2 ranks have not begun (0, 1): the job has stood still for 1 s, and "
                        "process {} (sh) is stopped",
                        starter.process()));
}

/// Two ranks, of which the second may not have begun. Each row has a time to join, which does or
/// does not end the job.
TEST(JobWatch, RanksThatAreNotStoppedGetTheTimeToJoin) {
  constexpr JobWatch::Seconds long_time{100};
  const std::string asleep = "exec sleep 100";
  const struct {
    const char* name;
    std::function<void(FlightRecorder)> first;  ///< rank 0
    std::string second;  ///< shell command of rank 1, which has not begun; "": no such process
    JobWatch::Seconds to_join;
    const char* says;  ///< nullptr: no hang is reported
  } table[] = {
      {"asleep before it begins", join, asleep, patience, "rank 1 has not begun: "},
      {"asleep, but there is time", join, asleep, long_time, nullptr},
      {"not to be seen: elsewhere", join, "", patience, nullptr},
      {"met, but for one asleep", stand_still, asleep, patience, "rank 1 has not begun: "},
      {"the same, but there is time", stand_still, asleep, long_time, nullptr},
  };
  for (const auto& row : table) {
    TimedWatch watch(2, patience, row.to_join);
    const ForkedRank first(records(), 0, row.first);
    until([&] { return watch[0].begun(); });
    std::optional<StartedRank> second;
    if (!row.second.empty()) second.emplace("STRATPLAN_RANK=1", row.second);
    if (row.says) {
      watch.wait_for_hang();
      EXPECT_THAT(watch.hang_text(), StartsWith(row.says)) << row.name;
    } else {
      EXPECT_FALSE(watch.hangs()) << row.name << ": " << watch.hang_text();
    }
  }
}

TEST(JobWatch, ARankAtWorkBeforeItBeginsIsNoHang) {
  TimedWatch watch(2, patience, patience);
  const ForkedRank joining(records(), 0, join);
  const StartedRank working("STRATPLAN_RANK=1", "while :; do :; done");
  until([&] { return watch[0].waiting.load(); });
  const auto ticks = [&] { return state_of_process(working.process()).processor_ticks; };
  for (int i = 0; i < 10; ++i) {
    until([&, before = ticks()] { return ticks() != before; });
    EXPECT_FALSE(watch.look()) << watch.hang_text();
  }
}

TEST(JobWatch, AllThatJoinForTooLongHang) {
  TimedWatch watch(2, patience, patience);
  const ForkedRank first(records(), 0, join), second(records(), 1, join);
  watch.wait_for_hang();
  EXPECT_THAT(watch.hang_text(), HasSubstr("hangs while joining the other ranks"));
}

TEST(JobWatch, TellsTheKilledFromThoseEndedBecauseOfIt) {
  JobWatch watch(4, patience, op_text);
  EXPECT_EQ(watch.killed_text({}, SIGKILL), "a rank was killed by signal 9 (Killed)");
  EXPECT_EQ(watch.killed_text(1, SIGKILL),
            "rank 1 was killed by signal 9 (Killed) before it began");
  for (const auto& [rank, ending] : std::vector<std::pair<int, Ending>>{
           {0, Ending::Told}, {1, Ending::Finished}, {2, Ending::None}, {3, Ending::Told}}) {
    ForkedRank ended(records(), rank, [ending = ending](FlightRecorder recorder) {
      recorder.begin({16, 5});
      if (ending != Ending::None) recorder.ends(ending);
    });
    ended.wait();
  }
  ASSERT_EQ(watch.silent(), 2);
  EXPECT_FALSE(watch.any_failed());
  EXPECT_EQ(watch.killed_text(2, SIGKILL),
            "rank 2 on " + host_name() +
                " was killed by signal 9 (Killed) in step 17 during step 5 of 2");
  EXPECT_EQ(watch.ended_text(2),
            "rank 2 on " + host_name() +
                " ended in step 17 during step 5 of 2, without an error message");
}

}  // namespace
}  // namespace stratplan
