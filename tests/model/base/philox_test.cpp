#include "model/base/philox.hpp"

#include <gtest/gtest.h>

#include <set>

namespace stratplan {
namespace {

TEST(Philox, KnownAnswers) {  // kat_vectors of the Random123 distribution
  struct Row {
    PhiloxBlock counter;
    PhiloxKey key;
    PhiloxBlock expected;
  };
  const Row rows[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Row& row : rows) EXPECT_EQ(philox(row.counter, row.key), row.expected);
}

TEST(Philox, EachPartOfTheKeyMatters) {
  const std::set<PhiloxBlock> distinct{
      RandomStream(1, "conv1", 0).words(0), RandomStream(2, "conv1", 0).words(0),
      RandomStream(1, "conv2", 0).words(0), RandomStream(1, "conv1", 1).words(0),
      RandomStream(1, "conv1", 0).words(1), RandomStream(1, "conv1", 0).words(1ULL << 32)};
  EXPECT_EQ(distinct.size(), 6u);
}

TEST(Philox, UniformIsAWordOfItsBlock) {
  const RandomStream stream(7, "drop", 3);
  EXPECT_EQ(RandomStream(7, "drop").at(3).words(5), stream.words(5));
  for (std::uint64_t element = 0; element < 16; ++element) {
    EXPECT_EQ(stream.uniform(element), RandomStream::unit(stream.words(element / 4)[element % 4]));
    EXPECT_LT(stream.below(10, element), 10u);
  }
  EXPECT_EQ(RandomStream::unit(0), 0.0F);
  EXPECT_LT(RandomStream::unit(~0U), 1.0F);
}

// Standard errors over 100 000 draws: 0.0009 for the uniform mean, 0.0032 for the normal mean,
// 0.0045 for its variance. Five standard errors are allowed.
TEST(Philox, Moments) {
  const RandomStream stream(1, "moments");
  const int draws = 100000;
  double uniform = 0, normal = 0, square = 0;
  for (int i = 0; i < draws; ++i) {
    const double x = stream.normal(i);
    uniform += stream.uniform(i);
    normal += x;
    square += x * x;
  }

  EXPECT_NEAR(uniform / draws, 0.5, 5 * 0.0009);
  EXPECT_NEAR(normal / draws, 0, 5 * 0.0032);
  EXPECT_NEAR(square / draws, 1, 5 * 0.0045);
}

}  // namespace
}  // namespace stratplan
