#include "model/base/system/cpu_time.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stratplan {
namespace {

void work_for(double seconds) {
  const CpuReading before = read_cpu();
  volatile double work = 0;
  while (read_cpu().own - before.own < Seconds{seconds}) work = work + 1;
}

TEST(CpuTime, ForeignShareIsWhatNeitherIdledNorWasOurs) {
  const CpuReading before{{100}, {10}, {1000}}, after{{103}, {11}, {1002}};
  // Two cores for two seconds: 3 s busy, of which all ranks together used 2 s.
  EXPECT_DOUBLE_EQ(foreign_share(before, after, {2}, 2), 0.25);
  EXPECT_DOUBLE_EQ(foreign_share(before, after, {5}, 2), 0);
  EXPECT_DOUBLE_EQ(foreign_share(before, before, {0}, 2), 0);
}

TEST(CpuTime, OwnWorkIsNotForeign) {
  const CpuReading before = read_cpu();
  work_for(0.05);
  const CpuReading after = read_cpu();
  EXPECT_GE((after.own - before.own).value, 0.05);
  EXPECT_GE((after.busy - before.busy).value + 0.02, 0.05 * (after.busy.value > 0));
}

TEST(CpuTime, WorkOfChildrenCountsOnceTheyAreWaitedFor) {
  const CpuReading before = read_cpu();
  const pid_t child = fork();
  if (child == 0) {
    work_for(0.05);
    _exit(0);
  }
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_GE((read_cpu().children - before.children).value, 0.05);
}

TEST(CpuTime, AProcessUsesNoMoreCoresThanThereAre) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), online_cores());
}

}  // namespace
}  // namespace stratplan
