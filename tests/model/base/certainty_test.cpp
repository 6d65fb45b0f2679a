#include "model/base/certainty.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "model/base/json/json.hpp"

namespace stratplan {
namespace {

ErrorSource kernel(const char* name) { return {ErrorKind::Kernel, name}; }
ErrorSource link(const char* name) { return {ErrorKind::Link, name}; }

TEST(Certainty, TiersHaveNames) {
  for (int i = 0; i < tier_count; ++i)
    EXPECT_EQ(tier_of(name_of(static_cast<Tier>(i))), static_cast<Tier>(i));
  EXPECT_EQ(name_of(Tier::DataSheet), "data sheet");
}

TEST(Certainty, ARangeHoldsEightyPercent) {
  const Range range = range_of(10, 0.2);
  EXPECT_NEAR(probability_less(range.high / 10, 0.2), 0.9, 1e-12);
  EXPECT_NEAR(probability_less(range.low / 10, 0.2), 0.1, 1e-12);
  EXPECT_EQ(range_of(10, 0), (Range{10, 10}));
  EXPECT_EQ(range_from(to_json(range)), range);
  EXPECT_TRUE(is_within(10, range));
  EXPECT_FALSE(is_within(100, range));
}

TEST(Certainty, DeviationsAddUpAsSquares) {
  const Sensitivity time{{kernel("a"), {0.5, 0.2}}, {link("x"), {0.5, 0.1}}};
  EXPECT_DOUBLE_EQ(deviation_of(time), std::hypot(0.5 * 0.2, 0.5 * 0.1));
  EXPECT_EQ(deviation_of({}), 0);
}

TEST(Certainty, WhatBothShareCancelsInARatio) {
  struct Row {
    const char* name;
    Sensitivity a, b;
    double deviation;
    ErrorKind largest;
  };
  const Row rows[] = {
      // name, a, b, deviation of a / b, the kind that contributes most
      {"equal", {{kernel("a"), {1, 0.2}}}, {{kernel("a"), {1, 0.2}}}, 0, ErrorKind::Kernel},
      {"apart", {{kernel("a"), {1, 0.3}}}, {{kernel("b"), {1, 0.4}}}, 0.5, ErrorKind::Kernel},
      {"one has a link too",
       {{kernel("a"), {1, 0.3}}},
       {{kernel("a"), {0.5, 0.3}}, {link("x"), {0.5, 0.4}}},
       0.25,
       ErrorKind::Link},
      {"nothing of the other", {{link("x"), {0.5, 0.1}}}, {}, 0.05, ErrorKind::Link},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_NEAR(deviation_of_ratio(row.a, row.b), row.deviation, 1e-12);
    EXPECT_NEAR(deviation_of_ratio(row.b, row.a), row.deviation, 1e-12);
    EXPECT_EQ(largest_error(row.a, row.b), row.largest);
  }
}

TEST(Certainty, ProbabilitiesWithoutErrorsAreCertain) {
  EXPECT_EQ(probability_less(1.1, 0), 1);
  EXPECT_EQ(probability_less(0.9, 0), 0);
  EXPECT_EQ(probability_less(1, 0), 0.5);
  EXPECT_EQ(probability_less(1, 0.3), 0.5);
  EXPECT_NEAR(probability_less(std::exp(0.1), 0.1), 0.8413447, 1e-6);
}

}  // namespace
}  // namespace stratplan
