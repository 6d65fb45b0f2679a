#include "model/base/text.hpp"

#include <gtest/gtest.h>

namespace stratplan {
namespace {

TEST(Duration, HasTheUnitInWhichPeopleWait) {
  struct Row {
    double seconds;
    const char* text;
  };
  for (const Row& row : {Row{0.4, "400.0 ms"},
                         {1.54, "1.5 s"},
                         {9.94, "9.9 s"},
                         {40, "40 s"},
                         {119, "119 s"},
                         {121, "2 min"},
                         {1800, "30 min"},
                         {7200, "2.0 h"},
                         {12600, "3.5 h"}})
    EXPECT_EQ(duration({row.seconds}), row.text);
}

TEST(Text, Milliseconds) {
  struct Row {
    double seconds;
    const char* text;
  };
  const Row rows[] = {{0, "0"},           {1.2344e-5, "0.01234"}, {1.2346e-3, "1.235"},
                      {0.12344, "123.4"}, {12.3456, "12346"},     {-0.0025, "-2.500"},
                      {-1e-12, "0"}};
  for (const Row& row : rows) EXPECT_EQ(milliseconds({row.seconds}), row.text) << row.seconds;
}

TEST(Text, ReadableBytes) {
  struct Row {
    std::int64_t bytes;
    const char* text;
  };
  const Row rows[] = {
      {0, "0 B"},         {1023, "1023 B"},       {1024, "1.00 KiB"},
      {1536, "1.50 KiB"}, {325058560, "310 MiB"}, {std::int64_t{5} << 30, "5.00 GiB"}};
  for (const Row& row : rows) EXPECT_EQ(readable({row.bytes}), row.text);
}

TEST(Text, MebibytesAreRoundedUp) {
  EXPECT_EQ(mebibytes({0}), "0 MiB");
  EXPECT_EQ(mebibytes({1 << 20}), "1 MiB");
  EXPECT_EQ(mebibytes({(1 << 20) + 1}), "2 MiB");
}

TEST(Text, LimitsAreExact) {
  struct Row {
    std::int64_t bytes;
    const char* text;
  };
  const Row rows[] = {{40, "40 B"},
                      {400 << 20, "400 MiB"},
                      {500000000, "500 MB"},
                      {std::int64_t{16} << 30, "16 GiB"},
                      {1536 << 20, "1536 MiB"},
                      {16945512449, "15.8 GiB"}};
  for (const Row& row : rows) EXPECT_EQ(exact({row.bytes}), row.text);
}

TEST(Text, OneIsSingular) {
  EXPECT_EQ(counted(0, "sample"), "0 samples");
  EXPECT_EQ(counted(1, "sample"), "1 sample");
  EXPECT_EQ(counted(2, "output position"), "2 output positions");
}

TEST(Text, FirstOfManyNames) {
  EXPECT_EQ(first_of({}), "");
  EXPECT_EQ(first_of({"a", "b", "c", "d", "e"}), "a, b, c, d, e");
  EXPECT_EQ(first_of({"a", "b", "c", "d", "e", "f", "g"}), "a, b, c, d, e and 2 more");
}

}  // namespace
}  // namespace stratplan
