#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>

#include "model/base/json.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan {
namespace {

using test::message_of;
using test::TemporaryFolder;
using testing::HasSubstr;

std::string contents_of(const std::string& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(WriteFileAtomically, ReplacesTheFileAndLeavesNothingElse) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.json", "first");
  write_file_atomically(folder / "a.json", "second");
  EXPECT_EQ(contents_of(folder / "a.json"), "second");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(WriteFileAtomically, MakesMissingFolders) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "x/y/a.json", "deep");
  EXPECT_EQ(contents_of(folder / "x/y/a.json"), "deep");
}

/// Files beyond this many bytes cannot be written while it lives: what a full disk looks like to a program.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
};

TEST(WriteFileAtomically, KeepsTheOldFileIfTheNewOneDoesNotFit) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.json", "old");
  std::string message;
  {
    const FileSizeLimit limit(1000);
    message = message_of<EnvironmentError>(
        [&] { write_file_atomically(folder / "a.json", std::string(100000, 'x')); });
  }
  EXPECT_THAT(message, HasSubstr("a.json: cannot be written: File too large"));
  EXPECT_EQ(contents_of(folder / "a.json"), "old");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(WriteFileAtomically, SaysWhyAPlaceCannotBeWritten) {
  const TemporaryFolder folder;
  folder.write("file", "");
  EXPECT_THAT(
      message_of<EnvironmentError>([&] { write_file_atomically(folder / "file/a.json", "x"); }),
      HasSubstr("a.json: cannot be written: "));
  EXPECT_THAT(
      message_of<EnvironmentError>([&] { write_file_atomically("/proc/stratplan/a.json", "x"); }),
      HasSubstr("a.json: cannot be written: "));
  EXPECT_THAT(message_of<EnvironmentError>([&] { write_file_atomically(folder.path(), "x"); }),
              HasSubstr("cannot be written: Is a directory"));
  EXPECT_EQ(folder.entries(), 1);
}

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

/// Sets an environment variable (or removes it) for a test's time.
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
