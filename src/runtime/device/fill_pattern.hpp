#pragma once
// The bytes that a Fill kernel repeats. They depend on the value and on the type, so that back ends
// need not.
#include <array>
#include <cstring>

#include "model/partition/program/kernel.hpp"
#include "runtime/device/float16.hpp"

namespace stratplan {

/// Elements of any type, one after the other.
struct FillPattern {
  std::array<std::byte, 16> bytes{};
  bool is_zero() const { return bytes == std::array<std::byte, 16>{}; }
};

inline FillPattern fill_pattern(const Kernel& kernel) {
  const double value = kernel.as<FillAttributes>().value;
  FillPattern pattern;
  const auto repeat = [&](auto element) {
    for (std::size_t at = 0; at < pattern.bytes.size(); at += sizeof(element))
      std::memcpy(pattern.bytes.data() + at, &element, sizeof(element));
  };
  switch (kernel.type) {
    case DataType::F32: repeat(static_cast<float>(value)); break;
    case DataType::F64: repeat(value); break;
    case DataType::I32: repeat(static_cast<std::int32_t>(value)); break;
    case DataType::F16: repeat(Float16(static_cast<float>(value))); break;
    case DataType::BF16: repeat(Bfloat16(static_cast<float>(value))); break;
  }
  return pattern;
}

}  // namespace stratplan
