#include "model/partition/axis_digits.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

namespace stratplan {
namespace {

/// A position in a split's digits: the current digit, and the factor of its parts that is not yet
/// taken.
class Cursor {
 public:
  explicit Cursor(const AxisDigits& split) : split_(split) { begin(); }
  bool done() const { return at_ == split_.digits.size(); }
  int left() const { return left_; }
  int stride() const { return split_.digits[at_].stride; }
  /// The number of ranks after which the rest of the current digit repeats.
  int span() const { return stride() * left_; }
  /// Requires that `parts` divides left().
  void take(int parts) {
    left_ /= parts;
    if (left_ > 1) return;
    ++at_;
    begin();
  }

 private:
  void begin() {
    if (!done()) left_ = split_.digits[at_].parts;
  }
  const AxisDigits& split_;
  std::size_t at_ = 0;
  int left_ = 1;
};

bool divides(int a, int b) { return b % a == 0; }
bool divide(int a, int b) { return divides(a, b) || divides(b, a); }

/// Returns the number of parts that the digits outside the innermost level make. Returns nothing if
/// a digit inside that level is more significant than a digit outside it, since then the blocks of
/// a group are not adjacent.
std::optional<int> parts_outside(const AxisDigits& split, int innermost) {
  int parts = 1;
  bool inside = false;
  for (const AxisDigits::Digit& digit : split.digits) {
    const bool outside = digit.stride >= innermost;
    if (outside && inside) return {};
    inside = !outside;
    if (outside) parts *= digit.parts;
  }
  return parts;
}

/// Returns the reach of the blocks of a split into `parts`. `other`: the split at the other end
/// of the edge. Requires that under `other`, an innermost group holds the whole interval of each of
/// these blocks.
Reach reach(int parts, const AxisDigits& other, int innermost) {
  const std::optional<int> outside = parts_outside(other, innermost);
  if (!outside || *outside == 1) return Reach::All;
  return parts == *outside ? Reach::Nothing : Reach::OneSide;
}

/// Whether blocks of equal length overlap: number `a` of `a_parts` and number `b` of `b_parts`.
bool overlap(int a, int a_parts, int b, int b_parts) {
  return std::int64_t{a} * b_parts < (std::int64_t{b} + 1) * a_parts &&
         std::int64_t{b} * a_parts < (std::int64_t{a} + 1) * b_parts;
}

/// Looks for ranks with nothing in common, among some groups that are spread over all ranks.
Meeting meet_on_ranks(const AxisDigits& home, const AxisDigits& wanted, int innermost, int ranks) {
  constexpr int most_groups = 16;
  const int homes = home.parts(), readers = wanted.parts(), groups = ranks / innermost;
  Meeting meeting = unknown;
  std::vector<int> held, read;  // by rank of the group
  const auto apart = [&](int of_home, int of_wanted) {
    return !overlap(of_home, homes, of_wanted, readers);
  };
  const auto more_to_find = [&] {
    return meeting.home_reach != Reach::Apart || meeting.wanted_reach != Reach::Apart;
  };
  for (int look = 0; look < std::min(groups, most_groups) && more_to_find(); ++look) {
    const int group = groups <= most_groups ? look : spread_evenly(look, groups);
    held.clear();
    read.clear();
    for (int rank = group * innermost; rank < (group + 1) * innermost; ++rank) {
      held.push_back(home.index_of(rank));
      read.push_back(wanted.index_of(rank));
    }
    for (std::size_t rank = 0; rank < held.size(); ++rank) {
      if (!apart(held[rank], read[rank])) continue;
      meeting.common = 0;
      meeting.matched = false;
      if (std::ranges::all_of(held, [&](int mate) { return apart(mate, read[rank]); }))
        meeting.near_home = meeting.near_homes = 0, meeting.home_reach = Reach::Apart;
      if (std::ranges::all_of(read, [&](int mate) { return apart(held[rank], mate); }))
        meeting.near_wanted = meeting.near_readers = 0, meeting.wanted_reach = Reach::Apart;
    }
  }
  return meeting;
}

}  // namespace

int spread_evenly(int look, int count) {
  constexpr double golden = 0.6180339887498949;
  const double turn = look * golden;
  return static_cast<int>((turn - std::floor(turn)) * count);
}

int AxisDigits::index_of(int rank) const {
  int index = 0;
  for (const Digit& digit : digits) index = index * digit.parts + rank / digit.stride % digit.parts;
  return index;
}

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

Meeting meet(const AxisDigits& home, const AxisDigits& wanted, int innermost, int ranks) {
  Meeting meeting;
  Cursor a(home), b(wanted);
  while (!a.done() && !b.done()) {
    const int both = std::min(a.left(), b.left());
    if (!divide(a.left(), b.left())) return meet_on_ranks(home, wanted, innermost, ranks);
    // Both digits have the same weight in the block index, but different strides in the rank
    // number. So on some rank, the home index and the wanted index differ. A digit inside the
    // innermost level takes all its values within each group.
    const int a_stride = a.span() / both, b_stride = b.span() / both;
    if (a_stride != b_stride) {
      if (!divide(a_stride, b_stride)) return meet_on_ranks(home, wanted, innermost, ranks);
      meeting.common = 0;
      if (a.stride() >= innermost) meeting.near_home = 0;
      if (b.stride() >= innermost) meeting.near_wanted = 0;
    }
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
  const auto reach_of = [&](float share, int parts, const AxisDigits& other) {
    if (share == 1) return reach(parts, other, innermost);
    return share == 0 ? Reach::Apart : Reach::Share;
  };
  meeting.home_reach = reach_of(meeting.near_home, wanted.parts(), home);
  meeting.wanted_reach = reach_of(meeting.near_wanted, home.parts(), wanted);
  return meeting;
}

}  // namespace stratplan
