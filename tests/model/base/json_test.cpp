#include "model/base/json/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan {
namespace {

using test::message_of;
using test::TemporaryFolder;
using testing::HasSubstr;

TEST(ReadJsonFile, ReadsWhatIsThereInItsOrder) {
  const TemporaryFolder folder;
  const Json json = read_json_file(
      folder.write("a.json", R"({"z": 1, "a": [1.5, true, null], "m": {"k": "\u00e9"}})"));
  EXPECT_EQ(json.dump(), R"({"z":1,"a":[1.5,true,null],"m":{"k":"é"}})");
}

struct BadText {
  const char* name;
  std::string text;
  const char* says;
};

TEST(ReadJsonFile, SaysWhereBadTextIsWrong) {
  const std::string deep(65, '[');
  const BadText table[] = {
      {"empty", "", "line 1, column 1: the file ends too early"},
      {"truncated", "{\"a\": [1,\n 2", "line 2, column 3: the file ends too early"},
      {"trailing comma", "{\"a\": 1,\n \"b\": [2, ]}",
       "line 2, column 11: not JSON: unexpected ']'"},
      {"NaN", "{\"a\": NaN}", "line 1, column 7: not JSON"},
      {"two documents", "{}\n{}", "line 2, column 1: not JSON"},
      {"duplicate key", R"({"a": {"b": 1, "c": 2, "b": 3}})",
       "the key \"b\" is given twice in one object"},
      {"too deep", deep + std::string(65, ']'), "at most 64 levels of nesting"},
      {"too large", "[1e999]", "not JSON: number overflow parsing '1e999'"},
      {"too large an integer", "[9223372036854775808]",
       "the integer 9223372036854775808 is too large"},
      {"not UTF-8", "[\"\xff\"]", "not JSON"},
  };
  const TemporaryFolder folder;
  for (const BadText& row : table) {
    const std::string path = folder.write("bad.json", row.text);
    const std::string message = message_of<InputError>([&] { read_json_file(path); });
    EXPECT_THAT(message, HasSubstr(path + ": ")) << row.name;
    EXPECT_THAT(message, HasSubstr(row.says)) << row.name;
    EXPECT_THAT(message, Not(HasSubstr("json.exception"))) << row.name;
  }
}

TEST(ReadJsonFile, AllowsAsManyLevelsAsItSaysAndEqualKeysOfDifferentObjects) {
  const TemporaryFolder folder;
  EXPECT_NO_THROW(
      read_json_file(folder.write("deep.json", std::string(64, '[') + std::string(64, ']'))));
  EXPECT_NO_THROW(read_json_file(folder.write("keys.json", R"({"a": {"a": 1}, "b": {"a": 1}})")));
}

TEST(ReadJsonFile, SaysWhyThereIsNothingToRead) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of([&] { read_json_file(folder / "missing.json"); }),
            folder / "missing.json" + ": cannot be read: No such file or directory");
  EXPECT_EQ(message_of([&] { read_json_file(folder.path().string()); }),
            folder.path().string() + ": expected a file, but this is a folder");
}

TEST(FingerprintOf, IsFnv1a) {
  // Test vectors of the algorithm's authors (isthe.com/chongo/tech/comp/fnv).
  EXPECT_EQ(fingerprint_of(""), "cbf29ce484222325");
  EXPECT_EQ(fingerprint_of("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(fingerprint_of("foobar"), "85944171f73967e8");
}

}  // namespace
}  // namespace stratplan
