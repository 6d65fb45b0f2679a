#include "model/partition/grid_space.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace stratplan {
namespace {

const std::vector<Dim> every_dim{all_dims.begin(), all_dims.end()};

TEST(GridSpace, HasTheGridsOfAllGrids) {
  for (const Topology& topology :
       std::vector<Topology>{{1}, {4}, {6}, {2, 2}, {6, 4}, {8, 4}, {5, 3}}) {
    const GridSpace space(topology, every_dim);
    std::set<ProcessGrid> made;
    for (std::size_t i = 0; i < space.size(); ++i) made.insert(space.grid(i));
    const std::vector<ProcessGrid> all = all_grids(topology, every_dim);
    EXPECT_EQ(made, std::set<ProcessGrid>(all.begin(), all.end()));
    EXPECT_EQ(space.size(), all.size());
  }
}

TEST(GridSpace, DigitsAndTotalsAreTheGrids) {
  const GridSpace space({6, 4}, every_dim);
  for (std::size_t i = 0; i < space.size(); ++i) {
    const ProcessGrid grid = space.grid(i);
    EXPECT_EQ(space.find(grid), i) << grid.text();
    for (const Dim dim : all_dims) {
      EXPECT_EQ(space.totals()[static_cast<std::size_t>(space.totals_of(i))]
                              [static_cast<std::size_t>(dim)],
                grid.parts(dim));
      for (const int rank : {0, 1, 5, 13, 23}) {
        int index = 0;
        for (const GridDigit& digit : space.digits(i))
          if (digit.dim == dim) index = index * digit.parts + rank / digit.stride % digit.parts;
        EXPECT_EQ(index, grid.index(dim, rank)) << grid.text() << " rank " << rank;
      }
    }
  }
}

TEST(GridSpace, LevelsOutsideTheInnermostAreOne) {
  const GridSpace space({2, 3, 4}, {Dim::N, Dim::H});
  EXPECT_EQ(space.size(), GridSpace({6, 4}, {Dim::N, Dim::H}).size());
  EXPECT_EQ(space.ranks(), 24);
}

TEST(GridSpace, GridsInAnotherOrderAreNotIn) {
  const GridSpace space({8}, every_dim);
  EXPECT_TRUE(space.find(ProcessGrid::parse("N2 H4")));
  EXPECT_FALSE(space.find(ProcessGrid::parse("H4 N2")));
  EXPECT_FALSE(space.find(ProcessGrid::parse("N16")));
}

TEST(GridSpace, NeighboursAreNeighboursOfEachOther) {
  const GridSpace space({6, 4}, every_dim);
  for (std::size_t i = 0; i < space.size(); i += 7) {
    const std::vector<std::size_t> near = space.neighbours(i);
    EXPECT_EQ(std::set<std::size_t>(near.begin(), near.end()).size(), near.size());
    for (const std::size_t other : near) {
      EXPECT_NE(other, i);
      EXPECT_EQ(std::ranges::count(space.neighbours(other), i), 1)
          << space.grid(i).text() << " and " << space.grid(other).text();
    }
  }
}

TEST(GridSpace, NeighboursMoveOneFactorWithinALevel) {
  const GridSpace space({3, 2}, {Dim::N, Dim::F});
  std::set<std::string> texts;
  for (const std::size_t near : space.neighbours(*space.find(ProcessGrid::parse("N3 | F2"))))
    texts.insert(space.grid(near).text());
  EXPECT_EQ(texts, (std::set<std::string>{"F3 | F2", "N3 | N2"}));
}

}  // namespace
}  // namespace stratplan
