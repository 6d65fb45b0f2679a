#pragma once
// A few ranks whose transfers along an edge are counted exactly. The slowest rank takes at least as
// long as any of them. So the largest of their times is a lower bound of the edge's cost, even
// where blocks are not equally long, or where the digits of both ends cannot be matched.
#include <cstdint>
#include <span>
#include <vector>

#include "model/cost/closed_form/edge_cost.hpp"
#include "model/partition/axis_digits.hpp"
#include "model/partition/interval.hpp"

namespace stratplan {

/// The ranks, and all ranks of their innermost groups.
class Witnesses {
 public:
  /// There are no witnesses if innermost groups have more than 16 ranks.
  Witnesses(int ranks, int innermost);
  int count() const { return static_cast<int>(places_.size()); }
  int near() const { return near_; }  ///< number of ranks in a group
  /// The number of a witness in its group.
  int place(int witness) const { return places_[static_cast<std::size_t>(witness)]; }
  /// Returns the indices of the blocks of all ranks of the first witness's group, then of the
  /// second one's, and so on.
  std::vector<std::uint16_t> blocks(const AxisDigits& digits) const;

 private:
  int near_ = 0;
  std::vector<int> first_of_group_, places_;
};

/// How plain blocks nest: each of the fewer blocks contains as many of the others.
class Nesting {
 public:
  Nesting(int home_parts, int wanted_parts)
      : homes_finer_(home_parts >= wanted_parts),
        reciprocal_(one / static_cast<std::uint64_t>(homes_finer_ ? home_parts / wanted_parts
                                                                  : wanted_parts / home_parts) +
                    1) {}
  bool nested(std::uint16_t home_block, std::uint16_t wanted_block) const {
    const std::uint64_t finer = homes_finer_ ? home_block : wanted_block,
                        coarser = homes_finer_ ? wanted_block : home_block;
    return finer * reciprocal_ / one == coarser;
  }

 private:
  /// A multiplication is several times as fast as a division. For numbers below 65,536 it rounds
  /// down to the same quotient.
  static constexpr std::uint64_t one = std::uint64_t{1} << 32U;
  bool homes_finer_;
  std::uint64_t reciprocal_;
};

/// The blocks of both ends along one axis.
struct AxisBlocks {
  /// AxisReading::home_places() and wanted_places(); empty if the blocks are plain
  std::span<const AxisReading::Place> home, wanted;
  bool exact = true;  ///< whether the places are the blocks
  struct Count {
    float elements = 1, blocks = 1;
  };
  /// if the places are exact, overlaps() of the wanted blocks, and of the home blocks
  std::span<const Count> reads, writes;
  AxisReading::Sizes sizes;                                      ///< of plain blocks
  Nesting nesting{1, 1};                                         ///< of plain blocks
  const std::uint16_t *of_home = nullptr, *of_wanted = nullptr;  ///< Witnesses::blocks()

  Count read_by(int wanted_block) const;   ///< what it reads, and from how many home blocks
  Count written_to(int home_block) const;  ///< what readers add to it, and how many do
  float common(std::uint16_t home_block, std::uint16_t wanted_block) const;
};

/// By block: the elements of `others` that lie in it, with repetitions, and the number of others
/// that have some.
std::vector<AxisBlocks::Count> overlaps(std::span<const AxisReading::Place> blocks,
                                        std::span<const AxisReading::Place> others);

/// What else is known about an edge with these blocks.
struct WitnessedEdge {
  std::span<const AxisBlocks> axes;     ///< those that some end splits
  AxisReading::Sizes whole;             ///< product over the others
  unsigned home_copies, wanted_copies;  ///< EndSpace::End::distinct
  float terms, terms_inside;  ///< as EndSpace::Kind::terms and EndSpace::End::terms_inside
};

/// The time in seconds that the slowest witness takes for one micro-batch, in both directions, if
/// messages make all transfers. If that is `enough` or more, any number between both.
float slowest_witness(const Witnesses& witnesses, const WitnessedEdge& edge, const EdgeRates& rates,
                      float enough);

}  // namespace stratplan
