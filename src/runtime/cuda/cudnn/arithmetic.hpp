#pragma once
// In which types a convolution stores and multiplies. Sums are always taken in fp32.
#include <string_view>

#include "model/network/shape.hpp"

namespace stratplan::cudnn {

enum class Arithmetic : int {
  F32,   ///< fp32 products, without tensor cores
  TF32,  ///< stored as fp32; tensor cores round the factors to 10 bits
  F16,
  BF16,
};
inline constexpr int arithmetic_count = static_cast<int>(Arithmetic::BF16) + 1;

constexpr std::string_view name_of(Arithmetic arithmetic) {
  return std::array<std::string_view, arithmetic_count>{
      "fp32", "tf32", "fp16", "bf16"}[static_cast<std::size_t>(arithmetic)];
}

/// Of the elements in memory.
constexpr DataType storage(Arithmetic arithmetic) {
  return std::array<DataType, arithmetic_count>{
      DataType::F32, DataType::F32, DataType::F16,
      DataType::BF16}[static_cast<std::size_t>(arithmetic)];
}

/// Of numbers stored as `type`: floats as they are to be multiplied, other types say it themselves.
constexpr Arithmetic arithmetic_of(DataType type, Arithmetic floats) {
  return type == DataType::F16    ? Arithmetic::F16
         : type == DataType::BF16 ? Arithmetic::BF16
                                  : floats;
}

/// Tensor cores read 16 bytes of channels at a time: where channels come in no multiple of this,
/// cuDNN copies the tensors into padded ones first.
constexpr std::int64_t channel_multiple(Arithmetic arithmetic) {
  return 16 / size_of(storage(arithmetic));
}

}  // namespace stratplan::cudnn
