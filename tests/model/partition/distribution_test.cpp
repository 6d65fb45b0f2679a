// The part of a tensor that each rank holds, and how often each element exists.
#include "model/partition/distribution.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "support/generators.hpp"
#include "support/symbolic_values.hpp"

namespace stratplan {
namespace {

using test::any_int;
using test::make_distribution;

/// A distribution in which each dimension splits the axis of its name (F: the channel axis, R:
/// none). All other dimensions of the grid are Gathered.
Distribution natural(const Shape& shape, const char* grid) {
  return make_distribution(shape, ProcessGrid::parse(grid),
                           {.axis = {0, 1, 1, 2, 3, 4, -1}, .other = Role::Gathered});
}

TEST(Distribution, OwnedTable) {
  struct Case {
    const char* grid;
    Axis axis;
    std::int64_t extent;
    std::vector<Interval> owned;  // per rank
  };
  const std::vector<Case> cases{
      // grid, axis, extent, intervals owned by ranks 0, 1, ...
      {"H3", Axis::H, 9, {{0, 3}, {3, 6}, {6, 9}}},
      {"H3", Axis::H, 10, {{0, 4}, {4, 7}, {7, 10}}},
      {"H3", Axis::W, 10, {{0, 10}, {0, 10}, {0, 10}}},
      {"N2 W2", Axis::W, 5, {{0, 3}, {3, 5}, {0, 3}, {3, 5}}},
      {"F2 C2", Axis::C, 8, {{0, 2}, {2, 4}, {4, 6}, {6, 8}}},
      {"C2 F2",
       Axis::C,
       8,
       {{0, 2}, {4, 6}, {2, 4}, {6, 8}}},  // F is outer, whatever the order of the digits
      {"F2 C2",
       Axis::C,
       7,
       {{0, 2}, {2, 4}, {4, 6}, {6, 7}}},  // blocks of blocks: 4 + 3, then 2 + 2 and 2 + 1
      {"F2 C3", Axis::C, 10, {{0, 2}, {2, 4}, {4, 5}, {5, 7}, {7, 9}, {9, 10}}},
      {"H2 | H2",
       Axis::H,
       6,
       {{0, 2}, {2, 4}, {4, 5}, {5, 6}}},  // one index over two levels is balanced over all four
      {"R2 H2", Axis::H, 6, {{0, 3}, {3, 6}, {0, 3}, {3, 6}}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message()
                 << c.grid << " axis " << axis_names[static_cast<std::size_t>(c.axis)] << " extent "
                 << c.extent);
    Shape shape{{2, 12, 1, 12, 12}};
    shape[c.axis] = c.extent;
    const Distribution tensor = natural(shape, c.grid);
    ASSERT_EQ(tensor.grid.ranks(), static_cast<int>(c.owned.size()));
    for (int rank = 0; rank < tensor.grid.ranks(); ++rank) {
      EXPECT_EQ(tensor.owned(c.axis, rank), c.owned[static_cast<std::size_t>(rank)])
          << "rank " << rank;
      EXPECT_EQ(tensor.owned(rank)[c.axis], c.owned[static_cast<std::size_t>(rank)])
          << "rank " << rank;
    }
  }
}

TEST(Distribution, QuantumHoldsAtBothLevelsOfASplit) {
  Distribution tensor = natural({{1, 20, 1, 1, 1}}, "F2 C2");
  tensor.splits[1].quantum = 4;  // 5 quanta: 3 and 2, then 2 + 1 and 1 + 1
  const std::vector<Interval> owned{{0, 8}, {8, 12}, {12, 16}, {16, 20}};
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(tensor.owned(Axis::C, rank), owned[static_cast<std::size_t>(rank)]) << rank;
}

TEST(Distribution, DualSwapsGatheredAndPartial) {
  Distribution tensor = natural({{4, 8, 1, 8, 8}}, "N2 F2 H2 R2");
  tensor.roles[static_cast<std::size_t>(Dim::H)] = Role::Gathered;
  tensor.splits[static_cast<std::size_t>(Axis::H)].by.clear();
  const Distribution dual = tensor.dual();
  EXPECT_EQ(dual.role(Dim::N), Role::Block);
  EXPECT_EQ(dual.role(Dim::F), Role::Block);
  EXPECT_EQ(dual.role(Dim::H), Role::Partial);
  EXPECT_EQ(dual.role(Dim::R), Role::Redundant);
  EXPECT_EQ(dual.dual(), tensor);
  for (int rank = 0; rank < 16; ++rank) EXPECT_EQ(dual.owned(rank), tensor.owned(rank));
}

TEST(Distribution, DimsWithARoleHaveMoreThanOnePart) {
  Distribution tensor = natural({{4, 8, 1, 8, 8}}, "N2 C2 R2");
  EXPECT_EQ(tensor.dims_with(Role::Block), (std::vector<Dim>{Dim::N, Dim::C}));
  EXPECT_EQ(tensor.dims_with(Role::Redundant), (std::vector<Dim>{Dim::R}));
  EXPECT_EQ(tensor.dims_with(Role::Gathered), std::vector<Dim>{});
}

TEST(Distribution, Text) {
  Distribution tensor = natural({{4, 8, 1, 8, 8}}, "N2 F2 C2 H2 R2");
  tensor.roles[static_cast<std::size_t>(Dim::H)] = Role::Gathered;
  tensor.splits[static_cast<std::size_t>(Axis::H)].by.clear();
  EXPECT_EQ(tensor.text(), "N:N2 C:F2xC2 | gathered H, redundant R");
}

RC_GTEST_PROP(Distribution, EachElementExistsOncePerCombinationOfDimensionsThatDoNotSplit, ()) {
  const ProcessGrid grid = test::any_grid(test::any_topology(), {all_dims.begin(), all_dims.end()});
  test::AxisChoice choice;
  std::array<int, axis_count> splits{};
  Shape shape{{2, 2, 2, 2, 2}};
  for (int dim = 0; dim < dim_count - 1; ++dim) {
    const int axis = any_int(-1, axis_count - 1);
    if (axis < 0 || splits[static_cast<std::size_t>(axis)]++ >= 2) continue;
    choice.axis[static_cast<std::size_t>(dim)] = axis;
    shape.extent[static_cast<std::size_t>(axis)] *= grid.parts(static_cast<Dim>(dim));
  }
  for (std::int64_t& extent : shape.extent)
    extent += any_int(0, 1) - (any_int(0, 1) && extent == 2);
  const Distribution tensor = make_distribution(shape, grid, choice);
  std::vector<int> copies(static_cast<std::size_t>(shape.elements()), 0);
  for (int rank = 0; rank < grid.ranks(); ++rank)
    test::for_each_element(tensor.owned(rank), [&](const test::Element& element) {
      ++copies[test::position_in(whole(shape), element)];
    });
  int expected = 1;
  for (const Dim dim : all_dims)
    expected *= choice.axis[static_cast<std::size_t>(dim)] < 0 ? grid.parts(dim) : 1;
  for (const int count : copies) RC_ASSERT(count == expected);
}

TEST(Needed, IsTheBlockOfTheIterationSpaceSeenThroughTheWindow) {
  // The worked example of halo.hpp: 9 wide, kernel 3, stride 2, padding 1 and 1, 5 outputs on 3
  // ranks.
  Needed needed;
  needed.tensor = Shape{{1, 4, 1, 1, 9}};
  needed.iteration = natural({{1, 4, 1, 1, 5}}, "W3");
  needed.windows[2] = {.kernel = 3, .stride = 2, .dilation = 1, .pad_before = 1, .pad_after = 1};
  const std::vector<Interval> expected{{0, 4}, {3, 8}, {7, 9}};
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(needed.region(Axis::W, rank), expected[static_cast<std::size_t>(rank)]);
    EXPECT_EQ(needed.region(rank)[Axis::W], expected[static_cast<std::size_t>(rank)]);
    EXPECT_EQ(needed.region(rank)[Axis::C], (Interval{0, 4}));
  }
}

TEST(Needed, IsWhatABlockOfAConcatenationHoldsOfATensor) {
  // Channels 3 to 7 of 10 are the tensor's 4 channels. Blocks have 4, 3 and 3 channels.
  Needed needed;
  needed.tensor = Shape{{1, 4, 1, 1, 9}};
  needed.iteration = natural({{1, 10, 1, 1, 9}}, "C3");
  needed.first_channel = 3;
  const std::vector<Interval> expected{{0, 1}, {1, 4}, {}};
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(needed.region(Axis::C, rank), expected[static_cast<std::size_t>(rank)]) << rank;
}

TEST(Needed, IsWhatABlockOfAnEnlargementMixes) {
  // The worked example of halo.hpp: 5 wide, enlarged by two, 10 outputs on 3 ranks.
  Needed needed;
  needed.tensor = Shape{{1, 4, 1, 1, 5}};
  needed.iteration = natural({{1, 4, 1, 1, 10}}, "W3");
  needed.scales[2] = enlarged(2, true);
  const std::vector<Interval> expected{{0, 3}, {1, 4}, {3, 5}};
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(needed.region(Axis::W, rank), expected[static_cast<std::size_t>(rank)]) << rank;
}

}  // namespace
}  // namespace stratplan
