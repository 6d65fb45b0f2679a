// Rank numbers in mixed radix: indices and their inverses, groups, texts, and the number of grids.
#include "model/partition/process_grid.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "support/generators.hpp"

namespace stratplan {
namespace {

using test::any_int;
using test::any_of;

TEST(ProcessGrid, IndexTable) {
  struct Case {
    const char* grid;
    Dim dim;
    std::vector<int> index;  // per rank
  };
  const std::vector<Case> cases{
      // grid          dim     rank 0 1 2 3 ...
      {"N2 | H2 W2", Dim::N, {0, 0, 0, 0, 1, 1, 1, 1}},
      {"N2 | H2 W2", Dim::H, {0, 0, 1, 1, 0, 0, 1, 1}},
      {"N2 | H2 W2", Dim::W, {0, 1, 0, 1, 0, 1, 0, 1}},
      {"N2 | H2 W2", Dim::C, {0, 0, 0, 0, 0, 0, 0, 0}},
      {"H2 | H2", Dim::H, {0, 1, 2, 3}},
      {"H2 W2 | H2", Dim::H, {0, 1, 0, 1, 2, 3, 2, 3}},
      {"H2 W2 | H2", Dim::W, {0, 0, 1, 1, 0, 0, 1, 1}},
      {"N3", Dim::N, {0, 1, 2}},
      {"F2 C3", Dim::F, {0, 0, 0, 1, 1, 1}},
      {"F2 C3", Dim::C, {0, 1, 2, 0, 1, 2}},
      {"C3 F2", Dim::C, {0, 0, 1, 1, 2, 2}},
      {"N3 H2 R2", Dim::H, {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1}},
      {"N3 H2 R2", Dim::R, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}},
      {"N1", Dim::N, {0}},
  };
  for (const Case& c : cases) {
    const ProcessGrid grid = ProcessGrid::parse(c.grid);
    SCOPED_TRACE(std::string(c.grid) + " along " + dim_letters[static_cast<std::size_t>(c.dim)]);
    ASSERT_EQ(grid.ranks(), static_cast<int>(c.index.size()));
    for (int rank = 0; rank < grid.ranks(); ++rank)
      EXPECT_EQ(grid.index(c.dim, rank), c.index[static_cast<std::size_t>(rank)])
          << "rank " << rank;
  }
}

TEST(ProcessGrid, TwoByTwoTilesOfTwoByTwo) {  // "H4 W4" on nodes of four, the example of the design
  const ProcessGrid grid = ProcessGrid::parse("H2 W2 | H2 W2");
  EXPECT_EQ(grid.parts(Dim::H), 4);
  EXPECT_EQ(grid.parts(Dim::W), 4);
  for (int rank = 0; rank < 16; ++rank) {
    const int node = rank / 4, local = rank % 4;
    EXPECT_EQ(grid.index(Dim::H, rank), (node / 2) * 2 + local / 2);
    EXPECT_EQ(grid.index(Dim::W, rank), (node % 2) * 2 + local % 2);
  }
}

TEST(ProcessGrid, TextTable) {
  struct Case {
    const char* given;
    const char* text;
    int ranks, levels;
  };
  const std::vector<Case> cases{
      // given           text            ranks levels
      {"N4 H2 W2", "N4 H2 W2", 16, 1},
      {"N4 | H2 W2", "N4 | H2 W2", 16, 2},
      {"N1", "N1", 1, 1},
      {"F2 C2", "F2 C2", 4, 1},
      {"C2 F2", "C2 F2", 4, 1},
      {"H2|H2", "H2 | H2", 4, 2},
      {"  N2   R4 ", "N2 R4", 8, 1},
      {"N2 H1", "N2", 2, 1},
      {"D12", "D12", 12, 1},
      {"N2 N3 H2", "N6 H2", 12, 1},
      {"N1 | H4", "N1 | H4", 4, 2},
      {"H2 | N1 | W2", "H2 | N1 | W2", 4, 3},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.given);
    const ProcessGrid grid = ProcessGrid::parse(c.given);
    EXPECT_EQ(grid.text(), c.text);
    EXPECT_EQ(grid.ranks(), c.ranks);
    EXPECT_EQ(grid.levels(), c.levels);
    EXPECT_EQ(ProcessGrid::parse(grid.text()), grid);
  }
  EXPECT_EQ(ProcessGrid().text(), "N1");
  EXPECT_EQ(ProcessGrid::uniform(4, Dim::H).text(), "H4");
  EXPECT_EQ(ProcessGrid::uniform(1, Dim::H), ProcessGrid());
}

