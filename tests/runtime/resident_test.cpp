#include "runtime/device/resident.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "runtime/fake_device.hpp"

namespace stratplan {
namespace {

constexpr std::int64_t mebibyte = 1 << 20;

/// Allocates and touches so much memory, and frees it.
void touch(std::int64_t bytes) {
  void* const memory = std::malloc(static_cast<std::size_t>(bytes));
  std::memset(memory, 1, static_cast<std::size_t>(bytes));
  EXPECT_EQ(static_cast<const char*>(memory)[bytes - 1], 1);
  std::free(memory);
}

TEST(ResidentGrowth, IsThePeakEvenIfThatIsPast) {
  const auto backend = make_reference_backend();
  const ResidentGrowth growth(*backend);
  touch(400 * mebibyte);
  if (growth.peak().value == 0) GTEST_SKIP() << "no /proc/self/status";
  EXPECT_GE(growth.peak().value, 390 * mebibyte);
  EXPECT_LT(growth.peak().value, 500 * mebibyte);  // sanitizers add an eighth
}

TEST(ResidentGrowth, OfADeviceIsItsOwnMemorys) {
  test::FakeDevice device;
  device.allocate({1000});
  const ResidentGrowth growth(device);
  EXPECT_EQ(growth.peak(), Bytes{0});
  device.allocate({6400});
  EXPECT_EQ(growth.peak(), Bytes{6400});
}

}  // namespace
}  // namespace stratplan
