#pragma once
// What tests have in common that only a device can pass.
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
