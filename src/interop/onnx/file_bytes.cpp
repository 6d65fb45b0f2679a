#include "interop/onnx/file_bytes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"

namespace stratplan::interop {
namespace {

/// Returns pread(), or read() for a negative offset, repeated while signals interrupt it.
std::int64_t read_some(int descriptor, void* to, std::size_t bytes, std::int64_t offset) {
  for (;;) {
    const auto got =
        offset < 0 ? ::read(descriptor, to, bytes) : ::pread(descriptor, to, bytes, offset);
    if (got >= 0 || errno != EINTR) return got;
  }
}

}  // namespace

FileBytes::FileBytes(const std::string& file)
    : file_(file), descriptor_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat status {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0)
    throw InputError(file, "", "can not be opened");
  size_ = status.st_size;
  regular_ = S_ISREG(status.st_mode);
  if (!regular_) read_to_end();
}

FileBytes::FileBytes(const std::string& file, const std::string& what)
    : file_(file), descriptor_(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {
  struct stat status {};
  const auto fail = [&](const std::string& why) {
    if (descriptor_ >= 0) ::close(descriptor_);
    throw InputError(file, "", what + ": " + why);
  };
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) fail(std::strerror(errno));
  if (!S_ISREG(status.st_mode) || status.st_nlink != 1)
    fail("expected a regular file without other hard links");
  size_ = status.st_size;
}

FileBytes::~FileBytes() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileBytes::read_to_end() {
  std::array<char, 1 << 16> buffer{};
  for (std::int64_t got = 1; got > 0;) {
    got = read_some(descriptor_, buffer.data(), buffer.size(), -1);
    if (got > 0) contents_.append(buffer.data(), static_cast<std::size_t>(got));
  }
  size_ = std::ssize(contents_);
}

void FileBytes::read(std::int64_t offset, std::int64_t bytes, void* to) const {
  SP_ASSERT(offset >= 0 && bytes >= 0 && bytes <= size_ - offset, "offset={} bytes={} size={}",
            offset, bytes, size_);
  if (!regular_) {
    std::memcpy(to, contents_.data() + offset, static_cast<std::size_t>(bytes));
    return;
  }
  for (std::int64_t done = 0; done < bytes;) {
    const std::int64_t got = read_some(descriptor_, static_cast<char*>(to) + done,
                                       static_cast<std::size_t>(bytes - done), offset + done);
    if (got <= 0) throw InputError(file_, "", "the file can not be read to its end");
    done += got;
  }
}

}  // namespace stratplan::interop
