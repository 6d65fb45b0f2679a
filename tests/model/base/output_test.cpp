#include "model/base/system/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <vector>

#include "model/base/message.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan::output_test {
namespace {

namespace fs = std::filesystem;
using test::message_of;
using test::TemporaryFolder;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

std::string contents_of(const fs::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Sets the action of a signal until the end of the scope.
class Disposition {
 public:
  Disposition(int signal, void (*handler)(int))
      : signal_(signal), before_(std::signal(signal, handler)) {}
  ~Disposition() { std::signal(signal_, before_); }

 private:
  int signal_;
  void (*before_)(int);
};

void make_socket(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.native().size(), sizeof address.sun_path);
  std::strcpy(address.sun_path, path.c_str());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(socket);
}

// ---------------------------------------------------------------- what lies at the path

/// A file `out` is written. `lands_in`: the file that then holds the contents.
struct FileCase {
  const char* name;
  std::function<void(const TemporaryFolder&)> prepare;
  const char* lands_in;
  std::ptrdiff_t entries;  ///< number of files in the folder afterwards, so nothing else is left
};

class WrittenFile : public testing::TestWithParam<FileCase> {};

TEST_P(WrittenFile, IsWholeAndInItsPlace) {
  const TemporaryFolder folder;
  GetParam().prepare(folder);
  const bool was_link = fs::is_symlink(folder / "out");
  for (const char* contents : {"first", "second"}) {
    write_file_atomically(folder / "out", contents);
    EXPECT_EQ(contents_of(folder / GetParam().lands_in), contents);
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder / GetParam().lands_in)));
  }
  EXPECT_EQ(fs::is_symlink(folder / "out"), was_link);
  EXPECT_EQ(folder.entries(), GetParam().entries);
}

const std::vector<FileCase> file_cases{
    // name, files there before, file that is written, entries
    {"Nothing", [](const TemporaryFolder&) {}, "out", 1},
    {"File", [](const TemporaryFolder& in) { in.write("out", "old and longer"); }, "out", 1},
    {"Link",
     [](const TemporaryFolder& in) {
       in.write("file", "old");
       fs::create_symlink("file", in / "out");
     },
     "file", 2},
    {"DanglingLink", [](const TemporaryFolder& in) { fs::create_symlink("new", in / "out"); },
     "new", 2},
    {"LinkToALink",
     [](const TemporaryFolder& in) {
       fs::create_symlink("new", in / "middle");
       fs::create_symlink(in / "middle", in / "out");
     },
     "new", 3},
    {"LinkIntoAFolder",
     [](const TemporaryFolder& in) {
       fs::create_directories(in / "real/below");
       fs::create_directory_symlink("real/below", in / "folder");
       fs::create_symlink("folder/../new", in / "out");
     },
     "real/new", 3},
    // The temporary file takes no existing name, and follows no prepared link.
    {"TakenNames",
     [](const TemporaryFolder& in) {
       in.write(fmt::format("out.{}.0.tmp", ::getpid()), "mine");
       fs::create_symlink("victim", in / fmt::format("out.{}.1.tmp", ::getpid()));
     },
     "out", 3},
};
INSTANTIATE_TEST_SUITE_P(OutputFile, WrittenFile, testing::ValuesIn(file_cases),
                         [](const auto& one) { return one.param.name; });

struct RefusedCase {
  const char* name;
  std::function<void(const TemporaryFolder&)> prepare;
  std::string path;  ///< below the folder
  const char* reason;
};

class RefusedOutput : public testing::TestWithParam<RefusedCase> {};

TEST_P(RefusedOutput, SaysWhyBeforeAndWhenItIsWritten) {
  const TemporaryFolder folder;
  GetParam().prepare(folder);
  const fs::path path = folder / GetParam().path;
  const std::ptrdiff_t entries = folder.entries();
  const auto says_why = AllOf(HasSubstr(std::string(path.c_str()) + ": cannot be written: "),
                              HasSubstr(GetParam().reason));
  EXPECT_THAT(message_of<EnvironmentError>([&] { write_file_atomically(path, "x"); }), says_why);
  if (GetParam().name != std::string("LonelyFifo")) {
    EXPECT_THAT(message_of<EnvironmentError>([&] { check_writable(path); }), says_why);
  }
  EXPECT_EQ(folder.entries(), entries);
}