TEST(ProcessGrid, BadTextsAreRefusedWithOneLine) {
  for (const char* text :
       {"", " ", "N", "4", "N0", "N-2", "X2", "N2,H2", "N2 |", "| N2", "N2 || H2", "N2.5",
        "N99999999999999999999", "N2 H", "N 2", "N65536 H65536"}) {
    try {
      ProcessGrid::parse(text);
      ADD_FAILURE() << "accepted: '" << text << "'";
    } catch (const std::invalid_argument& error) {
      EXPECT_FALSE(std::string(error.what()).empty()) << text;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << text;
    }
  }
}

TEST(ProcessGrid, GroupTable) {
  struct Case {
    const char* grid;
    int rank;
    std::vector<Dim> dims;
    std::vector<int> group;
  };
  const std::vector<Case> cases{
      // grid, rank, dims, group
      {"N2 | H2 W2", 5, {Dim::H}, {5, 7}},
      {"N2 | H2 W2", 5, {Dim::W}, {4, 5}},
      {"N2 | H2 W2", 5, {Dim::N}, {1, 5}},
      {"N2 | H2 W2", 5, {Dim::H, Dim::W}, {4, 5, 6, 7}},
      {"N2 | H2 W2", 5, {Dim::N, Dim::W}, {0, 1, 4, 5}},
      {"N2 | H2 W2", 5, {}, {5}},
      {"N2 | H2 W2", 5, {Dim::C}, {5}},
      {"H2 W2 | H2", 2, {Dim::H}, {2, 3, 6, 7}},
      {"C3 F2", 1, {Dim::C}, {1, 3, 5}},
  };
  for (const Case& c : cases)
    EXPECT_EQ(ProcessGrid::parse(c.grid).group(c.rank, c.dims), c.group)
        << c.grid << " rank " << c.rank;
}

TEST(ProcessGrid, RelabellingKeepsRankNumbers) {
  struct Case {
    const char* grid;
    std::vector<Dim> from;
    const char* relabelled;
  };
  const std::vector<Case> cases{
      // grid, dims, grid with these dims turned into R
      {"N2 H2", {Dim::H}, "N2 R2"},       {"N2 H2 W2", {Dim::N}, "R2 H2 W2"},
      {"F2 C2 R2", {Dim::C}, "F2 R4"},    {"H2 W2 | H2", {Dim::H}, "R2 W2 | R2"},
      {"C2 H2 R2", {Dim::C}, "R2 H2 R2"}, {"D2 H3 W2", {Dim::D, Dim::W}, "R2 H3 R2"},
      {"N2 W2", {Dim::H}, "N2 W2"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.grid);
    const ProcessGrid before = ProcessGrid::parse(c.grid),
                      after = before.relabelled(c.from, Dim::R);
    EXPECT_EQ(after.text(), c.relabelled);
    EXPECT_EQ(after.ranks(), before.ranks());
    EXPECT_EQ(ProcessGrid::parse(after.text()), after);
    for (const Dim dim : all_dims) {
      const bool renamed = std::find(c.from.begin(), c.from.end(), dim) != c.from.end();
      if (renamed || dim == Dim::R) continue;
      for (int rank = 0; rank < before.ranks(); ++rank)
        EXPECT_EQ(after.index(dim, rank), before.index(dim, rank));
    }
  }
}

RC_GTEST_PROP(ProcessGrid, RankAtIsTheInverseOfIndex, ()) {
  const ProcessGrid grid = test::any_grid(test::any_topology(), {all_dims.begin(), all_dims.end()});
  std::set<std::array<int, dim_count>> seen;
  for (int rank = 0; rank < grid.ranks(); ++rank) {
    std::array<int, dim_count> indices{};
    for (const Dim dim : all_dims) {
      const int index = grid.index(dim, rank);
      RC_ASSERT(grid.indices(dim).at(static_cast<std::size_t>(rank)) == index);
      RC_ASSERT(0 <= index);
      RC_ASSERT(index < grid.parts(dim));
      indices[static_cast<std::size_t>(dim)] = index;
    }
    RC_ASSERT(grid.rank_at(indices) == rank);
    RC_ASSERT(seen.insert(indices).second);
  }
}

RC_GTEST_PROP(ProcessGrid, ParseIsTheInverseOfText, ()) {
  const ProcessGrid grid =
      test::any_grid({any_of<int>({2, 3, 6, 12})}, {all_dims.begin(), all_dims.end()});
  RC_ASSERT(ProcessGrid::parse(grid.text()) == grid);
  const ProcessGrid two = test::any_grid({any_of<int>({2, 3}), any_of<int>({2, 4, 6})},
                                         {all_dims.begin(), all_dims.end()});
  RC_ASSERT(ProcessGrid::parse(two.text()) == two);
}

