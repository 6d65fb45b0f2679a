#pragma once
// Division by a number that is known before the launch, computed as a multiplication and a shift
// (Granlund and Montgomery, "Division by invariant integers using multiplication", 1994). A
// device's own division takes twenty instructions, and kernels divide each index several times to
// get its coordinates.
#include <algorithm>
#include <cstdint>

#include "runtime/cuda/kernels/support/launch.hpp"

namespace stratplan::cuda_kernels {

class Divisor {
 public:
  Divisor() = default;
  /// A divisor of 0 counts as 1, because an empty tensor has an extent of 0, but no index to
  /// divide.
  explicit Divisor(std::int64_t divisor) : divisor_(std::max<std::int64_t>(1, divisor)) {
    if (divisor_ > limit) return;
    while ((std::int64_t{1} << shift_) < divisor_) ++shift_;
    magic_ = static_cast<std::uint32_t>(
        (((std::uint64_t{1} << shift_) - static_cast<std::uint64_t>(divisor_)) << 32) /
            static_cast<std::uint64_t>(divisor_) +
        1);
  }

  SP_DEVICE std::int64_t value() const { return divisor_; }
  /// Returns n / value(). Requires n >= 0.
  SP_DEVICE std::int64_t quotient(std::int64_t n) const {
    if (n >= limit || divisor_ > limit) return n / divisor_;
    const std::uint32_t m = static_cast<std::uint32_t>(n),
                        high = static_cast<std::uint32_t>((std::uint64_t{m} * magic_) >> 32);
    return (high + m) >> shift_;
  }
  /// Leaves the quotient in n and returns the remainder. The remainder is the coordinate along the
  /// innermost of the extents that n counts through.
  SP_DEVICE std::int64_t split(std::int64_t& n) const {
    const std::int64_t whole = quotient(n), rest = n - whole * divisor_;
    n = whole;
    return rest;
  }

 private:
  static constexpr std::int64_t limit = std::int64_t{1} << 31;
  std::int64_t divisor_ = 1;
  std::uint32_t magic_ = 1;
  int shift_ = 0;
};

}  // namespace stratplan::cuda_kernels
