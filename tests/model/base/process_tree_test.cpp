#include "model/base/system/process_tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

namespace stratplan {
namespace {

/// A child process that has reported that it is ready. The destructor ends it.
class Child {
 public:
  template <class Body>
  explicit Child(Body&& body) {
    std::array<int, 2> ready{};
    EXPECT_EQ(pipe(ready.data()), 0);
    process_ = fork();
    if (process_ == 0) {
      body();
      [[maybe_unused]] const auto written = write(ready[1], "", 1);
      for (;;) pause();
    }
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    for (const int descriptor : ready) close(descriptor);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  int process() const { return process_; }

 private:
  int process_;
};

TEST(StateOfProcess, OfThisOne) {
  const ProcessState state = state_of_process(getpid());
  EXPECT_EQ(state.process, getpid());
  EXPECT_EQ(state.parent, getppid());
  EXPECT_FALSE(state.ended() || state.stopped());
}

TEST(StateOfProcess, OfNone) { EXPECT_TRUE(state_of_process(1 << 30).ended()); }

TEST(StateOfProcess, ANameMayHoldAnything) {
  const Child child([] { prctl(PR_SET_NAME, "a) T 1\n(b"); });
  const ProcessState state = state_of_process(child.process());
  EXPECT_EQ(state.name, "a) T 1\n(b");
  EXPECT_EQ(state.parent, getpid());
  EXPECT_FALSE(state.stopped());
}

TEST(StateOfProcess, StoppedAndEnded) {
  const Child child([] {});
  kill(child.process(), SIGSTOP);
  waitpid(child.process(), nullptr, WUNTRACED);
  EXPECT_TRUE(state_of_process(child.process()).stopped());
  kill(child.process(), SIGKILL);
  siginfo_t information{};
  waitid(P_PID, static_cast<id_t>(child.process()), &information, WEXITED | WNOWAIT);
  EXPECT_TRUE(state_of_process(child.process()).ended());
}

TEST(DescendantsOf, ParentsStandBeforeTheirChildren) {
  const Child child([] {
    if (fork() != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  });
  const auto found = descendants_of(getpid());
  const auto parent = std::ranges::find(found, child.process(), &ProcessState::process);
  ASSERT_NE(parent, found.end());
  EXPECT_EQ(
      std::count_if(parent, found.end(),
                    [&](const ProcessState& state) { return state.parent == child.process(); }),
      1);
  EXPECT_EQ(std::ranges::find(found, getpid(), &ProcessState::process), found.end());
}

}  // namespace
}  // namespace stratplan
