#include "report/choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/small_cases.hpp"

namespace stratplan::choice_test {
namespace {

using testing::HasSubstr;
using testing::Not;

Considered considered(const char* name, double seconds) {
  Plan plan;
  plan.network_source = "my net.json";
  plan.ranks = plan.ranks_offered = 8;
  plan.overrides.batch = 32;
  plan.prediction = {{seconds}, {1 << 20}};
  plan.prediction->certainty = {Tier::Calibrated, {seconds / 1.2, seconds * 1.2}, {1e6, 1.1e6}};
  return {name, {}, std::move(plan), {}};
}

PlanningResult tied(std::optional<ErrorKind> doubt) {
  PlanningResult result;
  result.searched = {considered("searched", 0.0155)};
  result.baselines = {considered("sample", 0.016)};
  result.recommended = *result.baselines.front().plan;
  result.chosen = "sample";
  result.tie = {{"searched", "sample"}, doubt};
  return result;
}

TEST(TieText, NamesThePlansAndWhatWouldDecide) {
  struct Row {
    ErrorKind doubt;
    int measured_ranks;
    Tier tier;
    const char* command;
  };
  const Row rows[] = {
      // doubt, measured ranks, tier, command
      {ErrorKind::Kernel, 0, Tier::Calibrated, "stratplan profile 'my net.json' -n 8 -b 32"},
      {ErrorKind::Family, 0, Tier::DataSheet, "stratplan profile 'my net.json' -n 8 -b 32"},
      {ErrorKind::Kernel, 8, Tier::Measured, "stratplan autotune 'my net.json' -n 8 -b 32"},
      {ErrorKind::Link, 0, Tier::Calibrated,
       "mpirun -n 8 stratplan profile --links --ranks-per-node 4 -o links.json"},
      {ErrorKind::Transfer, 8, Tier::Measured, "stratplan autotune 'my net.json' -n 8 -b 32"},
      {ErrorKind::Host, 0, Tier::Calibrated, "stratplan calibrate --from STEPS.csv"},
      {ErrorKind::Input, 0, Tier::Calibrated, "stratplan data rate"},
  };
  for (const Row& row : rows) {
    MachineProfile machine = test::small_machine();
    machine.measured_ranks = row.measured_ranks;
    PlanningResult result = tied(row.doubt);
    result.recommended.prediction->certainty->tier = row.tier;
    EXPECT_EQ(tie_text(result, machine),
              std::string("tie        \"searched\" (15.50 ms, 13-19), \"sample\" (16.00 ms, 13-19) "
                          "cannot be told apart\n           to decide, run on small: ") +
                  row.command + "\n");
  }
}

TEST(TieText, ItsCommandChangesTheNetworkAsThePlanDoes) {
  PlanningResult result = tied(ErrorKind::Kernel);
  result.recommended.overrides.input_size = {64, 96};
  result.recommended.overrides.statistics = "local";
  result.recommended.overrides.freeze = {"conv*"};
  result.recommended.execution.precision.activations = DataType::BF16;
  EXPECT_THAT(tie_text(result, test::small_machine()),
              HasSubstr("stratplan profile 'my net.json' -n 8 -b 32 --input-size 64,96 "
                        "--statistics local --freeze 'conv*' --precision bf16\n"));
}

TEST(TieText, SaysNothingOfWhatNoMeasurementDecides) {
  EXPECT_EQ(tie_text({}, test::small_machine()), "");
  EXPECT_THAT(tie_text(tied({}), test::small_machine()), Not(HasSubstr("to decide")));
}

}  // namespace
}  // namespace stratplan::choice_test
