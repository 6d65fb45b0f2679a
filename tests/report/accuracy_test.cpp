#include "report/accuracy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stratplan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A result about which the report has nothing to remark.
AutotuneResult quiet_result() {
  AutotuneResult result;
  result.plans.emplace_back();
  Measured& measured = result.plans.front().measured.emplace();
  measured.median = {1};
  measured.rounds = {{1}};
  measured.verification.emplace().passed = true;
  return result;
}

TEST(Remarks, SayWhatDriftDoesToPredictions) {
  AutotuneResult result = quiet_result();
  EXPECT_THAT(remarks(result), IsEmpty());
  result.machine.drift = Drift{.ratio = 1.234, .least = 1.1, .most = 1.306, .kernels = 8};
  EXPECT_THAT(
      remarks(result),
      ElementsAre(
          "Kernels take 1.23 times as long as when the machine was profiled (8 kernels measured "
          "again, ratios from 1.10 to 1.31): predictions are scaled by this ratio."));
  result.machine.drift->even = false;
  EXPECT_THAT(remarks(result),
              ElementsAre(HasSubstr("): the kernels disagree, so predictions are not scaled and "
                                    "may be off by as much.")));
}

}  // namespace
}  // namespace stratplan
