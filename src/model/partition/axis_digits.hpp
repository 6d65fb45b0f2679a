#pragma once
// Digits of a rank number that select a rank's block along one axis. Two splits of an axis are
// compared digit by digit, so the overlap of their blocks is found without a loop over ranks.
//
// Worked table: two nodes of two ranks. The home splits N over the grid "N2 | R2", and the reader
// splits N over "R2 | N2".
//   rank          0 1 | 2 3
//   home block    0 0 | 1 1  The digit has stride 2.
//   wanted block  0 1 | 0 1  The digit has stride 1. On ranks 1 and 2, the home block and the
//                            wanted block do not overlap.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "model/partition/process_grid.hpp"

namespace stratplan {

/// The digits of a block's index, most significant first. Digits that are adjacent in the rank
/// number are merged if both are inside the innermost level, or both outside it.
struct AxisDigits {
  struct Digit {
    int parts = 1, stride = 1;
    friend auto operator<=>(const Digit&, const Digit&) = default;
  };
  std::vector<Digit> digits;
  int parts() const;
  /// The index of a rank's block.
  int index_of(int rank) const;
  friend auto operator<=>(const AxisDigits&, const AxisDigits&) = default;
};

/// Returns the digits of the block index along one axis, most significant first. `by`: the
/// dimensions that split the axis. `innermost`: number of ranks in a group of the innermost level.
AxisDigits digits_along(std::span<const GridDigit> grid, const DimList& by, int innermost);

/// Tells which of the elements that a rank's block needs are held by the rank's innermost group. Of
/// all ranks, the one whose group holds least counts. A block needs its own interval on the axis,
/// and elements beyond that interval (a halo, or the difference between uneven blocks).
enum class Reach : std::uint8_t {
  // In the following cases, the group holds the whole interval.
  Nothing,  ///< the group holds nothing beyond the interval: its blocks end where the interval ends
  OneSide,  ///< the group holds elements beyond one end of the interval, but not beyond the other
  All,      ///< the group holds all needed elements, or it is unknown what the group holds
  // In the following cases, the group does not hold the whole interval.
  Apart,  ///< the group holds nothing of the interval
  Share,  ///< the group holds a part of the interval, and nothing beyond the interval
};
/// Returns a reach that is at least as great as each of the two given reaches.
constexpr Reach better(Reach a, Reach b) {
  if (a == b) return a;
  if (a <= Reach::All && b <= Reach::All) return std::max(a, b);
  return a >= Reach::Apart && b >= Reach::Apart ? Reach::Share : Reach::All;
}

/// The overlap of a rank's `home` block and `wanted` block along one axis, on the rank where the
/// overlap is smallest. A block is near if it belongs to a rank of the same innermost group. Shares
/// assume blocks of equal length. All numbers are upper bounds: elements of which nothing is known
/// count as common and near.
struct Meeting {
  /// 0 if the home block and the wanted block do not overlap on some rank; 1 if they overlap on all
  /// ranks, or if nothing is known
  float common = 1;
  float near_home = 1;     ///< share of a rank's wanted block that near home blocks hold
  float near_homes = 1;    ///< number of near home blocks that hold this share
  float near_wanted = 1;   ///< share of a rank's home block that lies in near wanted blocks
  float near_readers = 1;  ///< number of near wanted blocks that contain this share
  Reach home_reach = Reach::All, wanted_reach = Reach::All;
  /// False if the overlap is that of a rank that was looked for along this axis alone. Which blocks
  /// that rank has along other axes is unknown. Else, for any two axes, some rank has the overlaps
  /// of both. Products keep the value of the left operand.
  bool matched = true;
  friend auto operator<=>(const Meeting&, const Meeting&) = default;
  Meeting& operator*=(const Meeting& other) {
    common *= other.common;
    near_home *= other.near_home;
    near_homes *= other.near_homes;
    near_wanted *= other.near_wanted;
    near_readers *= other.near_readers;
    return *this;
  }
  /// Raises each member to the value in `other` where that value is greater.
  void raise_to(const Meeting& other) {
    common = std::max(common, other.common);
    near_home = std::max(near_home, other.near_home);
    near_homes = std::max(near_homes, other.near_homes);
    near_wanted = std::max(near_wanted, other.near_wanted);
    near_readers = std::max(near_readers, other.near_readers);
    home_reach = better(home_reach, other.home_reach);
    wanted_reach = better(wanted_reach, other.wanted_reach);
    matched = matched && other.matched;
  }
};
/// Nothing is known about the overlap: all elements may be common and near.
inline constexpr Meeting unknown{1, 1, 1e6F, 1, 1e6F, Reach::All, Reach::All, true};
/// The blocks overlap neither on the rank itself nor within its innermost group.
inline constexpr Meeting strangers{0, 0, 0, 0, 0, Reach::Apart, Reach::Apart, true};
/// Returns one of `count` numbers, from 0 on. Numbers of successive looks (at least 0) are spread
/// evenly over all, as multiples of the golden ratio are, and agree with no digit.
int spread_evenly(int look, int count);
/// Compares two splits of one axis over `ranks` ranks. If their digits cannot be matched, as with 2
/// times 3 parts and 3 times 2 parts, some ranks are looked at. What none of them shows is unknown.
Meeting meet(const AxisDigits& home, const AxisDigits& wanted, int innermost, int ranks);

}  // namespace stratplan
