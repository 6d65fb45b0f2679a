#include "search/min_plus.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "search/numbers.hpp"

namespace stratplan {
namespace {

std::vector<double> numbers(std::size_t count) {
  return *rc::gen::container<std::vector<double>>(
      count, rc::gen::map(rc::gen::inRange(0, 1000), [](int n) { return n / 8.0; }));
}

// Sizes around those of a tile, and beyond.
RC_GTEST_PROP(MinPlus, EqualsTheThreeLoops, ()) {
  const auto height = *rc::gen::inRange<std::size_t>(1, 19),
             size = *rc::gen::inRange<std::size_t>(1, 35),
             count = *rc::gen::inRange<std::size_t>(1, 9);
  const std::vector<double> constants = numbers(count * height), table = numbers(count * size);
  std::vector<const double*> rows;
  for (std::size_t k = 0; k < count; ++k) rows.push_back(&table[k * size]);

  std::vector<double> out(height * size, -1);
  min_plus(constants, rows, size, out);

  for (std::size_t r = 0; r < height; ++r)
    for (std::size_t i = 0; i < size; ++i) {
      double least = infinity;
      for (std::size_t k = 0; k < count; ++k)
        least = std::min(least, constants[k * height + r] + table[k * size + i]);
      RC_ASSERT(out[r * size + i] == least);
    }
}

TEST(MinPlus, EqualsTheThreeLoopsOnAllCores) {
  const std::size_t height = 203, size = 201, count = 199;
  std::vector<double> constants, table;
  for (std::size_t i = 0; i < count * height; ++i)
    constants.push_back(static_cast<double>(i * 7919 % 1009));
  for (std::size_t i = 0; i < count * size; ++i)
    table.push_back(static_cast<double>(i * 104729 % 1013));
  std::vector<const double*> rows;
  for (std::size_t k = 0; k < count; ++k) rows.push_back(&table[k * size]);

  std::vector<double> out(height * size);
  min_plus(constants, rows, size, out);

  std::vector<double> expected(height * size, infinity);
  for (std::size_t k = 0; k < count; ++k)
    for (std::size_t r = 0; r < height; ++r)
      for (std::size_t i = 0; i < size; ++i)
        expected[r * size + i] =
            std::min(expected[r * size + i], constants[k * height + r] + table[k * size + i]);
  EXPECT_EQ(out, expected);
}

}  // namespace
}  // namespace stratplan
