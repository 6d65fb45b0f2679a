#include "report/table.hpp"

#include <gtest/gtest.h>

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

TEST(Format, SignedPercent) {
  EXPECT_EQ(signed_percent(0.0314), "+3.1 %");
  EXPECT_EQ(signed_percent(-0.2), "-20.0 %");
  EXPECT_EQ(signed_percent(-1e-9), "+0.0 %");
}

}  // namespace
}  // namespace stratplan
