#pragma once
// The number types in which a convolution stores and multiplies its operands. Sums are always in
// fp32.
#include <string_view>

#include "model/network/shape.hpp"

namespace stratplan::cudnn {

enum class Arithmetic : int {
  F32,   ///< fp32 products, without tensor cores
  TF32,  ///< stored as fp32; tensor cores round the factors to 10 bits of mantissa
  F16,
  BF16,
};
inline constexpr int arithmetic_count = static_cast<int>(Arithmetic::BF16) + 1;

constexpr std::string_view name_of(Arithmetic arithmetic) {
  return std::array<std::string_view, arithmetic_count>{
      "fp32", "tf32", "fp16", "bf16"}[static_cast<std::size_t>(arithmetic)];
}

/// Returns the type of the elements in memory.
constexpr DataType storage(Arithmetic arithmetic) {
  return std::array<DataType, arithmetic_count>{
      DataType::F32, DataType::F32, DataType::F16,
      DataType::BF16}[static_cast<std::size_t>(arithmetic)];
}

/// Returns the arithmetic for elements of `type`. `floats` (F32 or TF32) is the arithmetic for fp32
/// elements.
constexpr Arithmetic arithmetic_of(DataType type, Arithmetic floats) {
  return type == DataType::F16    ? Arithmetic::F16
         : type == DataType::BF16 ? Arithmetic::BF16
                                  : floats;
}

/// Returns the number of channels in 16 bytes, which tensor cores read at a time. If the channels
/// of a tensor are not a multiple of this number, cuDNN first copies the tensors into padded ones.
constexpr std::int64_t channel_multiple(Arithmetic arithmetic) {
  return 16 / size_of(storage(arithmetic));
}

}  // namespace stratplan::cudnn
