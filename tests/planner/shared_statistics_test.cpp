#include "planner/shared_statistics.hpp"

#include <gtest/gtest.h>

#include "planner/prediction.hpp"
#include "planner/small_cases.hpp"

namespace stratplan {
namespace {

TEST(SharedStatistics, CostWhatLocalOnesSave) {
  struct Row {
    const char* decomposition;
    std::int64_t samples;  ///< in a set, of 4 samples in all
    int ranks;             ///< of a set; 0: none is shared
  };
  const Row rows[] = {
      // decomposition, samples in a set, ranks
      {"N2", 4, 2}, {"N2", 2, 0}, {"N4", 2, 2}, {"N4", 1, 0}, {"H2", 1, 2}, {"F2", 4, 0},
  };
  const MachineProfile machine = test::small_machine(1e7, 1e-4);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.decomposition);
    Network network = test::small_resnet(4);
    network.statistics_samples = row.samples;
    const Plan plan = uniform_plan(network, Decomposition::parse(row.decomposition));
    const auto shared = shared_statistics(modelled_programs(plan, network), network, machine);
    ASSERT_EQ(shared.has_value(), row.ranks > 0);
    if (!shared) continue;
    EXPECT_EQ(shared->samples, row.samples);
    EXPECT_EQ(shared->ranks, row.ranks);
    const Seconds with = predict(plan, network, machine).step;
    network.local_statistics = true;
    EXPECT_FALSE(shared_statistics(modelled_programs(plan, network), network, machine));
    // Kernels over a rank's own positions take a little less time than over shared sets.
    EXPECT_NEAR(shared->cost / (with - predict(plan, network, machine).step), 1, 0.02);
  }
}

}  // namespace
}  // namespace stratplan
