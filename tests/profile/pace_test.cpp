#include "profile/pace.hpp"

#include <gtest/gtest.h>

#include "model/cost/example_machine.hpp"

namespace stratplan {
namespace {

TEST(HeaviestKernels, AreThoseThatTakeMostOfTheTimeTogether) {
  // Time by kernel: 400 takes 3 x 2 s, 800 takes 5 s, 1200 takes 1 s, 1600 is not measured; 12 s in all.
  const auto programs = programs_of(
      {{compute_step(fill_of(400)), compute_step(fill_of(400)), compute_step(fill_of(800)),
        compute_step(fill_of(1200))},
       {compute_step(fill_of(400)), compute_step(fill_of(1600)), all_reduce_step({0, 1}, 1000)}});
  MachineProfile machine = round_machine();
  machine.kernels = {{fill_of(400).key(), measured(2)},
                     {fill_of(800).key(), measured(5)},
                     {fill_of(1200).key(), measured(1)}};
  struct Row {
    double share;
    std::vector<Kernel> heaviest;
  };
  const Row rows[] = {
      {0, {}},
      {0.5, {fill_of(400)}},
      {0.51, {fill_of(400), fill_of(800)}},
      {1, {fill_of(400), fill_of(800), fill_of(1200)}},
  };
  for (const Row& row : rows)
    EXPECT_EQ(heaviest_kernels(programs, machine, row.share), row.heaviest) << row.share;
}

TEST(Pace, IsTheRatioOfTimes) {
  MachineProfile before = round_machine(), now = before;
  before.kernels = {{fill_of(400).key(), measured(2)}, {fill_of(800).key(), measured(6)}};
  now.kernels = {{fill_of(400).key(), measured(4)}, {fill_of(800).key(), measured(5)}};
  EXPECT_DOUBLE_EQ(pace({fill_of(400), fill_of(800)}, before, now), 9.0 / 8);
  EXPECT_DOUBLE_EQ(pace({fill_of(800)}, before, now), 5.0 / 6);
  EXPECT_DOUBLE_EQ(pace({fill_of(400)}, before, before), 1);
}

}  // namespace
}  // namespace stratplan
