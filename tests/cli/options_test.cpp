#include "cli/options.hpp"

#include <gtest/gtest.h>

#include "model/base/error.hpp"

namespace stratplan {
namespace {

TEST(ParseBytes, KnowsDecimalAndBinaryUnits) {
  struct Row {
    const char* text;
    std::int64_t bytes;
  };
  const Row table[] = {{"1B", 1},         {"500MB", 500000000},  {"16GiB", std::int64_t{16} << 30},
                       {"1.5 KiB", 1536}, {"1e9 B", 1000000000}, {"2TB", 2000000000000}};
  for (const Row& row : table) EXPECT_EQ(parse_bytes(row.text).value, row.bytes) << row.text;
}

TEST(ParseBytes, RejectsWhatIsNoAmount) {
  for (const char* text :
       {"", "GiB", "-1GiB", "0B", "16GIB", "1e30B", "nan", "5 5", "0", "40", "1e9 "})
    EXPECT_THROW(parse_bytes(text), UsageError) << text;
}

TEST(ParseExtents, ReadsTwoOrThree) {
  EXPECT_EQ(parse_extents("128,64"), (std::vector<std::int64_t>{128, 64}));
  EXPECT_EQ(parse_extents("16x32x48"), (std::vector<std::int64_t>{16, 32, 48}));
}

TEST(ParseExtents, RejectsWhatIsNoSize) {
  for (const char* text :
       {"", "128", "1,2,3,4", "8,-8", "8,0", "8,", ",8", "8;8", "a,b", "99999999999999999999,1"})
    EXPECT_THROW(parse_extents(text), UsageError) << text;
}

std::vector<ParameterGroup> groups_of(const std::vector<std::string>& texts) {
  OptimizerOptions options;
  options.groups = texts;
  return options.training().groups;
}

TEST(GroupOption, ReadsPatternsAndSettings) {
  const std::vector<ParameterGroup> groups =
      groups_of({"norms,biases:weight-decay=0", "onnx::Conv_1,fc*:learning-rate=0.1,trust=off"});
  ASSERT_EQ(groups.size(), 2);
  EXPECT_EQ(groups[0], (ParameterGroup{.parameters = {"norms", "biases"}, .weight_decay = 0}));
  EXPECT_EQ(groups[1],
            (ParameterGroup{
                .parameters = {"onnx::Conv_1", "fc*"}, .learning_rate = 0.1, .trust = false}));
  EXPECT_EQ(text_of(groups[1]), "onnx::Conv_1,fc*:learning-rate=0.1,trust=off");
}

TEST(GroupOption, RejectsWhatIsNoGroup) {
  for (const char* text :
       {"", "norms", ":weight-decay=0", "norms:", "norms:decay=0", "norms,:weight-decay=0",
        "norms:weight-decay", "norms:weight-decay=", "norms:weight-decay=-1",
        "norms:weight-decay=nan", "norms:weight-decay=1x", "norms:learning-rate=1e999",
        "norms:trust=on", "norms:weight-decay=0,"})
    EXPECT_THROW(groups_of({text}), UsageError) << text;
}

}  // namespace
}  // namespace stratplan
