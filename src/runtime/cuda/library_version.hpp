#pragma once
#include <fmt/format.h>

#include <cstddef>
#include <string>

namespace stratplan {

/// Returns for example "9.19.0". `number`: major * 10000 + minor * 100 + patch, as cuDNN and NCCL
/// count their versions.
inline std::string library_version(std::size_t number) {
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

}  // namespace stratplan
