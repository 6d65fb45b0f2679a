#pragma once
// The ends of edges. An end is the way in which a grid of a space splits the tensor of an edge.
// Grids that split it alike share an end. The common part of two ends along an axis is found by
// table lookup.
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "model/cost/closed_form/witnesses.hpp"
#include "model/network/shape.hpp"
#include "model/partition/axis_digits.hpp"
#include "model/partition/grid_space.hpp"

namespace stratplan {

/// How grid dimensions split a tensor of a layer, by axis. `gathered`: dimensions along which all
/// ranks use the same block (Role::Gathered).
struct TensorSplit {
  std::array<DimList, axis_count> by;
  DimSet gathered;
  friend bool operator==(const TensorSplit&, const TensorSplit&) = default;
};

/// What one axis contributes to the common part of two ends. The numbers are multiplied over the
/// axes, for many pairs of ends. So they lie in vectors.
struct CommonLanes {
  using Lanes = float __attribute__((vector_size(4 * sizeof(float))));
  /// as in Meeting, forward and backward: shares, and blocks
  Lanes near{1, 1, 1, 1};
  enum : std::uint8_t { common = 2, apart };
  /// The shares that count as own, forward and backward; Meeting::common; and 2 if the rank is
  /// apart along the axis, else 1, or 0 unless Meeting::matched.
  Lanes own{1, 1, 1, 1};

  CommonLanes() = default;
  /// Not apart.
  explicit CommonLanes(const Meeting& of)
      : near{of.near_home, of.near_wanted, of.near_homes, of.near_readers},
        own{1, 1, of.common, of.matched ? 1.0F : 0.0F} {}
  CommonLanes& operator*=(const CommonLanes& other) {
    near *= other.near;
    own *= other.own;
    return *this;
  }
};

class EndSpace {
 public:
  /// `space` must outlive this object.
  explicit EndSpace(const GridSpace& space);

  /// The number of parts along each axis, and the number of ranks that contribute to the same
  /// block's gradient.
  struct Kind {
    std::array<int, axis_count> parts{1, 1, 1, 1, 1};
    int terms = 1;
    friend auto operator<=>(const Kind&, const Kind&) = default;
  };
  struct End {
    std::array<std::uint16_t, axis_count> digits{};  ///< by axis: index of the axis's split
    std::uint16_t kind = 0;                          ///< index in Ends::kinds
    std::uint16_t terms_inside = 1;  ///< how many of Kind::terms lie in one innermost group
    /// bit i: rank i of each innermost group is the first with its block; set by meet_all()
    std::uint16_t distinct = 0;
    friend auto operator<=>(const End&, const End&) = default;
  };
  struct Ends {
    std::array<std::vector<int>, 2> of_grid;  ///< index in `ends`, by output layout and grid
    std::vector<End> ends;
    std::vector<Kind> kinds;
  };
  using SplitByOutputLayout = std::array<TensorSplit, 2>;
  /// Returns the ends of both output layouts together. Equal splits share an end. All calls must
  /// come before meet_all().
  const Ends& ends(const SplitByOutputLayout& splits);
  void meet_all();
  /// Returns a row with one index in meetings() for each value of the other end's digits. `digits`
  /// are those of the end that the function's name contains.
  const std::uint16_t* met_by_home(std::size_t axis, int digits) const {
    return pools_[axis].row(pools_[axis].by_home, digits);
  }
  const std::uint16_t* met_by_wanted(std::size_t axis, int digits) const {
    return pools_[axis].row(pools_[axis].by_wanted, digits);
  }
  const std::vector<Meeting>& meetings() const { return meetings_; }
  const std::vector<CommonLanes>& lanes() const { return lanes_; }  ///< of meetings()
  const Witnesses& witnesses() const { return witnesses_; }
  /// Witnesses::blocks() under digits of an axis.
  const std::uint16_t* witnessed(std::size_t axis, int digits) const {
    return pools_[axis].witnessed[static_cast<std::size_t>(digits)].data();
  }
  /// Returns a row with one index in meetings() for each place_of_parts() of the other end. The
  /// meeting is the most that `digits` can have in common with any digits of that number of parts.
  const std::uint16_t* best_by_home(std::size_t axis, int digits) const {
    return pools_[axis].best_row(pools_[axis].best_by_home, digits);
  }
  const std::uint16_t* best_by_wanted(std::size_t axis, int digits) const {
    return pools_[axis].best_row(pools_[axis].best_by_wanted, digits);
  }
  std::size_t place_of_parts(std::size_t axis, int parts) const;
  /// The number of distinct splits of an axis: one for each value of End::digits.
  int ways(std::size_t axis) const { return static_cast<int>(pools_[axis].digits.size()); }
  int parts(std::size_t axis, int digits) const {
    return pools_[axis].digits[static_cast<std::size_t>(digits)].parts();
  }
  /// How many consecutive blocks of the axis an innermost group holds.
  int near_run(std::size_t axis, int digits) const;
  /// The value of End::digits along an axis that is not split.
  static constexpr int whole = 0;

 private:
  int number_of(std::size_t axis, AxisDigits digits);
  std::pair<Kind, End> end_on(std::size_t grid, const TensorSplit& split);
  /// The distinct splits of one axis.
  struct Pool {
    std::map<AxisDigits, int> known;
    std::vector<AxisDigits> digits;
    std::vector<int> parts;                             ///< numbers of parts that occur, ascending
    std::vector<std::vector<std::uint16_t>> witnessed;  ///< by digits: Witnesses::blocks()
    /// indices in meetings_, by the digits of the end in the table's name, then by those of the
    /// other end
    std::vector<std::uint16_t> by_home, by_wanted;
    /// indices in meetings_, by the digits of the end in the table's name, then by place_of_parts()
    /// of the other end
    std::vector<std::uint16_t> best_by_home, best_by_wanted;
    const std::uint16_t* row(const std::vector<std::uint16_t>& table, int index) const {
      return table.data() + static_cast<std::size_t>(index) * digits.size();
    }
    const std::uint16_t* best_row(const std::vector<std::uint16_t>& table, int index) const {
      return table.data() + static_cast<std::size_t>(index) * parts.size();
    }
  };
  std::uint16_t number_of(const Meeting& meeting);
  void find_best(Pool& pool);
  std::uint16_t distinct(const End& end) const;
  const GridSpace& space_;
  Witnesses witnesses_;
  std::array<Pool, axis_count> pools_;
  std::vector<Meeting> meetings_;
  std::vector<CommonLanes> lanes_;
  std::map<Meeting, std::uint16_t> number_of_meeting_;
  std::vector<std::pair<SplitByOutputLayout, std::unique_ptr<Ends>>> ends_;
};

}  // namespace stratplan