const std::vector<RefusedCase> refused_cases{
    // name              what is there                                       path            reason
    {"Folder", [](const TemporaryFolder& in) { fs::create_directory(in / "out"); }, "out",
     "Is a directory"},
    {"LinkToAFolder", [](const TemporaryFolder& in) { fs::create_symlink(".", in / "out"); }, "out",
     "Is a directory"},
    {"Socket", [](const TemporaryFolder& in) { make_socket(in / "out"); }, "out", "Is a socket"},
    {"LonelyFifo", [](const TemporaryFolder& in) { ::mkfifo((in / "out").c_str(), 0600); }, "out",
     "no process reads from it"},
    {"LinksInARing", [](const TemporaryFolder& in) { fs::create_symlink("out", in / "out"); },
     "out", "Too many levels of symbolic links"},
    {"NoParent", [](const TemporaryFolder&) {}, "typo/out", "there is no folder"},
    {"LinkWithoutParent",
     [](const TemporaryFolder& in) { fs::create_symlink("typo/new", in / "out"); }, "out",
     "there is no folder"},
    {"FileAsParent", [](const TemporaryFolder& in) { in.write("file", ""); }, "file/out",
     "Not a directory"},
    {"Nul", [](const TemporaryFolder&) {}, std::string("out\0more", 8), "NUL"},
};
INSTANTIATE_TEST_SUITE_P(OutputFile, RefusedOutput, testing::ValuesIn(refused_cases),
                         [](const auto& one) { return one.param.name; });

TEST(OutputFile, GoesThroughAFifoToItsReader) {
  const TemporaryFolder folder;
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  fs::create_symlink("fifo", folder / "link");
  const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  check_writable(folder / "link");
  write_file_atomically(folder / "link", "through");
  std::array<char, 16> received{};
  EXPECT_EQ(::read(reader, received.data(), received.size()), 7);
  EXPECT_STREQ(received.data(), "through");
  EXPECT_TRUE(fs::is_fifo(fifo));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(folder.entries(), 2);
  ::close(reader);
}

TEST(OutputFile, SaysThatAFifosReaderHasGone) {
  const Disposition no_signal(SIGPIPE, SIG_IGN);
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  const int reader = ::open((folder / "fifo").c_str(), O_RDONLY | O_NONBLOCK);
  OutputFile file(folder / "fifo");
  ::close(reader);
  EXPECT_THAT(message_of<EnvironmentError>([&] { file.write("x", 1); }),
              HasSubstr("fifo: cannot be written: Broken pipe"));
}

TEST(OutputFile, GoesThroughDescriptorsOfThisProcess) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const TemporaryFolder folder;
  const std::string name = fmt::format("/dev/fd/{}", pipe[1]);
  fs::create_symlink(name, folder / "link");
  check_writable(name);
  write_file_atomically(name, "a");
  write_file_atomically(folder / "link", "b");
  std::array<char, 4> received{};
  EXPECT_EQ(::read(pipe[0], received.data(), received.size()), 2);
  EXPECT_STREQ(received.data(), "ab");
  ::close(pipe[0]);
  ::close(pipe[1]);
  EXPECT_THAT(message_of<EnvironmentError>([&] { write_file_atomically(name, "c"); }),
              HasSubstr("Bad file descriptor"));
}

TEST(OutputFile, LeavesNothingUnlessItIsCompleted) {
  const TemporaryFolder folder;
  folder.write("old", "old");
  for (const char* name : {"old", "new"}) {
    OutputFile file(folder / name);
    file.write("half", 4);
  }
  EXPECT_EQ(contents_of(folder / "old"), "old");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(OutputFile, GrowsBehindItsCompletion) {
  const TemporaryFolder folder;
  OutputFile file(folder / "curve");
  file.write("a", 1);
  file.complete();
  file.write("b", 1);
  EXPECT_EQ(contents_of(folder / "curve"), "ab");
}

TEST(OutputFile, IsGatheredInAFileUnlessItGoesThrough) {
  const TemporaryFolder folder;
  OutputFile file(folder / "set");
  std::ofstream(file.gathered_in()) << "by name";
  file.complete();
  EXPECT_EQ(contents_of(folder / "set"), "by name");
  OutputFile device("/dev/null");
  EXPECT_THAT(message_of<EnvironmentError>([&] { device.gathered_in(); }),
              HasSubstr("/dev/null: cannot be written: this format needs a regular file"));
}

/// While it lives, writing beyond this many bytes of a file fails, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
  Disposition no_signal_{SIGXFSZ, SIG_IGN};
};