RC_GTEST_PROP(ProcessGrid, GroupsAreClassesOfRanksThatAgreeElsewhere, ()) {
  const ProcessGrid grid = test::any_grid(test::any_topology(), {all_dims.begin(), all_dims.end()});
  std::vector<Dim> dims;
  for (const Dim dim : all_dims) {
    if (any_int(0, 1) == 1) dims.push_back(dim);
  }
  const int rank = any_int(0, grid.ranks() - 1);
  std::vector<int> expected;
  for (int other = 0; other < grid.ranks(); ++other) {
    const bool agrees = std::all_of(all_dims.begin(), all_dims.end(), [&](Dim dim) {
      return std::find(dims.begin(), dims.end(), dim) != dims.end() ||
             grid.index(dim, other) == grid.index(dim, rank);
    });
    if (agrees) expected.push_back(other);
  }
  RC_ASSERT(grid.group(rank, dims) == expected);
}

TEST(ProcessGrid, CommonLevels) {
  const ProcessGrid grid = ProcessGrid::parse("N2 | H2 W2");
  EXPECT_EQ(grid.common_levels(0, 0), 2);
  EXPECT_EQ(grid.common_levels(0, 3), 1);  // same node
  EXPECT_EQ(grid.common_levels(3, 4), 0);  // across nodes
  EXPECT_EQ(ProcessGrid::parse("H4").common_levels(1, 2), 0);
  EXPECT_EQ(ProcessGrid::parse("H4").common_levels(2, 2), 1);
}

/// The slow way: takes the holders that share the most levels with the rank, and one of them by the
/// rank's number.
int nearest_by_trying(const ProcessGrid& grid, int holder, const DimList& dims, int rank) {
  std::vector<int> nearest;
  int most = -1;
  for (const int other : grid.group(holder, dims)) {
    const int levels = grid.common_levels(other, rank);
    if (levels > most) nearest.clear();
    if (levels >= most) nearest.push_back(other);
    most = std::max(most, levels);
  }
  return nearest[static_cast<std::size_t>(rank) % nearest.size()];
}

TEST(ProcessGrid, TheNearestOfAGroupSharesTheMostLevels) {
  for (const char* text :
       {"R8", "N2 | R4", "R2 | H2 R2", "R2 H3 | R2 W2", "H2 | R2 | R3 H2", "R4 | N4"}) {
    const ProcessGrid grid = ProcessGrid::parse(text);
    for (int rank = 0; rank < grid.ranks(); ++rank)
      for (int holder = 0; holder < grid.ranks(); ++holder)
        for (const DimList& dims : {DimList{Dim::R}, DimList{Dim::H, Dim::R}, DimList{}})
          EXPECT_EQ(grid.nearest(holder, dims, rank), nearest_by_trying(grid, holder, dims, rank))
              << text << ", of " << holder << " for " << rank;
  }
}

TEST(ProcessGrid, PartsFromALevelOn) {
  const ProcessGrid grid = ProcessGrid::parse("H2 W2 | H3");
  EXPECT_EQ(grid.parts_from(Dim::H, 0), 6);
  EXPECT_EQ(grid.parts_from(Dim::H, 1), 3);
  EXPECT_EQ(grid.parts_from(Dim::W, 1), 1);
  for (int rank = 0; rank < grid.ranks(); ++rank)
    EXPECT_EQ(grid.index(Dim::H, rank) / grid.parts_from(Dim::H, 1), rank / 6);
}

TEST(AllGrids, CountsTable) {
  const std::vector<Dim> all{all_dims.begin(), all_dims.end()};
  struct Case {
    Topology topology;
    std::vector<Dim> dims;
    std::size_t count;
  };
  const std::vector<Case> cases{
      // topology, dims, count: the product over levels of the ways to assign the prime factors
      {{1}, all, 1},
      {{4}, {Dim::H, Dim::W}, 3},     // H4, H2 W2, W4
      {{2, 2}, {Dim::H, Dim::W}, 4},  // each level H or W
      {{6}, {Dim::N, Dim::H}, 4},     // 2 and 3 each to N or H
      {{5}, all, 7},
      {{12}, all, 196},  // 2*2 in C(8,2) = 28 ways, 3 in 7
      {{4, 3}, all, 196},
      {{8}, {Dim::N}, 1},
  };
  for (const Case& c : cases) {
    const std::vector<ProcessGrid> grids = all_grids(c.topology, c.dims);
    EXPECT_EQ(grids.size(), c.count);
    const std::set<ProcessGrid> distinct(grids.begin(), grids.end());
    EXPECT_EQ(distinct.size(), grids.size());
    int ranks = 1;
    for (const int factor : c.topology) ranks *= factor;
    for (const ProcessGrid& grid : grids) {
      EXPECT_EQ(grid.ranks(), ranks) << grid.text();
      for (const Dim dim : all_dims) {
        const bool allowed = std::find(c.dims.begin(), c.dims.end(), dim) != c.dims.end();
        EXPECT_TRUE(allowed || grid.parts(dim) == 1) << grid.text();
      }
    }
  }
}

}  // namespace
}  // namespace stratplan
