#include "planner/solve.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "support/message_of.hpp"

namespace stratplan {
namespace {

using testing::HasSubstr;

constexpr const char* example = R"({
  "nodes": [{"name": "a", "cost": [1, 3], "memory": [10, 1]}, {"name": "b", "cost": [4, 1, 9],
      "memory": [10, 10, 1]}],
  "edges": [{"from": "b", "to": "a", "cost": [[0, 2], [5, 1], [0, 0]]}],
  "memory_limit": 1e9
})";

TEST(Solve, Example) {
  // a0 b0: 1 + 4; a1 b1: 3 + 1 + 1. Both are equal and better than all others.
  const Json answer = solve(read_bare_table(Json::parse(example), "table.json"));
  EXPECT_EQ(answer["cost"], 5.0);
  EXPECT_EQ(answer["optimal"], true);
  EXPECT_EQ(answer["gap"], 0.0);
  EXPECT_TRUE(answer["seconds"].is_number_float());
  EXPECT_EQ(answer["assignment"].size(), 2U);
}

TEST(Solve, MemoryLimits) {
  struct Case {
    std::int64_t limit;
    std::string assignment;
    double cost;
    std::int64_t memory;
  };
  const std::vector<Case> cases{
      // limit, assignment, cost, memory
      {11, R"({"a":1,"b":1})", 5, 11},
      {10, R"({"a":1,"b":2})", 12, 2},
      {2, R"({"a":1,"b":2})", 12, 2},
  };
  Json document = Json::parse(example);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.limit);
    document["memory_limit"] = c.limit;
    const Json answer = solve(read_bare_table(document, "table.json"));
    EXPECT_EQ(answer["assignment"].dump(), c.assignment);
    EXPECT_EQ(answer["cost"], c.cost);
    EXPECT_EQ(answer["memory"], c.memory);
  }
  document["memory_limit"] = 1;
  EXPECT_THROW(solve(read_bare_table(document, "table.json")), InfeasibleError);
}

TEST(Solve, BadTablesSayWhere) {
  struct Case {
    const char* pointer;  ///< to the value that is replaced or added
    const char* value;
    const char* message;
  };
  const std::vector<Case> cases{
      // pointer, value, message
      {"/nodes", "3", "table.json: at /nodes: expected an array"},
      {"/colour", "3", "table.json: at /colour: unknown key"},
      {"/nodes/0/weight", "3", "at /nodes/0/weight: unknown key"},
      {"/nodes/0/name", "\"b\"", "at /nodes/1/name: another node is also named \"b\""},
      {"/nodes/0/name", "3", "at /nodes/0: expected a key \"name\""},
      {"/nodes/1/cost", "[]", "at /nodes/1/cost: expected at least one"},
      {"/nodes/1/cost/2", "-1", "at /nodes/1/cost/2: expected a number of at least 0"},
      {"/nodes/1/cost/2", "\"x\"", "at /nodes/1/cost/2: expected a number"},
      {"/nodes/1/memory", "[1]", "at /nodes/1/memory: expected 3 numbers"},
      {"/edges/0/from", "\"c\"", "at /edges/0/from: there is no node \"c\""},
      {"/edges/0/from", "\"a\"", "at /edges/0/to: expected a node other than \"from\""},
      {"/edges/0/cost", "[[1, 2]]", "at /edges/0/cost: expected 3 rows"},
      {"/edges/0/cost/1", "[1]", "at /edges/0/cost/1: expected 2 numbers"},
      {"/edges/0/cost/1/1", "null", "at /edges/0/cost/1/1: expected a number"},
      {"/memory_limit", "1e300", "at /memory_limit: expected at most"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.pointer);
    Json document = Json::parse(example);
    document[Json::json_pointer(c.pointer)] = Json::parse(c.value);
    EXPECT_THAT(test::message_of<InputError>([&] { read_bare_table(document, "table.json"); }),
                HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace stratplan
