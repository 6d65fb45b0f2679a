#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "model/base/json/json.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan {
namespace {

using test::message_of;
using test::TemporaryFolder;
using testing::HasSubstr;

TEST(WriteDocument, WritesWhatReadDocumentReads) {
  const TemporaryFolder folder;
  const Json plan{{"schema_version", 1},
                  {"network", {{"source", "n"}}},
                  {"batch", 3},
                  {"ranks", 2},
                  {"prediction", {{"step_seconds", 0.1 + 0.2}, {"memory_bytes", 1234567890123}}}};
  write_document(folder / "plan.json", "plan", plan);
  EXPECT_EQ(read_document(folder / "plan.json", "plan"), plan);
}

TEST(WriteDocumentDeathTest, TakesAnInvalidDocumentForABug) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const TemporaryFolder folder;
  EXPECT_DEATH(write_document(folder / "plan.json", "plan", Json{{"schema_version", 1}}),
               "internal error.*the key \"network\" is missing");
}

/// Sets an environment variable, or removes it, until the end of the scope.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) {
      before_ = before;
    }
    set(value);
  }
  ~Setting() { set(before_ ? before_->c_str() : nullptr); }

 private:
  void set(const char* value) { value != nullptr ? setenv(name_, value, 1) : unsetenv(name_); }

  const char* name_;
  std::optional<std::string> before_;
};

TEST(CacheFolder, FollowsTheEnvironmentInOrder) {
  const Setting own("STRATPLAN_CACHE_DIR", "/a");
  const Setting xdg("XDG_CACHE_HOME", "/b");
  const Setting home("HOME", "/c");
  EXPECT_EQ(cache_folder(), "/a");
  const Setting no_own("STRATPLAN_CACHE_DIR", "");
  EXPECT_EQ(cache_folder(), "/b/stratplan");
  const Setting no_xdg("XDG_CACHE_HOME", nullptr);
  EXPECT_EQ(cache_folder(), "/c/.cache/stratplan");
  const Setting no_home("HOME", nullptr);
  EXPECT_THAT(message_of<EnvironmentError>([] { cache_folder(); }),
              HasSubstr("STRATPLAN_CACHE_DIR"));
}

TEST(DataFolder, IsTheChosenOneElseTheSources) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "networks");
  const Setting chosen("STRATPLAN_DATA_DIR", folder.path().c_str());
  EXPECT_EQ(data_folder("networks"), folder / "networks");
  EXPECT_TRUE(std::filesystem::exists(data_folder("schemas") / "plan.schema.json"));
  EXPECT_THAT(message_of<EnvironmentError>([] { data_folder("nothing"); }),
              HasSubstr("set STRATPLAN_DATA_DIR"));
}

}  // namespace
}  // namespace stratplan
