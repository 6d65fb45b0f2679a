#pragma once
// Base of tests that only run on a device.
#include <gtest/gtest.h>

#include "runtime/device/backend.hpp"

namespace stratplan::test {

template <class Test = testing::Test>
class NeedsDevice : public Test {
 protected:
  void SetUp() override {
    if (cuda_devices().empty()) GTEST_SKIP() << "no CUDA device here";
  }
};

}  // namespace stratplan::test
