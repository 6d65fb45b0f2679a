#include "runtime/io/input_file.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "model/base/error.hpp"
#include "model/base/system/regular_file.hpp"

namespace stratplan {
namespace {

/// Opens without blocking. A FIFO could replace the file after the check, and a blocking open would
/// wait for the FIFO's writer.
int open_for_reading(const std::string& path) {
  expect_regular_file(path);
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    throw InputError(path, "", fmt::format("can not be opened: {}", std::strerror(errno)));
  return descriptor;
}

bool same(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

InputFile::InputFile(const std::string& path) : InputFile(path, open_for_reading(path)) {
  owned_ = true;
  if (!S_ISREG(opened_.st_mode)) throw InputError(path, "", "expected a regular file");
}

InputFile::InputFile(const std::string& path, int descriptor)
    : path_(path), descriptor_(descriptor), owned_(false), opened_(look()) {}

InputFile::~InputFile() {
  if (owned_) ::close(descriptor_);
}

void InputFile::check_unchanged() const {
  const struct stat now = look();
  if (now.st_size != opened_.st_size)
    throw InputError(path_, "",
                     fmt::format("changed while it was in use: it ends at byte {}, and ended at "
                                 "byte {} when it was opened",
                                 now.st_size, opened_.st_size));
  if (!same(now.st_mtim, opened_.st_mtim))
    throw InputError(path_, "",
                     fmt::format("changed while it was in use: it was modified at "
                                 "{1:%Y-%m-%dT%H:%M:%SZ}, so any of its {0} bytes may differ",
                                 now.st_size, fmt::gmtime(now.st_mtim.tv_sec)));
}

struct stat InputFile::look() const {
  struct stat found {};
  if (::fstat(descriptor_, &found) != 0)
    throw InputError(path_, "", fmt::format("can not be read: {}", std::strerror(errno)));
  return found;
}

}  // namespace stratplan
