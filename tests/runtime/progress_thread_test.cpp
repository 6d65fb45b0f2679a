#include "runtime/comm/progress_thread.hpp"

#include <gtest/gtest.h>

#include <atomic>

namespace stratplan {
namespace {

void wait_until(const std::atomic<int>& count, int least) {
  while (count < least) std::this_thread::yield();
}

TEST(ProgressThread, CallsUntilNothingIsUnderWay) {
  std::atomic<int> calls = 0;
  std::atomic<int> left = 0;
  ProgressThread thread([&] {
    ++calls;
    return --left > 0;
  });
  for (const int rounds : {1, 5}) {
    const int before = calls;
    {
      const auto held = thread.lock();
      left = rounds;
      thread.wake();
    }
    wait_until(calls, before + rounds);
    const auto held = thread.lock();
    EXPECT_EQ(calls, before + rounds);
    EXPECT_EQ(left, 0);
  }
}

TEST(ProgressThread, NeverCallsWhileTheLockIsHeld) {
  std::atomic<int> calls = 0;
  ProgressThread thread([&] {
    ++calls;
    return true;
  });
  for (int round = 0; round < 20; ++round) {
    wait_until(calls, round);  // the thread is on its way to the next call
    const auto held = thread.lock();
    thread.wake();
    const int before = calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(calls, before);
  }
}

TEST(ProgressThread, EndsAtOnceWithOrWithoutMessages) {
  std::atomic<int> calls = 0;
  {
    ProgressThread idle([] { return true; });
  }
  {
    ProgressThread busy([&] {
      ++calls;
      return true;
    });
    {
      const auto held = busy.lock();
      busy.wake();
    }
    wait_until(calls, 1);
  }
  const int after = calls;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(calls, after);
}

}  // namespace
}  // namespace stratplan
