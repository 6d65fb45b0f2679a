#pragma once
// The rate at which one reader gets the files of a data set from storage and from the page cache.
#include <cstdint>
#include <string>

#include "model/base/units.hpp"

namespace stratplan {

/// One pass over the files of a data set.
struct ReadRate {
  std::int64_t files = 0;
  Bytes bytes{};
  Seconds opening{};  ///< total time to open the files
  Seconds reading{};  ///< total time to read them
  double bytes_per_s() const { return static_cast<double>(bytes.value) / reading.value; }
  Seconds per_file() const { return opening / static_cast<double>(files); }
};

struct ReadRates {
  ReadRate storage;  ///< after the kernel was asked to drop the files from its page cache
  ReadRate memory;   ///< right afterwards
};

/// Reads a file, or all regular files in a folder in the order of their paths, twice with one
/// thread. Stops at `most` bytes. The first pass reads from storage only if the kernel drops the
/// files, which it does not while they are mapped or not yet written. Throws InputError if there is
/// no file, if all files are empty, or if a file cannot be read.
ReadRates measure_read_rates(const std::string& path, Bytes most);

}  // namespace stratplan
