#pragma once
// All canonical grids over many ranks. They are stored as factors, not as ProcessGrid objects,
// since work per grid must take only nanoseconds. A grid has at most two levels: the innermost, and
// all others together. Ranks are numbered as on the grids of all_grids().
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/partition/process_grid.hpp"

namespace stratplan {

/// A set of dimensions.
class DimSet {
 public:
  constexpr DimSet() = default;
  constexpr DimSet(std::initializer_list<Dim> dims) {
    for (const Dim dim : dims) bits_ |= 1U << static_cast<unsigned>(dim);
  }
  constexpr bool contains(Dim dim) const { return (bits_ >> static_cast<unsigned>(dim) & 1U) != 0; }
  constexpr void insert(Dim dim) { bits_ |= 1U << static_cast<unsigned>(dim); }
  friend constexpr auto operator<=>(const DimSet&, const DimSet&) = default;

 private:
  unsigned bits_ = 0;
};

class GridSpace {
 public:
  using Factors = ProcessGrid::Factors;

  /// All grids over `topology` whose dimensions are in `dims`.
  GridSpace(const Topology& topology, const std::vector<Dim>& dims);

  int ranks() const { return ranks_; }
  std::size_t size() const { return totals_of_.size(); }
  /// The index in totals() of the grid's parts per dimension.
  int totals_of(std::size_t grid) const { return totals_of_[grid]; }
  /// The numbers of parts per dimension that grids have, without repetitions. A grid's number of
  /// parts along a dimension is the product of its factors over the levels.
  const std::vector<Factors>& totals() const { return totals_; }
  /// Returns the grid's digits, outermost first. A factor of 1 has no digit.
  std::span<const GridDigit> digits(std::size_t grid) const {
    return {digits_.data() + first_digit_[grid], digits_.data() + first_digit_[grid + 1]};
  }
  ProcessGrid grid(std::size_t index) const { return ProcessGrid(levels_of(index)); }
  /// Returns the index of the grid with the factors `outer` outside the innermost level and `inner`
  /// inside it. Returns nothing if the products of these factors do not match the topology, or if
  /// the factors use a dimension that is not in the constructor's `dims`.
  std::optional<std::size_t> find(const Factors& outer, const Factors& inner) const;
  std::optional<std::size_t> find(const ProcessGrid& grid) const;
  /// The grids of which one level has a factor of one dimension at another dimension.
  std::vector<std::size_t> neighbours(std::size_t grid) const;
  const Factors& outer(std::size_t grid) const { return outer_[grid / inner_.size()]; }
  const Factors& inner(std::size_t grid) const { return inner_[grid % inner_.size()]; }
  /// The one-level grid with the parts of totals()[totals].
  ProcessGrid flat(int totals) const {
    return ProcessGrid({totals_[static_cast<std::size_t>(totals)]});
  }
  /// The number of ranks in a group of the innermost level.
  int innermost() const { return innermost_; }

 private:
  std::vector<Factors> levels_of(std::size_t index) const;

  int ranks_ = 1, innermost_ = 1, levels_ = 1;
  struct FactorsHash {
    std::size_t operator()(const Factors& factors) const;
  };
  using Places = std::unordered_map<Factors, int, FactorsHash>;
  static Places places_of(const std::vector<Factors>& factors);

  /// all factorizations outside and inside the innermost level; a grid combines one of each
  std::vector<Factors> outer_, inner_;
  Places outer_places_, inner_places_;
  std::vector<int> totals_of_;
  std::vector<Factors> totals_;
  std::vector<GridDigit> digits_;           ///< digits of all grids, grid after grid
  std::vector<std::uint32_t> first_digit_;  ///< where each grid's digits begin; then the end
};

}  // namespace stratplan
