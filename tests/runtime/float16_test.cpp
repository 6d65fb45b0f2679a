#include "runtime/device/float16.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace stratplan {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(Float16, TableOfNumbers) {
  struct Row {
    float value;
    std::uint16_t fp16;
    float back;
  };
  const Row rows[] = {
      {0, 0x0000, 0},
      {-0.0F, 0x8000, -0.0F},
      {1, 0x3C00, 1},
      {-2, 0xC000, -2},
      {1 + 0x1p-11F, 0x3C00, 1},            // a tie goes to even
      {1 + 0x3p-11F, 0x3C02, 1 + 0x1p-9F},  // a tie to even, which is up
      {1 + 0x1p-11F + 0x1p-20F, 0x3C01, 1 + 0x1p-10F},
      {65504, 0x7BFF, 65504},
      {65519.996F, 0x7BFF, 65504},
      {65520, 0x7C00, infinity},
      {-1e9F, 0xFC00, -infinity},
      {0x1p-14F, 0x0400, 0x1p-14F},  // the smallest normal
      {0x1p-14F - 0x1p-26F, 0x0400, 0x1p-14F},
      {0x1p-24F, 0x0001, 0x1p-24F},  // the smallest positive number
      {0x1p-25F, 0x0000, 0},
      {0x1.8p-25F, 0x0001, 0x1p-24F},
      {infinity, 0x7C00, infinity},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Float16(row.value).bits, row.fp16) << row.value;
    EXPECT_EQ(float{Float16(row.value)}, row.back) << row.value;
  }
}

TEST(Bfloat16, TableOfNumbers) {
  struct Row {
    float value;
    std::uint16_t bf16;
    float back;
  };
  const Row rows[] = {
      {0, 0x0000, 0},
      {1, 0x3F80, 1},
      {-2, 0xC000, -2},
      {1 + 0x1p-8F, 0x3F80, 1},            // a tie goes to even
      {1 + 0x3p-8F, 0x3F82, 1 + 0x1p-6F},  // a tie to even, which is up
      {1e-30F, 0x0DA2, 0x1.44p-100F},
      {std::numeric_limits<float>::max(), 0x7F80, infinity},
      {infinity, 0x7F80, infinity},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Bfloat16(row.value).bits, row.bf16) << row.value;
    EXPECT_EQ(float{Bfloat16(row.value)}, row.back) << row.value;
  }
}

/// Every narrow number converts back to itself, and a value between two neighbours becomes the
/// nearer one.
template <class Narrow>
void check_all() {
  for (int bits = 0; bits < 0x10000; ++bits) {
    Narrow number;
    number.bits = static_cast<std::uint16_t>(bits);
    const float value = number;
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float{Narrow(value)})) << bits;
      continue;
    }
    EXPECT_EQ(Narrow(value).bits, number.bits);
    Narrow next;
    next.bits = static_cast<std::uint16_t>(bits + 1);
    const float above = next;
    if (!std::isfinite(above) || (bits & 0x7FFF) == 0x7FFF) continue;
    EXPECT_EQ(Narrow(value + (above - value) * 0.375F).bits, number.bits) << bits;
    EXPECT_EQ(Narrow(value + (above - value) * 0.625F).bits, next.bits) << bits;
  }
}

TEST(Float16, AllNumbers) { check_all<Float16>(); }
TEST(Bfloat16, AllNumbers) { check_all<Bfloat16>(); }

}  // namespace
}  // namespace stratplan
