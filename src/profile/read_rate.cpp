#include "profile/read_rate.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "model/base/error.hpp"
#include "profile/measure/clock.hpp"
#include "runtime/io/input_file.hpp"

namespace stratplan {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_at(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  std::ranges::sort(files);
  if (files.empty()) throw InputError(path, "", "expected files, found none");
  return files;
}

/// Reads a file until `rate` counts `most` bytes.
void read_file(const std::string& path, Bytes most, std::vector<char>& buffer, ReadRate& rate) {
  const SteadyClock clock;
  const Seconds begin = clock.now();
  const InputFile file(path);
  const Seconds opened = clock.now();
  rate.opening += opened - begin;
  ++rate.files;
  while (rate.bytes < most) {
    const ssize_t got = ::read(file.descriptor(), buffer.data(), buffer.size());
    if (got < 0)
      throw InputError(path, "", fmt::format("can not be read: {}", std::strerror(errno)));
    if (got == 0) break;
    rate.bytes += Bytes{got};
  }
  rate.reading += clock.now() - opened;
}

ReadRate read_all(const std::vector<std::string>& files, Bytes most) {
  ReadRate rate;
  std::vector<char> buffer(1 << 20);
  for (const std::string& path : files) {
    if (rate.bytes >= most) break;
    read_file(path, most, buffer, rate);
  }
  return rate;
}

/// Asks the kernel to drop a file from its page cache. Pages must be written before.
void drop_from_cache(const std::string& path) {
  const InputFile file(path);
  ::fdatasync(file.descriptor());
  ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
}

}  // namespace

ReadRates measure_read_rates(const std::string& path, Bytes most) {
  const std::vector<std::string> files = files_at(path);
  for (const std::string& file : files) drop_from_cache(file);
  ReadRates rates;
  rates.storage = read_all(files, most);
  if (rates.storage.bytes.value == 0) throw InputError(path, "", "expected data, found none");
  rates.memory = read_all(files, most);
  return rates;
}

}  // namespace stratplan
