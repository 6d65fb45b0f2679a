// Blocks and regions: worked tables, inverse functions, and cover without overlap.
#include "model/partition/interval.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "support/generators.hpp"

namespace stratplan {
namespace {

using test::any_int;

struct BlockCase {
  std::int64_t extent, parts, quantum;
  std::vector<Interval> blocks;
};

TEST(Block, Table) {
  const std::vector<BlockCase> cases{
      // extent, parts, quantum, blocks
      {10, 3, 1, {{0, 4}, {4, 7}, {7, 10}}},
      {10, 3, 4, {{0, 4}, {4, 8}, {8, 10}}},
      {9, 3, 1, {{0, 3}, {3, 6}, {6, 9}}},
      {5, 3, 1, {{0, 2}, {2, 4}, {4, 5}}},
      {7, 5, 1, {{0, 2}, {2, 4}, {4, 5}, {5, 6}, {6, 7}}},
      {16, 6, 1, {{0, 3}, {3, 6}, {6, 9}, {9, 12}, {12, 14}, {14, 16}}},
      {13,
       12,
       1,
       {{0, 2},
        {2, 3},
        {3, 4},
        {4, 5},
        {5, 6},
        {6, 7},
        {7, 8},
        {8, 9},
        {9, 10},
        {10, 11},
        {11, 12},
        {12, 13}}},
      {64, 3, 16, {{0, 32}, {32, 48}, {48, 64}}},
      {60, 3, 16, {{0, 32}, {32, 48}, {48, 60}}},  // 4 quanta, the last cut to 12
      {3, 1, 8, {{0, 3}}},
      {1, 1, 1, {{0, 1}}},
  };
  for (const BlockCase& c : cases) {
    SCOPED_TRACE(testing::Message() << c.extent << " in " << c.parts << " quantum " << c.quantum);
    ASSERT_EQ(static_cast<std::int64_t>(c.blocks.size()), c.parts);
    for (std::int64_t i = 0; i < c.parts; ++i) {
      const Interval expected = c.blocks[static_cast<std::size_t>(i)];
      EXPECT_EQ(block(c.extent, c.parts, i, c.quantum), expected) << "block " << i;
      for (std::int64_t e = expected.begin; e < expected.end; ++e)
        EXPECT_EQ(block_of(c.extent, c.parts, e, c.quantum), i) << "element " << e;
    }
  }
}

TEST(Block, MorePartsThanQuantaLeavesEmptyBlocks) {
  const std::vector<std::int64_t> sizes{4, 4, 2, 0, 0};  // 10 elements are 3 quanta of 4
  for (std::int64_t i = 0; i < 5; ++i)
    EXPECT_EQ(block(10, 5, i, 4).size(), sizes[static_cast<std::size_t>(i)]) << i;
  for (std::int64_t e = 0; e < 10; ++e) EXPECT_EQ(block_of(10, 5, e, 4), e / 4);
}

RC_GTEST_PROP(Block, CoversWithoutOverlapInOrder, ()) {
  const std::int64_t extent = any_int(1, 300), parts = any_int(1, 14), quantum = any_int(1, 9);
  std::int64_t next = 0;
  for (std::int64_t i = 0; i < parts; ++i) {
    const Interval piece = block(extent, parts, i, quantum);
    if (piece.empty()) continue;
    RC_ASSERT(piece.begin == next);
    RC_ASSERT(piece.begin % quantum == 0);
    RC_ASSERT(piece.end == extent || piece.end % quantum == 0);
    next = piece.end;
  }
  RC_ASSERT(next == extent);
}

RC_GTEST_PROP(Block, IsBalancedToOneQuantumLongerOnesFirst, ()) {
  const std::int64_t extent = any_int(1, 300), parts = any_int(1, 14), quantum = any_int(1, 9);
  const auto quanta = [&](std::int64_t i) {
    return (block(extent, parts, i, quantum).size() + quantum - 1) / quantum;
  };
  for (std::int64_t i = 1; i < parts; ++i) {
    RC_ASSERT(quanta(i) <= quanta(i - 1));
    RC_ASSERT(quanta(0) - quanta(i) <= 1);
  }
}

RC_GTEST_PROP(Block, BlockOfIsTheInverse, ()) {
  const std::int64_t extent = any_int(1, 300), parts = any_int(1, 14), quantum = any_int(1, 9);
  const std::int64_t element = any_int(0, static_cast<int>(extent) - 1);
  const Interval holder = block(extent, parts, block_of(extent, parts, element, quantum), quantum);
  RC_ASSERT(holder.begin <= element);
  RC_ASSERT(element < holder.end);
}

TEST(Interval, IntersectTable) {
  struct Case {
    Interval a, b, both;
  };
  const std::vector<Case> cases{
      // a, b, intersection
      {{0, 4}, {2, 6}, {2, 4}}, {{0, 4}, {4, 6}, {}}, {{0, 9}, {3, 5}, {3, 5}},
      {{0, 1}, {7, 9}, {}},     {{5, 5}, {0, 9}, {}},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(intersect(c.a, c.b), c.both);
    EXPECT_EQ(intersect(c.b, c.a), c.both);
    EXPECT_TRUE(c.a.contains(c.both));
  }
}

Region region_of(std::array<Interval, axis_count> intervals) { return Region{intervals}; }

TEST(Region, IntersectIsEmptyOnAllAxesIfOnAny) {
  const Region a = region_of({{{0, 2}, {0, 8}, {0, 1}, {0, 4}, {0, 4}}});
  const Region b = region_of({{{1, 2}, {4, 9}, {0, 1}, {2, 6}, {0, 4}}});
  const Region apart = region_of({{{0, 2}, {0, 8}, {0, 1}, {4, 6}, {0, 4}}});
  EXPECT_EQ(intersect(a, b), region_of({{{1, 2}, {4, 8}, {0, 1}, {2, 4}, {0, 4}}}));
  EXPECT_EQ(intersect(a, b).elements(), 1 * 4 * 1 * 2 * 4);
  EXPECT_EQ(intersect(a, apart), Region{});
  EXPECT_TRUE(intersect(a, apart).empty());
}

TEST(Region, WholeContainsItsParts) {
  const Shape shape{{2, 8, 1, 5, 7}};
  EXPECT_EQ(whole(shape).shape(), shape);
  EXPECT_EQ(whole(shape).elements(), 560);
  EXPECT_TRUE(whole(shape).contains(region_of({{{1, 2}, {0, 8}, {0, 1}, {4, 5}, {0, 7}}})));
  EXPECT_FALSE(whole(shape).contains(region_of({{{1, 3}, {0, 8}, {0, 1}, {4, 5}, {0, 7}}})));
  EXPECT_TRUE(whole(shape).contains(Region{}));
}

TEST(Region, Text) {
  EXPECT_EQ(to_string(region_of({{{0, 4}, {0, 64}, {0, 1}, {0, 57}, {0, 112}}})),
            "[0,4) [0,64) [0,1) [0,57) [0,112)");
}

}  // namespace
}  // namespace stratplan
