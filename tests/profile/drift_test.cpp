#include "profile/drift.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/json/json.hpp"
#include "model/cost/example_machine.hpp"

namespace stratplan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(RepresentativeKernels, AreThoseThatTakeMostOfTheTimeTogether) {
  // Time by kernel: 400 takes 3 x 2 s, 800 takes 5 s, 1200 takes 1 s, and 1600 is not measured. The
  // sum is 12 s.
  const auto programs = programs_of(
      {{compute_op(fill_of(400)), compute_op(fill_of(400)), compute_op(fill_of(800)),
        compute_op(fill_of(1200))},
       {compute_op(fill_of(400)), compute_op(fill_of(1600)), all_reduce_op({0, 1}, 1000)}});
  MachineProfile machine = round_machine();
  machine.kernels = {{fill_of(400).key(), measured(4)},
                     {fill_of(800).key(), measured(5)},
                     {fill_of(1200).key(), measured(1)}};
  machine.kernels.at(fill_of(400).key()).drift = 2;
  const RepresentativeKernel first{fill_of(400), {6}}, second{fill_of(800), {5}},
      third{fill_of(1200), {1}};
  EXPECT_THAT(representative_kernels(programs, machine, 0, 8), IsEmpty());
  EXPECT_THAT(representative_kernels(programs, machine, 0.5, 8), ElementsAre(first));
  EXPECT_THAT(representative_kernels(programs, machine, 0.51, 8), ElementsAre(first, second));
  EXPECT_THAT(representative_kernels(programs, machine, 1, 8), ElementsAre(first, second, third));
  EXPECT_THAT(representative_kernels(programs, machine, 1, 2), ElementsAre(first, second));
}

TEST(DriftOf, IsTheRatioOfTimesIfTheyAgree) {
  struct Row {
    const char* what;
    double first, second;  ///< seconds now; before: 2 (twice per step, so 4) and 6
    std::optional<Drift> drift;
  };
  const Row rows[] = {
      {"as before", 2, 6, {}},
      {"as good as before", 2.04, 6.12, {}},
      {"slower", 2.4, 7.8, Drift{1.26, 1.2, 1.3, 2, true}},
      {"faster", 1.6, 4.8, Drift{0.8, 0.8, 0.8, 2, true}},
      {"one slower", 2, 9, Drift{1.3, 1, 1.5, 2, false}},
      {"one slower, one faster, together as before", 3.5, 3, Drift{1, 0.5, 1.75, 2, false}},
  };
  const RepresentativeKernel kernels[] = {{fill_of(400), {4}}, {fill_of(800), {6}}};
  for (const Row& row : rows) {
    MachineProfile before = round_machine(), now = before;
    before.kernels = {{fill_of(400).key(), measured(2)}, {fill_of(800).key(), measured(6)}};
    now.kernels = {{fill_of(400).key(), measured(row.first)},
                   {fill_of(800).key(), measured(row.second)}};
    for (const double drift : {1.0, 1.25}) {  // the drift while the first was measured before
      Measurement& first = before.kernels.at(fill_of(400).key());
      first = measured(2 * drift);
      first.drift = drift;
      const std::optional<Drift> found = drift_of(kernels, before, now);
      ASSERT_EQ(found.has_value(), row.drift.has_value()) << row.what;
      if (!found) continue;
      EXPECT_NEAR(found->ratio, row.drift->ratio, 1e-12) << row.what;
      EXPECT_NEAR(found->least, row.drift->least, 1e-12) << row.what;
      EXPECT_NEAR(found->most, row.drift->most, 1e-12) << row.what;
      EXPECT_EQ(found->kernels, 2);
      EXPECT_EQ(found->even, row.drift->even) << row.what;
    }
  }
}

/// A profile of a thousand kernels, all in one program. The machine has become slower since.
class MeasureDrift : public testing::Test {
 protected:
  MeasureDrift() {
    machine_.measured_ranks = 1;
    std::vector<Op> steps;
    for (int i = 1; i <= 1000; ++i) {
      steps.push_back(compute_op(fill_of(4 * i)));
      machine_.kernels[fill_of(4 * i).key()] = measured(1e-3 * i);
    }
    programs_ = programs_of({steps});
  }

  std::optional<Drift> look() {
    return measure_drift(programs_, machine_, 1, [this](const ProfileRequest& request) {
      ++calls_;
      asked_ += request.kernels.size();
      EXPECT_EQ(request.ranks, 1);
      EXPECT_EQ(request.drift, 1);
      EXPECT_FALSE(request.device);
      MachineProfile now = machine_;
      for (const Kernel& kernel : request.kernels)
        now.kernels.at(kernel.key()) =
            measured(1.25 * machine_.kernels.at(kernel.key()).median.value);
      return now;
    });
  }

  MachineProfile machine_ = round_machine();
  std::vector<Program> programs_;
  std::size_t calls_ = 0, asked_ = 0;
};

TEST_F(MeasureDrift, MeasuresAFewKernelsOnceAndLeavesTheProfileAsItIs) {
  const Json before = to_json(machine_);
  for (const std::size_t look_number :
       {1U, 2U}) {  // one measurement of drift does not change the next
    const auto drift = look();
    ASSERT_TRUE(drift);
    EXPECT_TRUE(drift->even);
    EXPECT_NEAR(drift->ratio, 1.25, 1e-12);
    EXPECT_EQ(calls_, look_number);
    EXPECT_EQ(asked_, look_number * most_representative_kernels);
  }
  EXPECT_EQ(to_json(machine_), before);
}

TEST_F(MeasureDrift, AsksNothingWhereTheProfileSaysNothing) {
  machine_.measured_ranks = 2;
  EXPECT_FALSE(look()) << "the profile was measured with another number of ranks";
  machine_.measured_ranks = 1;
  machine_.kernels = {{fill_of(8000).key(), measured(1)}};
  EXPECT_FALSE(look()) << "the profile has none of the programs' kernels";
  EXPECT_EQ(calls_, 0);
}

}  // namespace
}  // namespace stratplan
