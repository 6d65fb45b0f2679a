#include "model/partition/axis_digits.hpp"

#include <algorithm>
#include <cmath>

namespace stratplan {
namespace {

/// A place in a split's digits: what is left of the digit at hand. Where the digits of two splits do not divide each other parts of digits are no whole numbers.
class Cursor {
 public:
  explicit Cursor(const AxisDigits& split) : split_(split) { begin(); }
  bool done() const { return at_ == split_.digits.size(); }
  double left() const { return left_; }
  double stride() const { return split_.digits[at_].stride; }
  /// Ranks after which the index repeats.
  double span() const { return stride() * left_; }
  void take(double parts) {
    left_ /= parts;
    if (left_ > 1 + 1e-9) return;
    ++at_;
    begin();
  }

 private:
  void begin() {
    if (!done()) left_ = split_.digits[at_].parts;
  }
  const AxisDigits& split_;
  std::size_t at_ = 0;
  double left_ = 1;
};

bool spread(const AxisDigits& split, int innermost) {
  return std::ranges::any_of(
      split.digits, [&](const AxisDigits::Digit& digit) { return digit.stride >= innermost; });
}

}  // namespace

int AxisDigits::parts() const {
  int product = 1;
  for (const Digit& digit : digits) product *= digit.parts;
  return product;
}

AxisDigits digits_along(std::span<const GridDigit> grid, const DimList& by, int innermost) {
  AxisDigits along;
  for (const Dim dim : by) {
    for (const GridDigit& digit : grid) {
      if (digit.dim != dim) continue;
      const bool joins = !along.digits.empty() &&
                         along.digits.back().stride == digit.stride * digit.parts &&
                         (along.digits.back().stride >= innermost) == (digit.stride >= innermost);
      if (!joins) along.digits.push_back({1, 1});
      along.digits.back().parts *= digit.parts;
      along.digits.back().stride = digit.stride;
    }
  }
  return along;
}

Meeting meet(const AxisDigits& home, const AxisDigits& wanted, int innermost, bool shifted) {
  if (shifted && !home.digits.empty() && !wanted.digits.empty()) return strangers;
  Meeting meeting;
  meeting.home_spread = spread(home, innermost);
  meeting.wanted_spread = spread(wanted, innermost);
  Cursor a(home), b(wanted);
  while (!a.done() && !b.done()) {
    // Digits of the same place in the index, read at different places of the rank number: some rank has the first index of one and the last of the other. The
    // digits of an innermost group's own ranks take all values in it.
    if (std::abs(a.span() - b.span()) > 1e-6) {
      meeting.common = 0;
      if (a.stride() >= innermost) meeting.near_home = 0;
      if (b.stride() >= innermost) meeting.near_wanted = 0;
    }
    const double both = std::min(a.left(), b.left());
    a.take(both);
    b.take(both);
  }
  for (; !a.done(); a.take(a.left())) {
    if (a.stride() >= innermost)
      meeting.near_home /= static_cast<float>(a.left());
    else
      meeting.near_homes *= static_cast<float>(a.left());
  }
  for (; !b.done(); b.take(b.left())) {
    if (b.stride() >= innermost)
      meeting.near_wanted /= static_cast<float>(b.left());
    else
      meeting.near_readers *= static_cast<float>(b.left());
  }
  if (meeting.near_home == 0) meeting.near_homes = 0;
  if (meeting.near_wanted == 0) meeting.near_readers = 0;
  return meeting;
}

}  // namespace stratplan
