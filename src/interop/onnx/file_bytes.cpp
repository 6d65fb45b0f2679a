#include "interop/onnx/file_bytes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/base/system/regular_file.hpp"

namespace stratplan::interop {
namespace {

struct Opened {
  int descriptor = -1;
  struct stat status {};

  bool is_regular() const { return S_ISREG(status.st_mode); }
};

/// Opens a file without waiting for the other end of a pipe. Returns nothing, with errno set, if it
/// cannot be opened.
std::optional<Opened> open_file(const std::string& file, int flags) {
  Opened opened;
  opened.descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
  if (opened.descriptor < 0) return {};
  if (::fstat(opened.descriptor, &opened.status) == 0) return opened;
  ::close(opened.descriptor);
  return {};
}

}  // namespace

FileBytes::FileBytes(const std::string& file) : file_(file) {
  expect_regular_file(file);
  const auto opened = open_file(file, 0);
  if (!opened) throw InputError(file, "", "can not be opened");
  descriptor_ = opened->descriptor;
  size_ = opened->is_regular() ? opened->status.st_size : 0;
}

FileBytes::FileBytes(const std::string& file, const std::string& what) : file_(file) {
  const auto opened = open_file(file, O_NOFOLLOW);
  if (!opened) throw InputError(file, "", what + ": " + std::strerror(errno));
  if (!opened->is_regular() || opened->status.st_nlink != 1) {
    ::close(opened->descriptor);
    throw InputError(file, "", what + ": expected a regular file without other hard links");
  }
  descriptor_ = opened->descriptor;
  size_ = opened->status.st_size;
}

FileBytes::~FileBytes() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileBytes::read(std::int64_t offset, std::int64_t bytes, void* to) const {
  SP_ASSERT(offset >= 0 && bytes >= 0 && bytes <= size_ - offset, "offset={} bytes={} size={}",
            offset, bytes, size_);
  for (std::int64_t done = 0; done < bytes;) {
    const std::int64_t got = ::pread(descriptor_, static_cast<char*>(to) + done,
                                     static_cast<std::size_t>(bytes - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw InputError(file_, "", "the file can not be read to its end");
    done += got;
  }
}

}  // namespace stratplan::interop
