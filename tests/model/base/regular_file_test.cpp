#include "model/base/system/regular_file.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>

#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan {
namespace {

void make_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::close(descriptor);
}

TEST(ExpectRegularFile, RefusesWhatMayNotEnd) {
  const test::TemporaryFolder folder;
  folder.write("file", "text");
  ::mkfifo((folder / "fifo").c_str(), 0600);
  make_socket(folder / "socket");
  for (const char* name : {"file", "fifo", "nowhere"})
    std::filesystem::create_symlink(folder / name, folder / (std::string(name) + " by link"));
  const struct {
    std::string path;
    std::string says;
  } table[] = {
      {folder / "file", ""},
      {folder / "file by link", ""},
      {folder / "nowhere", ""},
      {folder / "nowhere by link", ""},
      {folder.path(), "expected a file, but this is a folder"},
      {folder / "fifo", "expected a file, but this is a pipe"},
      {folder / "fifo by link", "expected a file, but this is a pipe"},
      {folder / "socket", "expected a file, but this is a socket"},
      {"/dev/zero", "expected a file, but this is a device"},
  };
  for (const auto& row : table)
    EXPECT_EQ(test::message_of([&] { expect_regular_file(row.path); }),
              row.says.empty() ? "no exception" : row.path + ": " + row.says);
}

}  // namespace
}  // namespace stratplan
