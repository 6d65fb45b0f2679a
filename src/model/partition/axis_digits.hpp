#pragma once
// Where the blocks of an axis lie: the digits of a rank number that say which block a rank has. Two
// splits of one axis compare digit by digit, so what their blocks have in common is known without
// looking at any rank.
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

/// From the most significant digit of the block's index; neighbours within a level are one.
struct AxisDigits {
  struct Digit {
    int parts = 1, stride = 1;
    friend auto operator<=>(const Digit&, const Digit&) = default;
  };
  std::vector<Digit> digits;
  int parts() const;
  friend auto operator<=>(const AxisDigits&, const AxisDigits&) = default;
};

/// Of an axis that is split by the dimensions `by`, outermost first. `innermost`: ranks of the
/// innermost level.
AxisDigits digits_along(std::span<const GridDigit> grid, const DimList& by, int innermost);

/// How much of what a block needs lies in the rank's innermost group, on the ranks that see it
/// worst. Beyond its own place (a halo, uneven blocks), if the group has all of that place:
enum class Reach : std::uint8_t {
  Nothing,  ///< the group has that one block alone
  OneSide,  ///< the rank's block is at the border of its group's
  All,      ///< unknown, or the group has all
  // If it has not:
  Apart,  ///< the group has none of that place
  Share,  ///< the group has a share of it, and nothing beyond
};
constexpr Reach better(Reach a, Reach b) {
  if (a == b) return a;
  if (a <= Reach::All && b <= Reach::All) return std::max(a, b);
  return a >= Reach::Apart && b >= Reach::Apart ? Reach::Share : Reach::All;
}

/// What blocks of two splits of one axis, `home` and `wanted`, have in common on the ranks that see
/// it worst. Shares are of equally long blocks. No rank has more than that in common where this
/// says so: what is unknown counts as common and near.
struct Meeting {
  float common = 1;  ///< 0: on some rank its blocks have nothing in common; 1: that is not known
  float near_home =
      1;  ///< share of a rank's wanted block that ranks of its innermost group hold at home,
  float near_homes = 1;    ///< in so many home blocks
  float near_wanted = 1;   ///< share of a rank's home block that each of
  float near_readers = 1;  ///< so many wanted blocks of its innermost group has
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
  /// At least as much as the other of everything.
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
/// Anything may be common and near.
inline constexpr Meeting unknown{1, 1, 1e6F, 1, 1e6F, Reach::All, Reach::All};
/// Blocks that have nothing in common, not even in the same innermost group.
inline constexpr Meeting strangers{0, 0, 0, 0, 0, Reach::Apart, Reach::Apart};
Meeting meet(const AxisDigits& home, const AxisDigits& wanted, int innermost);

}  // namespace stratplan
