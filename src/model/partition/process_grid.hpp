#pragma once
// A process grid writes a rank number in mixed radix. Digits go from the outermost topology level
// (across nodes) to the innermost (within a node), each labelled with a dimension.
//
// Worked table: "N2 | H2 W2" on 8 ranks, two nodes of four.
//   rank   0 1 2 3 | 4 5 6 7
//   N      0 0 0 0 | 1 1 1 1
//   H      0 0 1 1 | 0 0 1 1
//   W      0 1 0 1 | 0 1 0 1
// A dimension at two levels has one block index. In "H2 | H2", rank 3 has index 3 of 4 along H.
#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/inplace_vector.hpp"

namespace stratplan {

/// What a factor of the ranks divides: samples (N), filters (F), channels (C), depth (D), height
/// (H), width (W), or nothing (R, where ranks repeat the work). Filters are the output channels of
/// a contraction. On other layers, F divides the channels. Within a level of a canonical grid, the
/// digits have the order of these enumerators.
enum class Dim : std::uint8_t { N, F, C, D, H, W, R };
inline constexpr int dim_count = 7;
inline constexpr std::array<Dim, dim_count> all_dims{Dim::N, Dim::F, Dim::C, Dim::D,
                                                     Dim::H, Dim::W, Dim::R};
inline constexpr std::array<char, dim_count> dim_letters{'N', 'F', 'C', 'D', 'H', 'W', 'R'};

/// A short ordered list of dimensions.
using DimList = InplaceVector<Dim, 2 * std::size_t{dim_count}>;

/// A digit of a rank number. The digit rises by one where the rank number rises by `stride`.
struct GridDigit {
  Dim dim = Dim::N;
  int parts = 1;
  int stride = 1;
};

class ProcessGrid {
 public:
  using Factors = std::array<int, dim_count>;

  /// A grid of one rank.
  ProcessGrid() = default;
  /// `levels`: one array of factors (>= 1) per level, outermost first.
  explicit ProcessGrid(std::vector<Factors> levels);
  /// A grid of one level that splits only `dim`: uniform(4, Dim::H) is "H4".
  static ProcessGrid uniform(int ranks, Dim dim);
  /// Reads "N4 H2 W2", "F2 C2", "N4 | H2 W2" or "N1": digits outermost first, levels separated by
  /// "|". The order is kept as written. (Canonical grids, which the search makes, have the order of
  /// Dim within each level.) Throws std::invalid_argument with a one-line reason.
  static ProcessGrid parse(std::string_view text);

  int ranks() const { return ranks_; }
  /// The number of topology levels down to the innermost one that has a digit, at least 1.
  int levels() const { return digits_.empty() ? 1 : digits_.back().level + 1; }
  /// Returns the number of outermost levels at which two ranks have the same digits. The number is
  /// levels() only if both ranks are equal.
  int common_levels(int a, int b) const;
  /// The product of a dimension's factors over all levels.
  int parts(Dim dim) const { return parts_[static_cast<int>(dim)]; }
  /// The product of a dimension's factors over `level` and all levels inside it. A block index
  /// divided by this product is the block index that the levels outside `level` make.
  int parts_from(Dim dim, int level) const;
  /// The grid's digits, outermost first, without factors of 1.
  std::vector<GridDigit> digits() const;
  /// Block index of a rank along a dimension: at least 0, less than parts(dim).
  int index(Dim dim, int rank) const;
  /// Block indices of all ranks along a dimension, by rank.
  std::vector<int> indices(Dim dim) const;
  /// The rank with these block indices. Inverse of index().
  int rank_at(const std::array<int, dim_count>& indices) const;
  /// `rank` itself and the ranks that differ from it only along `dims`, ascending.
  std::vector<int> group(int rank, const DimList& dims) const;
  /// Returns a rank that differs from `holder` only along `dims` and shares the most outer levels
  /// with `rank`. Among several such ranks, returns the one at position `rank` modulo their number.
  int nearest(int holder, const DimList& dims, int rank) const;
  /// Returns a grid with the same digits, where every dimension of `from` is renamed to `to`.
  /// Digits keep their places, so rank numbers keep their meaning. The result may list a dimension
  /// twice in a level ("R2 H2 R2") and need not be in canonical order.
  ProcessGrid relabelled(const DimList& from, Dim to) const;
  /// Returns a grid of at most two levels with the same rank numbers. Digits are cut at the borders
  /// of groups of `innermost` ranks. A digit that cannot be cut there goes to the outer level.
  ProcessGrid in_groups_of(int innermost) const;
  /// The digits, outermost first, with levels separated by " | ". The text of a grid of one rank is
  /// "N1". Inverse of parse().
  std::string text() const;

  friend bool operator==(const ProcessGrid& a, const ProcessGrid& b) {
    return a.digits_ == b.digits_;
  }
  friend auto operator<=>(const ProcessGrid& a, const ProcessGrid& b) {
    return a.digits_ <=> b.digits_;
  }

 private:
  struct Digit {
    std::uint8_t level = 0;
    Dim dim = Dim::N;
    int parts = 1;
    friend auto operator<=>(const Digit&, const Digit&) = default;
  };
  /// Merges adjacent digits of one dimension and level: R2 R2 becomes R4.
  void merge_neighbours();
  void sum_up();

  /// outermost first, without factors of 1; 24 digits suffice for 2^24 ranks
  InplaceVector<Digit, 24> digits_;
  Factors parts_{1, 1, 1, 1, 1, 1, 1};
  int ranks_ = 1;
};

/// The machine's levels, outermost first: the number of parts of each level. {4, 2} is four nodes
/// of two ranks.
using Topology = std::vector<int>;

/// Returns all canonical grids over a topology whose dimensions are in `dims`.
std::vector<ProcessGrid> all_grids(const Topology& topology, const std::vector<Dim>& dims);

}  // namespace stratplan
