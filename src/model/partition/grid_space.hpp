#pragma once
// All canonical grids over many ranks, compactly: factors rather than objects, for what is computed
// once per grid must take nanoseconds. At most two levels are told apart, the innermost and all
// outside it together; rank numbers mean the same as on the grids of all_grids().
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

  /// Dimensions are drawn from `dims`.
  GridSpace(const Topology& topology, const std::vector<Dim>& dims);

  int ranks() const { return ranks_; }
  std::size_t size() const { return totals_of_.size(); }
  /// Which of totals() a grid's parts per dimension are.
  int totals_of(std::size_t grid) const { return totals_of_[grid]; }
  const std::vector<Factors>& totals() const { return totals_; }
  /// Outermost first; factors of 1 left out.
  std::span<const GridDigit> digits(std::size_t grid) const {
    return {digits_.data() + first_digit_[grid], digits_.data() + first_digit_[grid + 1]};
  }
  ProcessGrid grid(std::size_t index) const { return ProcessGrid(levels_of(index)); }
  /// The grid with these factors outside the innermost level and within; nothing if they are not
  /// those of so many ranks, or of other dimensions.
  std::optional<std::size_t> find(const Factors& outer, const Factors& inner) const;
  std::optional<std::size_t> find(const ProcessGrid& grid) const;
  const Factors& outer(std::size_t grid) const { return outer_[grid / inner_.size()]; }
  const Factors& inner(std::size_t grid) const { return inner_[grid % inner_.size()]; }
  /// The grid with these parts in one level.
  ProcessGrid flat(int totals) const {
    return ProcessGrid({totals_[static_cast<std::size_t>(totals)]});
  }
  /// Ranks of the innermost level.
  int innermost() const { return innermost_; }

 private:
  std::vector<Factors> levels_of(std::size_t index) const;

  int ranks_ = 1, innermost_ = 1, levels_ = 1;
  struct FactorsHash {
    std::size_t operator()(const Factors& factors) const;
  };
  using Places = std::unordered_map<Factors, int, FactorsHash>;
  static Places places_of(const std::vector<Factors>& factors);

  std::vector<Factors> outer_, inner_;  ///< of each level on its own; a grid is a pair
  Places outer_places_, inner_places_;
  std::vector<int> totals_of_;
  std::vector<Factors> totals_;
  std::vector<GridDigit> digits_;
  std::vector<std::uint32_t> first_digit_;
};

}  // namespace stratplan
