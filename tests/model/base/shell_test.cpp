#include "model/base/system/shell.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <cstdio>
#include <vector>

#include "support/message_of.hpp"

namespace stratplan {
namespace {

using testing::HasSubstr;

TEST(ShellWord, QuotesWhatIsNotPlain) {
  struct Row {
    std::string word, quoted;
  };
  const Row rows[] = {{"cluster.json", "cluster.json"},
                      {"/opt/a-b_c/x@2:1,3+4%", "/opt/a-b_c/x@2:1,3+4%"},
                      {"", "''"},
                      {"a b", "'a b'"},
                      {"it's", "'it'\\''s'"},
                      {"'", "''\\'''"},
                      {"$(touch pwned)", "'$(touch pwned)'"},
                      {"`id`", "'`id`'"},
                      {"\"; id; \"", "'\"; id; \"'"},
                      {"~root", "'~root'"},
                      {"a=b", "'a=b'"},
                      {"\\", "'\\'"},
                      {"sch\u00f6n", "'sch\u00f6n'"}};
  for (const Row& row : rows) EXPECT_EQ(shell_word(row.word), row.quoted) << row.word;
}

TEST(ShellWord, RefusesControlCharactersAndShowsThemEscaped) {
  for (int c = 0; c < 256; ++c) {
    const std::string word = std::string("a") + static_cast<char>(c);
    const bool refused = c < 0x20 || c == 0x7f;
    EXPECT_EQ(test::message_of<UsageError>([&] { shell_word(word); }) != "no exception", refused)
        << c;
  }
  EXPECT_THAT(test::message_of<UsageError>([] { shell_word("a\n\x1b]0;b"); }),
              HasSubstr("found \"a\\x0a\\x1b]0;b\""));
}

/// Returns the words that bash parses from a line, each ended by a NUL.
std::string read_by_bash(const std::string& line) {
  // The line reaches bash in a variable, so nothing else quotes it.
  ::setenv("LINE", ("printf '%s\\0' " + line).c_str(), 1);
  std::FILE* pipe = ::popen("exec bash -c \"$LINE\"", "r");
  if (pipe == nullptr) return "no bash";
  std::string words;
  std::array<char, 4096> piece{};
  while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), pipe))
    words.append(piece.data(), got);
  ::pclose(pipe);
  return words;
}

TEST(ShellLine, BashReadsBackTheVeryBytes) {
  const auto byte =
      rc::gen::map(rc::gen::oneOf(rc::gen::elementOf(std::string("'\"\\$`(){}[];&|<>*?~#! =-abc")),
                                  rc::gen::cast<char>(rc::gen::inRange(0x20, 0x100))),
                   [](char c) { return c == 0x7f ? ' ' : c; });
  const auto word = rc::gen::container<std::string>(byte);
  rc::check("a line of words", [&] {
    const auto words = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(word));
    std::string expected;
    for (const std::string& each : words) expected += each + '\0';
    RC_ASSERT(read_by_bash(shell_line(words)) == expected);
  });
}

}  // namespace
}  // namespace stratplan
