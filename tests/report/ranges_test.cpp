#include "report/ranges.hpp"

#include <gtest/gtest.h>

#include "model/base/json/json.hpp"

namespace stratplan {
namespace {

TEST(RangeText, HasAsManyDigitsAsTellItsEndsApart) {
  struct Row {
    Range range;
    const char* text;
  };
  const Row rows[] = {
      // range, text
      {{13.1, 18.9}, "13-19"},
      {{870.2, 944.1}, "870-940"},
      {{0.978, 1.121}, "0.98-1.12"},
      {{15.31, 15.69}, "15.31-15.69"},
      {{0.0105, 0.0131}, "0.0105-0.0131"},
      {{98, 103}, "98-103"},
  };
  for (const Row& row : rows) EXPECT_EQ(range_text(row.range), row.text);
}

TEST(WithRange, NumbersKeepTheirOwnForm) {
  EXPECT_EQ(with_range(Seconds{0.0155}, Range{0.0131, 0.0189}, " ms"), "15.50 ms, 13-19");
  EXPECT_EQ(with_range(Seconds{0.0155}, Range{0.0131, 0.0189}), "15.50, 13-19");
  EXPECT_EQ(with_range(Seconds{0.0155}, std::nullopt, " ms"), "15.50 ms");
  EXPECT_EQ(with_range(Seconds{0.0155}, Range{0.0155, 0.0155}), "15.50");
  EXPECT_EQ(with_range(Bytes{3 << 29}, Range{1.45 * (1 << 30), 1.55 * (1 << 30)}),
            "1.50 GiB, 1.45-1.55");
  EXPECT_EQ(with_range(Bytes{100}, Range{95, 105}), "100 B, 95-105");
  EXPECT_EQ(with_range(1.05, Range{0.981, 1.118}), "1.050, 0.98-1.12");
}

TEST(RatioRange, NeedsTheErrorsOfBoth) {
  Prediction a{{1.0}, {}}, b{{2.0}, {}};
  EXPECT_FALSE(ratio_range(a, b));
  a.errors[{ErrorKind::Device, "d"}] = b.errors[{ErrorKind::Device, "d"}] = {1, 0.5};
  EXPECT_EQ(ratio_range(a, b), (Range{0.5, 0.5}));
}

TEST(PutPrediction, StatesRangesBesideTheirNumbers) {
  Prediction prediction{{0.0155}, {1000}};
  Json document = Json::object();
  put_prediction(document, prediction);
  EXPECT_EQ(document.dump(), R"({"predicted_step_seconds":0.0155,"memory_bytes":1000})");
  prediction.certainty = {Tier::Calibrated, {0.013, 0.019}, {980, 1020}};
  put_prediction(document, prediction);
  EXPECT_EQ(document["predicted_step_seconds_range"], Json({{"low", 0.013}, {"high", 0.019}}));
  EXPECT_EQ(document["memory_bytes_range"], Json({{"low", 980.0}, {"high", 1020.0}}));
  EXPECT_EQ(document["tier"], "calibrated");
}

}  // namespace
}  // namespace stratplan
