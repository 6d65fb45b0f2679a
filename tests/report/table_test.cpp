#include "report/table.hpp"

#include <gtest/gtest.h>

#include "model/base/text.hpp"

namespace stratplan {
namespace {

const Table table{{{"plan", Table::Align::Left}, {"ms"}},
                  {{"recommended", "9.5"}, {"N2", "12.25"}}};

TEST(Table, AlignsColumnsOfText) {
  EXPECT_EQ(to_text(table),
            "plan            ms\n"
            "-----------  -----\n"
            "recommended    9.5\n"
            "N2           12.25\n");
}

TEST(Table, CountsCharactersNotBytes) {
  const Table wide{{{"a", Table::Align::Left}, {"b"}}, {{"µs", "1"}, {"abc", "2"}}};
  EXPECT_EQ(to_text(wide), "a    b\n---  -\nµs   1\nabc  2\n");
}

TEST(Table, EscapesWhatMarkdownWouldRead) {
  const Table odd{{{"a|b", Table::Align::Left}}, {{"N2 | H2"}, {"*x*"}, {"layer_1"}}};
  EXPECT_EQ(to_markdown(odd), "| a\\|b |\n| :-- |\n| N2 \\| H2 |\n| \\*x\\* |\n| layer\\_1 |\n");
}

TEST(Table, HeadersStandWithoutRows) {
  EXPECT_EQ(to_text({{{"a"}, {"bc"}}, {}}), "a  bc\n-  --\n");
}

TEST(Format, Milliseconds) {
  struct Row {
    double seconds;
    const char* text;
  };
  const Row rows[] = {{0, "0"},           {1.2344e-5, "0.01234"}, {1.2346e-3, "1.235"},
                      {0.12344, "123.4"}, {12.3456, "12346"},     {-0.0025, "-2.500"},
                      {-1e-12, "0"}};
  for (const Row& row : rows) EXPECT_EQ(milliseconds({row.seconds}), row.text) << row.seconds;
}

TEST(Format, ReadableBytes) {
  struct Row {
    std::int64_t bytes;
    const char* text;
  };
  const Row rows[] = {
      {0, "0 B"},         {1023, "1023 B"},       {1024, "1.00 KiB"},
      {1536, "1.50 KiB"}, {325058560, "310 MiB"}, {std::int64_t{5} << 30, "5.00 GiB"}};
  for (const Row& row : rows) EXPECT_EQ(readable({row.bytes}), row.text);
}

TEST(Format, SignedPercent) {
  EXPECT_EQ(signed_percent(0.0314), "+3.1 %");
  EXPECT_EQ(signed_percent(-0.2), "-20.0 %");
  EXPECT_EQ(signed_percent(-1e-9), "+0.0 %");
}

}  // namespace
}  // namespace stratplan
