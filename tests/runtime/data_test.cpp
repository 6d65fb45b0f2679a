// Random data: any part of it is the same for every rank that asks.
#include "runtime/io/data.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "runtime/device/tensor.hpp"

namespace stratplan::data_test {
namespace {

template <class T>
std::vector<T> values(std::span<const std::byte> contents) {
  std::vector<T> result(contents.size() / sizeof(T));
  std::memcpy(result.data(), contents.data(), contents.size());
  return result;
}

constexpr Shape shape{{4, 3, 1, 10, 12}};

/// A region that touches no border on three axes.
Region part() {
  Region region = whole(shape);
  region[Axis::N] = {1, 3};
  region[Axis::C] = {1, 3};
  region[Axis::H] = {2, 7};
  region[Axis::W] = {5, 12};
  return region;
}

TEST(SyntheticData, APartIsThatPartOfTheWhole) {
  SyntheticData data(1), other(1);
  for (const auto what : {LoadOp::What::Samples, LoadOp::What::Targets}) {
    const auto all = values<float>(data.load({what, whole(shape), shape, 0}, 0));
    const auto some = values<float>(other.load({what, part(), shape, 0}, 5));
    ASSERT_EQ(std::ssize(some), part().elements());
    for_each_row(part(), shape, [&](std::int64_t local, std::int64_t global, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i)
        EXPECT_EQ(some[static_cast<std::size_t>(local + i)],
                  all[static_cast<std::size_t>(global + i)])
            << global + i;
    });
  }
}

TEST(SyntheticData, OneLabelPerSampleAndPosition) {
  SyntheticData data(1);
  const auto all =
      values<std::int32_t>(data.load({LoadOp::What::Labels, whole(shape), shape, 5}, 0));
  ASSERT_EQ(all.size(), 4 * 10 * 12);
  std::array<int, 5> seen{};
  for (const std::int32_t label : all) {
    ASSERT_TRUE(0 <= label && label < 5) << label;
    ++seen[static_cast<std::size_t>(label)];
  }
  for (const int count : seen)
    EXPECT_GT(count, 48);  // the expectation is 96, the standard deviation 9
  const auto some = values<std::int32_t>(data.load({LoadOp::What::Labels, part(), shape, 5}, 0));
  EXPECT_EQ(some.size(), 2 * 5 * 7);
  EXPECT_EQ(some[0], all[(1 * 10 + 2) * 12 + 5]);
}

TEST(SyntheticData, SamplesAreNormalAndDependOnTheSeed) {
  const Shape large{{10, 10, 1, 10, 10}};
  const LoadOp load{LoadOp::What::Samples, whole(large), large, 0};
  SyntheticData data(1), other(2);
  const auto samples = values<float>(data.load(load, 0));
  double sum = 0, squares = 0;
  for (const float sample : samples) {
    sum += sample;
    squares += static_cast<double>(sample) * sample;
  }
  EXPECT_NEAR(sum / 10000, 0, 0.05);  // the standard deviation is 0.01
  EXPECT_NEAR(squares / 10000, 1, 0.07);
  EXPECT_NE(values<float>(other.load(load, 0)), samples);
}

TEST(Tensor, LogicalOrderPutsChannelsBeforePositions) {
  // Two filters of two channels and three positions, numbered in memory order.
  const std::vector<float> memory{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  EXPECT_EQ(to_logical_order(memory, Shape{{2, 2, 1, 1, 3}}),
            (std::vector<float>{0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11}));
}

}  // namespace
}  // namespace stratplan::data_test
