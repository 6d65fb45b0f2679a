#pragma once
// The floating-point types fp16 and bf16, for storage. A bf16 is a float without its last 16 bits.
// Conversion to float is exact, and arithmetic is in float. Conversion from float rounds to
// nearest, ties to even (IEEE 754). Hosts convert in software; CUDA devices have instructions for
// fp16.
//
//            significand   largest   smallest normal
//   fp16     11 bits       65504     2^-14
//   bf16      8 bits       3.4e38    2^-126
#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "model/network/shape.hpp"

namespace stratplan {

/// IEEE 754 binary16.
struct Float16 {
  std::uint16_t bits = 0;

  Float16() = default;
  explicit constexpr Float16(float value) : bits(rounded(value)) {}
  constexpr operator float() const {
#ifdef __CUDA_ARCH__
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#else
    const std::uint32_t sign = (bits & 0x8000U) << 16, exponent = bits >> 10 & 0x1FU,
                        significand = bits & 0x3FFU;
    if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000U | significand << 13);
    if (exponent == 0) return (sign ? -0x1p-24F : 0x1p-24F) * static_cast<float>(significand);
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | significand << 13);
#endif
  }

 private:
  static constexpr std::uint16_t rounded(float value) {
#ifdef __CUDA_ARCH__
    std::uint16_t nearest;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(nearest) : "f"(value));
    return nearest;
#else
    const std::uint32_t all = std::bit_cast<std::uint32_t>(value), magnitude = all & 0x7FFFFFFFU,
                        sign = all >> 16 & 0x8000U;
    const auto with_sign = [&](std::uint32_t rest) {
      return static_cast<std::uint16_t>(sign | rest);
    };
    if (magnitude > 0x7F800000U) return with_sign(0x7E00);  // NaN
    // From 65520 on, half a unit above the largest value, the nearest value is infinity.
    if (magnitude >= 0x477FF000U) return with_sign(0x7C00);
    // Below 2^-14 the spacing of fp16 is 2^-24, like the spacing of floats between 0.5 and 1.
    if (magnitude < 0x38800000U)
      return with_sign(std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
                       0x3F000000U);
    return with_sign((magnitude + 0xFFFU + (magnitude >> 13 & 1U) - (112U << 23)) >> 13);
#endif
  }
};

/// bfloat16, which is the upper half of a float.
struct Bfloat16 {
  std::uint16_t bits = 0;

  Bfloat16() = default;
  explicit constexpr Bfloat16(float value) : bits(rounded(value)) {}
  constexpr operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }

 private:
  static constexpr std::uint16_t rounded(float value) {
    const std::uint32_t all = std::bit_cast<std::uint32_t>(value);
    if ((all & 0x7FFFFFFFU) > 0x7F800000U)
      return static_cast<std::uint16_t>(all >> 16 | 0x40U);  // NaN stays NaN
    return static_cast<std::uint16_t>((all + 0x7FFFU + (all >> 16 & 1U)) >> 16);
  }
};

/// The type in which sums of T are formed. 16-bit types are summed in float, and rounded once.
template <class T>
using Sum = std::conditional_t<sizeof(T) == sizeof(std::uint16_t), float, T>;

/// Returns the value that a float has after it was stored in a narrow type.
inline float nearest(DataType type, float value) {
  return type == DataType::F16 ? float{Float16(value)} : float{Bfloat16(value)};
}

/// widen() and narrow() convert between floats and a narrow type (is_narrow()).
inline void widen(DataType type, const void* from, float* to, std::int64_t count) {
  if (type == DataType::F16)
    std::copy_n(static_cast<const Float16*>(from), count, to);
  else
    std::copy_n(static_cast<const Bfloat16*>(from), count, to);
}
inline void narrow(DataType type, const float* from, void* to, std::int64_t count) {
  if (type == DataType::F16)
    std::transform(from, from + count, static_cast<Float16*>(to),
                   [](float value) { return Float16(value); });
  else
    std::transform(from, from + count, static_cast<Bfloat16*>(to),
                   [](float value) { return Bfloat16(value); });
}

}  // namespace stratplan
