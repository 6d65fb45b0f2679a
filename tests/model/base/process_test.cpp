#include "model/base/system/process.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/base/error.hpp"

namespace stratplan {
namespace {

using ::testing::HasSubstr;

int exit_code_of(const ProcessStart& start) {
  return WEXITSTATUS(wait_for_end(start_process(start)));
}

ProcessStart shell(const std::string& script) {
  return {.program = "/bin/sh", .command = {"sh", "-c", script}};
}

TEST(Process, EndsWithItsStatus) {
  EXPECT_EQ(exit_code_of(shell("exit 7")), 7);
  EXPECT_EQ(WTERMSIG(wait_for_end(start_process(shell("kill -9 $$")))), SIGKILL);
}

TEST(Process, HasTheGivenEnvironmentAlone) {
  ProcessStart start = shell("test \"$A\" = 1 && test -z \"$HOME\"");
  start.environment = {{"A=1"}};
  EXPECT_EQ(exit_code_of(start), 0);
  start.environment = {};
  EXPECT_EQ(exit_code_of(start), 1);
}

TEST(Process, WritesWhereItIsTold) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  ProcessStart start = shell("echo said");
  start.standard_output = ends[1];
  EXPECT_EQ(exit_code_of(start), 0);
  close(ends[1]);
  char text[16]{};
  EXPECT_EQ(read(ends[0], text, sizeof text), 5);
  EXPECT_STREQ(text, "said\n");
  close(ends[0]);
}

TEST(Process, KeepsTheDescriptorsThatItIsToHave) {
  const int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  ProcessStart start = shell("test -e /proc/self/fd/" + std::to_string(descriptor));
  EXPECT_EQ(exit_code_of(start), 1);
  start.kept_open = {descriptor};
  EXPECT_EQ(exit_code_of(start), 0);
  close(descriptor);
}

TEST(Process, WhatCannotBeExecutedSaysWhy) {
  try {
    start_process({.program = "/no/such/program", .command = {"program"}});
    FAIL() << "it started";
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot start /no/such/program: No such file"));
  }
}

TEST(Process, IsLookedForWithoutWaiting) {
  const int child = start_process(shell("sleep 60"));
  EXPECT_FALSE(look_for_end(child));
  kill(child, SIGTERM);
  EXPECT_EQ(WTERMSIG(wait_for_end(child)), SIGTERM);
}

TEST(Process, InterruptsItUnlessTheyAreBlocked) {
  ProcessStart start = shell("kill -INT $$; exit 3");
  EXPECT_EQ(WTERMSIG(wait_for_end(start_process(start))), SIGINT);
  start.blocks_interrupts = true;
  EXPECT_EQ(WEXITSTATUS(wait_for_end(start_process(start))), 3);
}

TEST(StopSignals, AreNotedInsteadOfObeyed) {
  const StopSignals signals(true);
  EXPECT_EQ(StopSignals::seen(), 0);
  raise(SIGINT);
  raise(SIGTERM);
  raise(SIGUSR1);
  EXPECT_EQ(StopSignals::seen(), SIGUSR1);
  EXPECT_EQ(StopSignals::count(), 3);
  EXPECT_EQ(StopSignals::interrupts(), 1);
  EXPECT_FALSE(StopSignals::from_terminal());
}

TEST(FindOnPath, FindsProgramsOnly) {
  EXPECT_TRUE(find_on_path("sh"));
  EXPECT_FALSE(find_on_path("no-such-program"));
}

}  // namespace
}  // namespace stratplan
