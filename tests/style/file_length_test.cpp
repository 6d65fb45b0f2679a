// A file fits in a reader's head.
#include <gtest/gtest.h>

#include <map>

#include "style/source_files.hpp"

namespace stratplan::style {
namespace {

constexpr std::size_t limit = 500;

/// Files that are longer, and how long they may be. Shorten a file and its entry must follow: this table only shrinks.
const std::map<std::string, std::size_t> ratchet{};

TEST(FileLength, IsBelowTheLimitOrOnTheRatchet) {
  std::size_t files = 0;
  for (const char* folder : {"src", "tests"}) {
    for (const SourceFile& file : sources_below(folder, {".hpp", ".cpp", ".cu", ".cuh", ".sh", ".cmake"})) {
      ++files;
      const auto entry = ratchet.find(file.path);
      if (entry == ratchet.end()) {
        EXPECT_LE(file.lines.size(), limit) << file.path;
      } else {
        EXPECT_EQ(file.lines.size(), entry->second) << file.path << ": the ratchet holds the exact length";
      }
    }
  }
  EXPECT_GT(files, 50) << "the working folder is not the project's root?";
}

TEST(FileLength, TheRatchetNamesOnlyFilesThatNeedIt) {
  for (const auto& [path, length] : ratchet) {
    EXPECT_TRUE(std::filesystem::exists(path)) << path;
    EXPECT_GT(length, limit) << path;
  }
}

TEST(Headers, HaveAGuardInTheFirstLine) {
  for (const SourceFile& file : sources_below("src", {".hpp", ".cuh"})) {
    ASSERT_FALSE(file.lines.empty()) << file.path;
    EXPECT_EQ(file.lines.front(), "#pragma once") << file.path;
  }
}

}  // namespace
}  // namespace stratplan::style