TEST(OutputFile, KeepsTheOldFileIfTheNewOneDoesNotFit) {
  const TemporaryFolder folder;
  folder.write("a.json", "old");
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

TEST(CheckWritable, LeavesNoTrace) {
  const TemporaryFolder folder;
  folder.write("out", "old");
  folder.write("out.probe", "the user's own");
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  for (const char* name : {"out", "new", "fifo"}) check_writable(folder / name);
  EXPECT_EQ(contents_of(folder / "out"), "old");
  EXPECT_EQ(contents_of(folder / "out.probe"), "the user's own");
  EXPECT_EQ(folder.entries(), 3);
}

// ---------------------------------------------------------------- folders

TEST(MakeFolder, MakesOneFolderBelowAnother) {
  const TemporaryFolder folder;
  for (int time = 0; time < 2; ++time) make_folder(folder / "a");
  make_folder(folder / "a/b/");
  EXPECT_TRUE(fs::is_directory(folder / "a/b"));
  fs::create_symlink("a", folder / "link");
  make_folder(folder / "link");
  folder.write("file", "");
  EXPECT_THAT(message_of<EnvironmentError>([&] { make_folder(folder / "typo/c"); }),
              AllOf(HasSubstr("typo/c: cannot be written: there is no folder"), EndsWith("typo")));
  EXPECT_THAT(message_of<EnvironmentError>([&] { make_folder(folder / "file"); }),
              HasSubstr("file: cannot be written: "));
  EXPECT_FALSE(fs::exists(folder / "typo"));
}

TEST(MakeFolders, MakesAllThatAreMissing) {
  const TemporaryFolder folder;
  make_folders(folder / "a/b/c");
  EXPECT_TRUE(fs::is_directory(folder / "a/b/c"));
  EXPECT_THAT(message_of<EnvironmentError>([&] { make_folders("/proc/stratplan/c"); }),
              HasSubstr("/proc/stratplan/c: cannot be written: "));
}

// ---------------------------------------------------------------- names

struct NameCase {
  const char* name;
  std::string expected;  ///< the beginning of the file's name
  bool same;             ///< whether the name is just that
};

TEST(FileNameOf, KeepsGoodNamesAndCleansOthers) {
  const std::vector<NameCase> cases{
      // name, begins with, same
      {"resnet50", "resnet50", true},
      {"a.b_c+D-9", "a.b_c+D-9", true},
      {"", "unnamed-", false},
      {".", "unnamed-", false},
      {"..", "unnamed-", false},
      {"/", "unnamed-", false},
      {"..hidden", "hidden-", false},
      {"-rf", "rf-", false},
      {"../../../tmp/x", "tmp-x-", false},
      {"/abs/x", "abs-x-", false},
      {"a b\n\x1b]0;c", "a-b---0-c-", false},
      {"r\xc3\xa9seau", "r--seau-", false},
  };
  for (const auto& [name, expected, same] : cases) {
    const std::string found = file_name_of(name);
    EXPECT_THAT(found, testing::StartsWith(expected));
    EXPECT_EQ(found == expected, same) << found;
  }
}

RC_GTEST_PROP(FileNameOf, IsOneHarmlessComponentOfAPath, ()) {
  // Names of arbitrary characters, and names that could lead out of a folder.
  const std::string name = *rc::gen::oneOf(
      rc::gen::string<std::string>(),
      rc::gen::container<std::string>(rc::gen::element('.', '/', '-', 'a', '\0', '\n', '~')),
      rc::gen::container<std::string>(300, rc::gen::element('a', '/', '.')));
  const std::string found = file_name_of(name);
  RC_ASSERT(found.size() >= 1u && found.size() <= 100u);
  RC_ASSERT(found.front() != '.' && found.front() != '-');
  for (const char c : found)
    RC_ASSERT(std::isalnum(static_cast<unsigned char>(c)) || std::strchr("._+-", c));
  RC_ASSERT(fs::path(found).filename() == found && !fs::path(found).has_parent_path());
  RC_ASSERT(file_name_of(found) == found);
}

RC_GTEST_PROP(FileNameOf, TellsNamesApart, (const std::string& a, const std::string& b)) {
  RC_ASSERT((file_name_of(a) == file_name_of(b)) == (a == b));
}

// ---------------------------------------------------------------- messages

/// Replaces standard error until the end of the scope.
class StandardError {
 public:
  explicit StandardError(int descriptor) : before_(::dup(STDERR_FILENO)) {
    descriptor < 0 ? ::close(STDERR_FILENO) : ::dup2(descriptor, STDERR_FILENO);
  }
  ~StandardError() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
  }

 private:
  int before_;
};

TEST(WriteMessage, IsLostQuietlyWhereItCannotBeWritten) {
  const Disposition no_signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  {
    const StandardError error(pipe[1]);
    write_message("heard\n");
  }
  std::array<char, 8> received{};
  EXPECT_EQ(::read(pipe[0], received.data(), received.size()), 6);
  EXPECT_STREQ(received.data(), "heard\n");
  ::close(pipe[0]);
  for (const int end : {pipe[1], -1}) {  // first without a reader, then closed
    const StandardError error(end);
    write_message("lost\n");
  }
  ::close(pipe[1]);
}

}  // namespace
}  // namespace stratplan::output_test
