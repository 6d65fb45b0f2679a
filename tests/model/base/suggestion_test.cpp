#include "model/base/suggestion.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace stratplan {
namespace {

TEST(Suggestion, IsTheNearestWordWithinAThirdOfItsLetters) {
  struct Row {
    const char* word;
    const char* expected;
  };
  const std::vector<std::string> known{"kernel", "stride", "padding", "resnet50", "resnet18"};
  const Row table[] = {
      {"strde", " (did you mean \"stride\"?)"},
      {"Stride", " (did you mean \"stride\"?)"},
      {"stride", " (did you mean \"stride\"?)"},
      {"srtide", " (did you mean \"stride\"?)"},
      {"pading", " (did you mean \"padding\"?)"},
      {"resnet5", " (did you mean \"resnet50\"?)"},
      {"resnet", " (did you mean \"resnet50\"?)"},
      {"stroll", ""},
      {"", ""},
      {"quux", ""},
  };
  for (const Row& row : table) {
    EXPECT_EQ(suggestion(row.word, known), row.expected) << row.word;
  }
  const std::vector<std::string> commands{"autotune", "plan", "run"};
  EXPECT_EQ(suggestion("plna", commands), " (did you mean \"plan\"?)")
      << "swapped letters are one error";
  EXPECT_EQ(suggestion("stride", {}), "");
}

}  // namespace
}  // namespace stratplan
