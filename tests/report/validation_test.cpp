// The figures of a validation, by hand.
#include "report/validation.hpp"

#include <gtest/gtest.h>

#include "model/network/network.hpp"

namespace stratplan {
namespace {

/// A case of a network on two ranks, with a range of 10 % to either side.
ValidatedCase a_case(const std::string& network, const std::string& plan, double predicted,
                     double measured, std::vector<Seconds> rounds = {}) {
  ValidationCase of;
  of.file = "cases.json";
  of.name = network + "-" + plan;
  of.network = network;
  of.overrides.batch = 4;
  of.ranks = 2;
  of.plan = plan;
  of.measured = Seconds{measured};  // so that no file of timings is read
  ValidatedCase one{of};
  one.planned.plan.prediction = Prediction{
      {predicted}, {}, Certainty{Tier::Measured, {predicted * 0.9, predicted * 1.1}, {}}};
  one.measured.median = {measured};
  one.measured.rounds = std::move(rounds);
  return one;
}

std::vector<const ValidatedCase*> pointers(const std::vector<ValidatedCase>& cases) {
  std::vector<const ValidatedCase*> result;
  for (const ValidatedCase& one : cases) result.push_back(&one);
  return result;
}

TEST(Validation, SummaryOfCases) {
  const std::vector<ValidatedCase> cases{
      a_case("a", "N2", 1.0, 1.0),                  // exact
      a_case("a", "H2", 1.1, 1.25),                 // -12 %, outside of its range
      a_case("a", "F2", 1.05, 1.5),                 // -30 %, and in the wrong order against H2
      a_case("b", "N2", 2.2, 2.0, {{1.9}, {2.1}}),  // +10 %
      a_case("b", "H2", 2.0, 2.05)};                // its step lies between N2's rounds: no pair
  const ValidationSummary summary = summary_of(pointers(cases));
  EXPECT_EQ(summary.cases, 5U);
  EXPECT_NEAR(summary.mean_error, (0 + 0.12 + 0.3 + 0.1 + 1 - 2 / 2.05) / 5, 1e-12);
  EXPECT_NEAR(summary.worst_error, -0.3, 1e-12);
  EXPECT_EQ(summary.worst, "a-F2");
  EXPECT_EQ(summary.in_range, 3U);
  EXPECT_NEAR(summary.median_width, 1.1 / 0.9, 1e-12);
  EXPECT_EQ(summary.pairs, 3U);
  EXPECT_EQ(summary.in_order, 2U);
}

TEST(Validation, RegretOfGroups) {
  const std::vector<ValidatedCase> cases{a_case("a", "N2", 1.0, 1.2), a_case("a", "H2", 1.1, 1.0),
                                         a_case("b", "N2", 1.0, 1.0), a_case("b", "H2", 2.0, 3.0),
                                         a_case("alone", "H2", 2.0, 3.0)};
  const std::vector<GroupRegret> regrets = regrets_of(pointers(cases));
  ASSERT_EQ(regrets.size(), 2U);
  EXPECT_NEAR(regrets[0].regret, 0.2, 1e-12);
  EXPECT_EQ(regrets[0].predicted, "N2");
  EXPECT_EQ(regrets[0].measured, "H2");
  EXPECT_EQ(regrets[1].regret, 0);
}

TEST(Validation, OnePlanMeasuredTwiceIsNoChoice) {
  const std::vector<ValidatedCase> cases{a_case("a", "N2", 1.0, 1.2), a_case("a", "N2", 1.0, 1.0)};
  EXPECT_EQ(summary_of(pointers(cases)).pairs, 0U);
  EXPECT_TRUE(regrets_of(pointers(cases)).empty());
}

TEST(Validation, ReportsNameTheWorstFirst) {
  ValidationResult result;
  result.cases = {a_case("a", "N2", 1.0, 1.0), a_case("a", "H2", 1.1, 1.25)};
  result.cases.push_back(result.cases.back());
  result.cases.back().failure = "it has none";
  const std::string text = validation_report(result);
  EXPECT_LT(text.find("| a-H2 |"), text.find("| a-N2 |"));
  EXPECT_NE(text.find("- a-H2: it has none"), std::string::npos);
  EXPECT_NE(text.find("`stratplan validate cases.json --only a-N2`"), std::string::npos);
  const std::string csv = validation_csv(result);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
}

TEST(Validation, NothingIsNoFigure) {
  const ValidationSummary summary = summary_of({});
  EXPECT_EQ(summary.cases, 0U);
  EXPECT_EQ(summary.pairs, 0U);
  EXPECT_TRUE(regrets_of({}).empty());
  EXPECT_NE(validation_chart({}).find("<svg"), std::string::npos);
}

}  // namespace
}  // namespace stratplan
