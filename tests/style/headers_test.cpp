// Rules for every header.
#include <gtest/gtest.h>

#include "style/source_files.hpp"

namespace stratplan::style {
namespace {

TEST(Headers, HaveAGuardInTheFirstLine) {
  for (const SourceFile& file : sources_below("src", {".hpp", ".cuh"})) {
    ASSERT_FALSE(file.lines.empty()) << file.path;
    EXPECT_EQ(file.lines.front(), "#pragma once") << file.path;
  }
}

}  // namespace
}  // namespace stratplan::style
