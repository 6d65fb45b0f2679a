#include "model/base/sorted_range.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace stratplan {
namespace {

TEST(Gallop, FindsTheSamePlaceFromEveryEarlierOne) {
  for (int size = 0; size <= 40; ++size) {
    std::vector<int> numbers;
    for (int i = 0; i < size; ++i) numbers.push_back(i);
    for (int sought = 0; sought <= size; ++sought) {
      const auto before = [sought](int number) { return number < sought; };
      for (int from = 0; from <= sought; ++from)
        EXPECT_EQ(gallop(numbers.begin() + from, numbers.end(), before), numbers.begin() + sought)
            << sought << " of " << size << " from " << from;
    }
  }
}

TEST(SortedSet, AscendsWithoutRepetitions) {
  std::vector<int> numbers{3, 1, 3, 2, 1};
  make_sorted_set(numbers);
  EXPECT_EQ(numbers, (std::vector<int>{1, 2, 3}));
  make_sorted_set(numbers);
  EXPECT_EQ(numbers, (std::vector<int>{1, 2, 3}));
}

}  // namespace
}  // namespace stratplan
