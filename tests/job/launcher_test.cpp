#include "job/launcher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "model/base/system/cpu_time.hpp"
#include "model/base/system/process.hpp"
#include "model/base/system/process_tree.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan {
namespace {

bool has(const std::vector<std::string>& command, const std::string& word) {
  return std::find(command.begin(), command.end(), word) != command.end();
}

TEST(LaunchCommand, OneRankNeedsNoLauncher) {
  const auto command = launch_command({1, 1, {"run", "a plan.json"}, {}});
  EXPECT_EQ(command, (std::vector<std::string>{own_executable(), "run", "a plan.json"}));
}

TEST(LaunchCommand, BindsWhereCoresSuffice) {
  if (!uses_mpirun(2)) GTEST_SKIP() << "the program starts no mpirun here";
  const int cores = usable_cores();
  const auto many = launch_command({cores + 1, 1, {"run"}, {}});
  EXPECT_TRUE(has(many, "--oversubscribe"));
  EXPECT_TRUE(has(many, std::to_string(cores + 1)));
  EXPECT_EQ(many.back(), "run");
  if (cores > 1) {
    const auto few = launch_command({cores, 1, {"run"}, {}});
    EXPECT_FALSE(has(few, "--oversubscribe"));
    EXPECT_TRUE(has(few, "core"));
  }
}

TEST(LaunchCommand, WithoutMpiRanksAreProcesses) {
  const std::vector<std::string> expected{
      own_executable(), "ranks", "-n", "2", "--threads", "3", "--", "run", "plan.json"};
  Launch launch{2, 3, {"run", "plan.json"}, {}};
  launch.mpi = false;
  EXPECT_EQ(launch_command(launch), expected) << "of this program";
  launch.mpi = true;
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);
  EXPECT_EQ(launch_command(launch), expected) << "of this machine";
  ::setenv("PATH", path.c_str(), 1);
}

TEST(Launch, RunsThisProgramAndWaits) {
  const LaunchResult result = launch({1, 1, {"--gtest_list_tests"}, "/dev/null"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_GT(result.wall.value, 0);
  EXPECT_GE(result.foreign_load, 0);
}

/// Runs one of the disabled tests of this file, which are no tests of their own: each is a job of
/// the test beside it.
LaunchResult launch_test(const std::string& name, const std::string& output,
                         const std::function<bool()>& hangs = {}) {
  return launch({1,
                 1,
                 {"--gtest_filter=Launch.DISABLED_" + name, "--gtest_also_run_disabled_tests"},
                 output,
                 false,
                 hangs});
}

// A failing test ends its program with 1, which is not an exit code of stratplan.
TEST(Launch, MapsUndocumentedCodes) {
  EXPECT_EQ(launch_test("FailsOnPurpose", "/dev/null").exit_code, 6);
}
// Not a test of its own: MapsUndocumentedCodes runs it.
TEST(Launch, DISABLED_FailsOnPurpose) { FAIL(); }

TEST(Launch, EndsAJobThatIsStopped) {
  const auto stopped = [] {
    const auto processes = descendants_of(getpid());
    return std::ranges::any_of(processes, &ProcessState::stopped);
  };
  EXPECT_EQ(launch_test("StopsItself", "/dev/null", stopped).exit_code, 6);
}
// Not a test of its own: EndsAJobThatIsStopped runs it.
TEST(Launch, DISABLED_StopsItself) { std::raise(SIGSTOP); }

TEST(Launch, EndsWhatTheJobLeavesBehind) {
  const test::TemporaryFolder folder;
  launch_test("LeavesAChild", folder / "output", [] { return false; });
  std::ifstream output(folder / "output");
  int child = 0;
  for (std::string word; child == 0 && output >> word;)
    if (word == "child:") output >> child;
  ASSERT_GT(child, 0);
  EXPECT_TRUE(state_of_process(child).ended());
}
// Not a test of its own: EndsWhatTheJobLeavesBehind runs it.
TEST(Launch, DISABLED_LeavesAChild) {
  const pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  std::printf("child: %d\n", child);
  std::fflush(stdout);
}

}  // namespace
}  // namespace stratplan
