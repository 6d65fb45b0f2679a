#pragma once
// Where the blocks of an axis lie: the digits of a rank number that tell which block a rank has.
// Two splits of one axis are compared digit by digit. So the common part of their blocks is known
// without a loop over ranks.
//
// Worked table: a home split N2 over "N2 | R2" and a reader's N2 over "R2 | N2", nodes of two
// ranks.
//   rank          0 1 | 2 3
//   home block    0 0 | 1 1  digit of stride 2
//   wanted block  0 1 | 0 1  digit of stride 1: on ranks 1 and 2 home and wanted have nothing in
//                            common
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "model/partition/process_grid.hpp"

namespace stratplan {

/// The digits of a block's index, most significant first. Adjacent digits of one level are merged.
struct AxisDigits {
  struct Digit {
    int parts = 1, stride = 1;
    friend auto operator<=>(const Digit&, const Digit&) = default;
  };
  std::vector<Digit> digits;
  int parts() const;
  friend auto operator<=>(const AxisDigits&, const AxisDigits&) = default;
};

/// Returns the digits of an axis that is split by the dimensions `by`, outermost first.
/// `innermost`: ranks in a group of the innermost level.
AxisDigits digits_along(std::span<const GridDigit> grid, const DimList& by, int innermost);

/// How much of the elements that a block needs lies in the rank's innermost group, on the rank
/// where that is least. A block needs its own place on the axis, and elements beyond that place (a
/// halo, or the rest of uneven blocks).
enum class Reach : std::uint8_t {
  // The group has the whole place. Beyond the place it has:
  Nothing,  ///< nothing: the group's blocks end where the place ends
  OneSide,  ///< one side: the place is at the border of the group's blocks
  All,      ///< everything, or unknown
  // The group does not have the whole place:
  Apart,  ///< the group has none of the place
  Share,  ///< the group has a share of the place, and nothing beyond
};
/// Returns the greater of two reaches, or a reach that is at least as great as both.
constexpr Reach better(Reach a, Reach b) {
  if (a == b) return a;
  if (a <= Reach::All && b <= Reach::All) return std::max(a, b);
  return a >= Reach::Apart && b >= Reach::Apart ? Reach::Share : Reach::All;
}

/// The common part of the blocks of two splits of one axis, `home` and `wanted`, on the rank where
/// it is smallest. Shares assume blocks of equal length. A block is near if a rank of the same
/// innermost group has it. All numbers are upper bounds for that rank: unknown parts count as
/// common and near.
struct Meeting {
  /// 0: on some rank the home block and the wanted block have nothing in common; 1: not known
  float common = 1;
  float near_home = 1;     ///< share of a rank's wanted block that near home blocks hold
  float near_homes = 1;    ///< number of those home blocks
  float near_wanted = 1;   ///< share of a rank's home block that near wanted blocks read
  float near_readers = 1;  ///< number of those wanted blocks
  Reach home_reach = Reach::All, wanted_reach = Reach::All;
  friend auto operator<=>(const Meeting&, const Meeting&) = default;
  Meeting& operator*=(const Meeting& other) {
    common *= other.common;
    near_home *= other.near_home;
    near_homes *= other.near_homes;
    near_wanted *= other.near_wanted;
    near_readers *= other.near_readers;
    return *this;
  }
  /// Raises each member to the other's value if that is greater.
  void raise_to(const Meeting& other) {
    common = std::max(common, other.common);
    near_home = std::max(near_home, other.near_home);
    near_homes = std::max(near_homes, other.near_homes);
    near_wanted = std::max(near_wanted, other.near_wanted);
    near_readers = std::max(near_readers, other.near_readers);
    home_reach = better(home_reach, other.home_reach);
    wanted_reach = better(wanted_reach, other.wanted_reach);
  }
};
/// Everything may be common and near.
inline constexpr Meeting unknown{1, 1, 1e6F, 1, 1e6F, Reach::All, Reach::All};
/// Blocks that have nothing in common, not even in the same innermost group.
inline constexpr Meeting strangers{0, 0, 0, 0, 0, Reach::Apart, Reach::Apart};
/// Compares two splits of one axis. Returns `unknown` if their digits cannot be matched.
Meeting meet(const AxisDigits& home, const AxisDigits& wanted, int innermost);

}  // namespace stratplan
