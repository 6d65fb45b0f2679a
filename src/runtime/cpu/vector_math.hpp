#pragma once
// exp, log, tanh and erf in operations that compilers vectorize. The functions of the C library
// take one element per call. The polynomials and the splits of constants are those of Cephes
// (Moshier, single precision). Errors are one to two units in the last place. NaN stays NaN.
#include <bit>
#include <cstdint>

namespace stratplan::cpu {

/// Returns e^x. Below -87 the result is e^-87, 1.6e-38.
[[gnu::always_inline]] inline float exponential(float x) {
  x = -87.0F > x ? -87.0F : x;
  x = 89.0F < x ? 89.0F : x;  // e^89 overflows to infinity
  // This number is 1.5 * 2^23. Adding it to a float rounds the float to an integer, which the last
  // bits of the sum then hold.
  constexpr float rounder = 12582912;
  const float shifted = x * 1.44269504F + rounder, n = shifted - rounder;
  const float r = x - n * 0.693359375F + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  // 2^n is applied as two factors, because 2^128 overflows.
  const float high = x > 0 ? 2 : 1;
  const std::uint32_t exponent = x > 0 ? 0x3F000000U : 0x3F800000U;
  const float scale =
      std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) << 23) + exponent);
  return (p * r * r + r + 1) * scale * high;
}

/// Returns the natural logarithm of a normal positive number.
[[gnu::always_inline]] inline float logarithm(float x) {
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2))
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x), offset = bits - 0x3F3504F3U;
  const float e = static_cast<float>(static_cast<std::int32_t>(offset) >> 23);
  const float m = std::bit_cast<float>((offset & 0x007FFFFFU) + 0x3F3504F3U) - 1;
  float p = 7.0376836292e-2F;
  p = p * m - 1.1514610310e-1F;
  p = p * m + 1.1676998740e-1F;
  p = p * m - 1.2420140846e-1F;
  p = p * m + 1.4249322787e-1F;
  p = p * m - 1.6668057665e-1F;
  p = p * m + 2.0000714765e-1F;
  p = p * m - 2.4999993993e-1F;
  p = p * m + 3.3333331174e-1F;
  const float square = m * m;
  return m + (p * m * square - e * 2.12194440e-4F - 0.5F * square) + e * 0.693359375F;
}

[[gnu::always_inline]] inline float hyperbolic_tangent(float x) {
  const float a = x < 0 ? -x : x, z = x * x;
  float p = -5.70498872745e-3F;
  p = p * z + 2.06390887954e-2F;
  p = p * z - 5.37397155531e-2F;
  p = p * z + 1.33314422036e-1F;
  p = p * z - 3.33332819422e-1F;
  const float small = p * z * x + x;
  const float large = 1 - 2 / (exponential(a > 44 ? 88 : 2 * a) + 1);
  const float signed_large = x < 0 ? -large : large;
  return a < 0.625F ? small : signed_large;
}

/// Returns e^x - 1 without loss of digits near 0. The result is 2 t / (1 - t) with t = tanh(x / 2).
/// That formula loses digits where t is near 1, so above x = 1 the result is exponential(x) - 1.
[[gnu::always_inline]] inline float exponential_less_one(float x) {
  const float half = hyperbolic_tangent((x > 1 ? 1 : x) * 0.5F);
  return x > 1 ? exponential(x) - 1 : 2 * half / (1 - half);
}

/// Returns log(1 + x) for x above -1. A first-order term restores the digits of x that 1 + x rounds
/// away.
[[gnu::always_inline]] inline float logarithm_of_one_more(float x) {
  const float sum = 1 + x, lost = x - (sum - 1);
  return logarithm(sum) + lost / sum;
}

[[gnu::always_inline]] inline float error_function(float x) {
  const float a = x < 0 ? -x : x, z = x * x;
  float p = 7.853861353153693e-5F;
  p = p * z - 8.010193625184903e-4F;
  p = p * z + 5.188327685732524e-3F;
  p = p * z - 2.685381193529856e-2F;
  p = p * z + 1.128358514861418e-1F;
  p = p * z - 3.761262582423300e-1F;
  p = p * z + 1.128379165726710F;
  const float small = p * x;
  const float inverse = 1 / (a < 1 ? 1 : a), q = inverse * inverse;
  float r = 2.326819970068386e-2F;  // coefficients of erfc between 1 and 2
  r = r * q - 1.387039388740657e-1F;
  r = r * q + 3.687424674597105e-1F;
  r = r * q - 5.824733027278666e-1F;
  r = r * q + 6.210004621745983e-1F;
  r = r * q - 4.944515323274145e-1F;
  r = r * q + 3.404879937665872e-1F;
  r = r * q - 2.741127028184656e-1F;
  r = r * q + 5.638259427386472e-1F;
  // Beyond 2, erf differs from 1 by less than 0.005, so the error of these coefficients hardly
  // counts there.
  const float large = 1 - exponential(-z) * inverse * r;
  return a < 1 ? small : x < 0 ? -large : large;
}

}  // namespace stratplan::cpu
