#include "report/page/line_chart.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace stratplan {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(TickMarks, AreRoundNumbersWithinTheAxis) {
  struct Row {
    double low, high;
    bool logarithmic;
    std::vector<double> marks;
  };
  const Row rows[] = {
      // low, high, logarithmic, marks
      {0, 1, false, {0, 0.2, 0.4, 0.6, 0.8, 1}},
      {0, 1.1, false, {0, 0.2, 0.4, 0.6, 0.8, 1}},
      {3, 47, false, {10, 20, 30, 40}},
      {-1, 1, false, {-1, -0.5, 0, 0.5, 1}},
      {1, 64, true, {1, 2, 5, 10, 20, 50}},
      {0.003, 0.02, true, {0.005, 0.01, 0.02}},
      {1e-6, 1, true, {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1}},
  };
  for (const Row& row : rows) {
    const std::vector<double> marks = tick_marks(row.low, row.high, row.logarithmic);
    ASSERT_EQ(marks.size(), row.marks.size())
        << row.low << " " << row.high << ": " << testing::PrintToString(marks);
    for (std::size_t i = 0; i < marks.size(); ++i)
      EXPECT_NEAR(marks[i], row.marks[i], 1e-9 * row.high);
  }
}

Chart speeds() {
  return {"speed & <size>",
          {.title = "ranks", .logarithmic = true, .marks = {1, 2, 4}},
          {.title = "time of a step, s", .logarithmic = true},
          {{"ideal", {{1, 8}, {2, 4}, {4, 2}}, true},
           {"best", {{1, 8}, {2, 4.5}, {4, 2.5}}, false},
           {"sample", {{1, 8}, {2, 5}}, false}}};
}

Chart efficiencies() {
  return {"efficiency",
          {.title = "ranks", .logarithmic = true, .marks = {1, 2, 4}},
          {.title = "efficiency", .least = 0, .most = 1},
          {{"sample", {{1, 1}, {2, 0.8}}, false}, {"best", {{1, 1}, {2, 0.89}, {4, 0.8}}, false}}};
}

TEST(LineChart, ABandIsShadedBetweenItsEnds) {
  Chart chart = efficiencies();
  const std::string plain = to_svg({chart});
  EXPECT_THAT(plain, Not(HasSubstr("fill-opacity")));
  chart.lines[0].band = {{1, 1}, {0.7, 0.9}};
  const std::string shaded = to_svg({chart});
  EXPECT_THAT(shaded, HasSubstr("fill-opacity"));
  chart.lines[0].band[0].high = 1.5;  // the axis reaches as far as the band
  EXPECT_NE(to_svg({chart}), shaded);
}

/// After an intended change: look at the picture, then copy it from the place that the message
/// names.
TEST(LineChart, IsTheGoldenFile) {
  std::ostringstream golden;
  golden << std::ifstream("tests/golden/line_chart.svg").rdbuf();
  const std::string drawn = to_svg({speeds(), efficiencies()});
  if (drawn != golden.str()) std::ofstream(testing::TempDir() + "line_chart.svg") << drawn;
  EXPECT_EQ(drawn, golden.str()) << "drawn: " << testing::TempDir() << "line_chart.svg";
}

TEST(LineChart, OneNameIsOneColour) {
  const std::string one = to_svg({efficiencies()});
  EXPECT_THAT(one, HasSubstr("<title>sample</title><path d=\"M72.00 40.00"));
  EXPECT_THAT(one, Not(HasSubstr("nan")));
  const std::string both = to_svg({speeds(), efficiencies()});
  const auto colour_of = [](const std::string& svg, std::size_t from, const std::string& name) {
    const std::size_t line = svg.find("<title>" + name + "</title>", from),
                      stroke = svg.find("stroke=\"", line) + 8;
    return svg.substr(stroke, 7);
  };
  const std::size_t second = both.find(">efficiency</text>");
  for (const char* name : {"best", "sample"})
    EXPECT_EQ(colour_of(both, 0, name), colour_of(both, second, name)) << name;
  EXPECT_NE(colour_of(both, 0, "best"), colour_of(both, 0, "sample"));
}

TEST(LineChart, StandsWithoutPoints) {
  for (const bool logarithmic : {false, true}) {
    Chart empty{"nothing",
                {.title = "x", .logarithmic = logarithmic},
                {.title = "y", .logarithmic = logarithmic},
                {}};
    EXPECT_THAT(to_svg({empty}),
                testing::AllOf(HasSubstr("nothing"), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
    empty.lines = {{"one point", {{3, 5}}, false}};
    EXPECT_THAT(to_svg({empty}), testing::AllOf(HasSubstr("one point"), Not(HasSubstr("nan")),
                                                Not(HasSubstr("inf"))));
  }
}

}  // namespace
}  // namespace stratplan
