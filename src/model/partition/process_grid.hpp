#pragma once
// A rank number written in mixed radix: digits from the outermost topology level (across nodes) to
// the innermost (within a node), each labelled with a dimension.
//
// Worked table: "N2 | H2 W2" on 8 ranks, two nodes of four.
//   rank   0 1 2 3 | 4 5 6 7
//   N      0 0 0 0 | 1 1 1 1
//   H      0 0 1 1 | 0 0 1 1
//   W      0 1 0 1 | 0 1 0 1
// A dimension at two levels is one block index: in "H2 | H2" rank 3 has H index 3 of 4.
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

/// What a factor of the ranks divides: samples, filters (output channels; channels on layers
/// without a contraction), channels, depth, height, width, or nothing (R: the work is repeated).
/// The order is the order of digits within a level.
enum class Dim : std::uint8_t { N, F, C, D, H, W, R };
inline constexpr int dim_count = 7;
inline constexpr std::array<Dim, dim_count> all_dims{Dim::N, Dim::F, Dim::C, Dim::D,
                                                     Dim::H, Dim::W, Dim::R};
inline constexpr std::array<char, dim_count> dim_letters{'N', 'F', 'C', 'D', 'H', 'W', 'R'};

/// A few dimensions, in order.
using DimList = InplaceVector<Dim, 2 * std::size_t{dim_count}>;

/// A digit of a rank number: ranks that differ by `stride` differ by one in it.
struct GridDigit {
  Dim dim = Dim::N;
  int parts = 1;
  int stride = 1;
};

class ProcessGrid {
 public:
  using Factors = std::array<int, dim_count>;

  /// One rank.
  ProcessGrid() = default;
  /// One array of factors (>= 1) per level, outermost first.
  explicit ProcessGrid(std::vector<Factors> levels);
  /// All ranks in one level: uniform(4, Dim::H) is "H4".
  static ProcessGrid uniform(int ranks, Dim dim);
  /// "N4 H2 W2", "F2 C2", "N4 | H2 W2", "N1": digits outermost first, levels separated by "|". The
  /// order is kept as written (grids that search makes are in canonical order: that of Dim within
  /// each level). Throws std::invalid_argument with a one-line reason.
  static ProcessGrid parse(std::string_view text);

  int ranks() const { return ranks_; }
  /// Number of topology levels that its digits name, at least 1.
  int levels() const { return digits_.empty() ? 1 : digits_.back().level + 1; }
  /// Number of outermost levels at which two ranks have the same digits: levels() only for a rank
  /// and itself.
  int common_levels(int a, int b) const;
  /// Total factor of a dimension over all levels.
  int parts(Dim dim) const { return parts_[static_cast<int>(dim)]; }
  /// Factor of a dimension over `level` and all levels further in: an index divided by it is the
  /// index along the levels outside.
  int parts_from(Dim dim, int level) const;
  /// Outermost first; factors of 1 left out.
  std::vector<GridDigit> digits() const;
  /// Block index of a rank along a dimension, 0 <= it < parts(dim).
  int index(Dim dim, int rank) const;
  /// The rank with these block indices. Inverse of index().
  int rank_at(const std::array<int, dim_count>& indices) const;
  /// The ranks (ascending) that differ from `rank` only along `dims`.
  std::vector<int> group(int rank, const DimList& dims) const;
  /// Of the ranks that differ from `holder` only along `dims`, one that shares the most outer
  /// levels with `rank`; of several the (rank modulo their number)-th.
  int nearest(int holder, const DimList& dims, int rank) const;
  /// The same digits with every `from` renamed to `to`, at the place where they were: rank numbers
  /// keep their meaning, so the result may list a dimension twice in a level ("R2 H2 R2") and need
  /// not be in canonical order.
  ProcessGrid relabelled(const DimList& from, Dim to) const;
  /// The same rank numbers, with digits cut where groups of `innermost` ranks begin: at most two
  /// levels. What cannot be cut there lies outside.
  ProcessGrid in_groups_of(int innermost) const;
  /// Digits outermost first; levels separated by " | "; "N1" for one rank. Inverse of parse.
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
  void merge_neighbours();  ///< C2 R2 with C renamed to R is R4
  void sum_up();

  InplaceVector<Digit, 24> digits_;  ///< outermost first, factors of 1 left out: of 2^24 ranks
  Factors parts_{1, 1, 1, 1, 1, 1, 1};
  int ranks_ = 1;
};

/// The machine as grids see it: ranks per group at each level, outermost first. {4, 2}: four nodes
/// of two ranks.
using Topology = std::vector<int>;

/// All canonical grids over a topology whose dimensions are drawn from `dims`.
std::vector<ProcessGrid> all_grids(const Topology& topology, const std::vector<Dim>& dims);

}  // namespace stratplan
