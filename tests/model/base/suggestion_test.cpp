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
      {"resnet", " (did you mean \"resnet50\" or \"resnet18\"?)"},
      {"50", ""},
      {"NET50", " (did you mean \"resnet50\"?)"},
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
  const std::vector<std::string> links{"edr", "hdr100", "hdr200", "nvlink2"};
  EXPECT_EQ(suggestion("HDR", links), " (did you mean \"hdr100\" or \"hdr200\"?)")
      << "a word that begins others stands for them";
  const std::vector<std::string> many{"conv1", "conv2", "conv3", "conv4", "cond"};
  EXPECT_EQ(suggestion("conv", many), " (did you mean \"conv1\"?)") << "of more than three, one";
  EXPECT_EQ(suggestion("stride", {}), "");
}

}  // namespace
}  // namespace stratplan
