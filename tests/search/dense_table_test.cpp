#include "search/dense_table.hpp"

#include <gtest/gtest.h>

namespace stratplan {
namespace {

TEST(DenseTable, TurnsAndMergesEdges) {
  DenseTable table;
  table.add_node({"a", {1, 2}, {}});
  table.add_node({"b", {1, 2, 3}, {7, 8, 9}});
  table.add_edge(0, 1, {{1, 2, 3}, {4, 5, 6}});
  table.add_edge(1, 0, {{10, 40}, {20, 50}, {30, 60}});

  ASSERT_EQ(table.edges().size(), 1U);
  EXPECT_EQ(table.edges()[0].from, 0);
  EXPECT_EQ(table.edges()[0].to, 1);
  EXPECT_EQ(table.edge_cost(0, 0, 2), Seconds{33});
  EXPECT_EQ(table.edge_cost(0, 1, 0), Seconds{44});
  EXPECT_EQ(table.edge_bound(0), Seconds{11});
  EXPECT_EQ(table.node_memory(0, 1), Bytes{0});
  EXPECT_EQ(table.node_memory(1, 1), Bytes{8});
}

TEST(DenseTableDeathTest, UnknownPairs) {
  DenseTable table;
  table.add_node({"a", {1}, {}});
  table.add_node({"b", {1}, {}});
  EXPECT_DEATH(table.add_edge(0, 1, {{1, 2}}), "columns=2 candidates=1");
  EXPECT_DEATH(table.add_edge(0, 0, {{1}}), "to itself");
}

}  // namespace
}  // namespace stratplan
