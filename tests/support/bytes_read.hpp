#pragma once
// The bytes that this process reads from files, as Linux counts them.
#include <cstdint>
#include <fstream>
#include <string>

namespace stratplan::test {

/// Returns the bytes that system calls of this process have read so far, or -1 if /proc/self/io is
/// missing.
inline std::int64_t bytes_read() {
  std::ifstream io("/proc/self/io");
  std::string key;
  std::int64_t value = -1;
  while (io >> key >> value)
    if (key == "rchar:") return value;
  return -1;
}

/// Returns the bytes that a call reads, without those of reading the counter.
template <class Call>
std::int64_t bytes_read_by(Call&& call) {
  const std::int64_t before = bytes_read(), asking = bytes_read() - before, begin = bytes_read();
  call();
  return bytes_read() - begin - asking;
}

}  // namespace stratplan::test
