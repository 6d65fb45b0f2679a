// The large-scale search under memory limits.
#include "planner/large_scale_search.hpp"

#include <gtest/gtest.h>

#include "planner/layout_estimate.hpp"
#include "planner/small_cases.hpp"

namespace stratplan {
namespace {

class WithinMemory : public testing::Test {
 protected:
  LargeScaleResult search(std::optional<Bytes> limit) const {
    return search_at_large_scale(network_, blocks_, 8, machine_, {}, limit, {});
  }
  Bytes memory(const LargeScaleResult& outcome) const {
    static const Execution as_given;
    return LayoutEstimates(network_, blocks_, as_given, machine_).of(outcome.found.front()).memory;
  }

  const Network network_ = test::small_resnet(16, 16, 32);
  const std::vector<Block> blocks_ = fold(network_);
  const MachineProfile machine_ = test::small_machine();
};

/// The result fits the limit and is no better than with a larger limit. Its lower bound is below
/// the results of smaller limits.
TEST_F(WithinMemory, LessRoomTakesLongerAndBoundsHold) {
  const LargeScaleResult free = search({});
  const Bytes most = memory(free);
  Seconds before = free.objective;
  double bound = free.lower_bound.value;
  int binding = 0;
  for (const double share : {1.0, 0.9, 0.8, 0.7, 0.6}) {
    const Bytes limit{static_cast<std::int64_t>(share * static_cast<double>(most.value))};
    const LargeScaleResult outcome = search(limit);
    if (outcome.found.empty()) break;
    EXPECT_LE(memory(outcome), limit) << share;
    EXPECT_LE(outcome.lower_bound, outcome.objective) << share;
    EXPECT_LE(bound, outcome.objective.value * (1 + 1e-9)) << share;
    EXPECT_GE(outcome.objective.value, before.value * 0.995) << share;
    bound = std::max(bound, outcome.lower_bound.value);
    before = std::max(before, outcome.objective);
    binding += outcome.objective > free.objective;
  }
  EXPECT_GE(binding, 1);
}

TEST_F(WithinMemory, WhatNothingFitsIsFoundByNoSearch) {
  EXPECT_TRUE(search(Bytes{1}).found.empty());
}

}  // namespace
}  // namespace stratplan
