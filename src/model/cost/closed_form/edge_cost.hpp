#pragma once
// The cost of an edge. A direction (forward or backward) costs the time in which the slowest rank
// receives its data. Data from near ranks, which are in the same innermost group, cost less than
// data from far ranks (ArrivalCounts). The cost of an edge is the sum of both directions.
//
// edge_cost() gives the exact cost of a pair of candidates. Where collectives make the transfers of
// a direction (redistribution.hpp), the direction costs the time of these collectives, and of the
// copies that pack and unpack them. The search prices messages instead (ADR 0016), with
// edge_cost_in_messages(). For its many candidates, EdgePrices gives a lower bound of that, from
// the splits of both ends along each axis alone. The number of elements that a rank needs is the
// product of its numbers along the axes. The same holds for the numbers of near elements and of own
// elements. The bound describes one rank, chosen axis by axis. Along each axis, this rank has a
// block with as much halo as a block in the middle. If the digits of both ends differ along an
// axis, the chosen rank can also be apart along that axis: its two blocks have nothing in common.
// That rank may have any block along the axis, so the smallest block counts.
// tests/model/cost/edge_cost_test.cpp compares the bound with the exact cost.
#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "model/cost/op_cost.hpp"
#include "model/partition/axis_digits.hpp"
#include "model/partition/distribution.hpp"

namespace stratplan {

/// The rates of an edge, in seconds per message and per element. `message` and `element` are for
/// data that come from other innermost groups and are packed and unpacked. The `near_` rates are
/// the saving for data from the same innermost group. The `own_` rates are the further saving for a
/// rank's own data.
struct EdgeRates {
  float message = 0, element = 0;
  float near_message = 0, near_element = 0;
  float own_message = 0, own_element = 0;
  int innermost = 1;                   ///< number of ranks in an innermost group
  float copy = 0, copied_element = 0;  ///< of kernels that pack and unpack collectives
  int ranks = 1;
  DataType type = DataType::F32;
  const MachineProfile* machine = nullptr;  ///< prices collectives
};
/// `machine` must outlive the result.
EdgeRates edge_rates(int ranks, const MachineProfile& machine, DataType type = DataType::F32);

/// A number forward and a number backward. Both directions have the same arithmetic, and the search
/// needs it billions of times. So the compiler does both at once.
using Both = float __attribute__((vector_size(2 * sizeof(float))));
inline float forward_of(Both both) { return both[0]; }
inline float backward_of(Both both) { return both[1]; }
inline Both at_most(Both a, Both b) { return a < b ? a : b; }
inline Both at_least(Both a, Both b) { return a < b ? b : a; }

/// The exact cost of the transfers of one micro-batch, in both directions, as they are lowered.
/// Requires that both ends lie on the same ranks.
Seconds edge_cost(const EdgeRates& rates, Distribution home, Needed needed);
/// The same if messages make all transfers.
Seconds edge_cost_in_messages(const EdgeRates& rates, Distribution home, Needed needed);

/// Describes one axis of an edge's tensor for any numbers of parts: the home blocks that hold the
/// axis, and the wanted blocks that read it.
class AxisReading {
 public:
  AxisReading(const Distribution& home, const Needed& needed, Axis axis);
  /// Counts along the axis for one rank. Forward, the rank needs the elements that it wants, and
  /// gets messages from the home blocks that hold them. Backward, it needs the elements that it
  /// holds, with repetitions, and gets messages from the wanted blocks that read them. At most `own`
  /// of the elements are its own.
  struct Sizes {
    Both messages{1, 1}, elements{1, 1}, own{1, 1};
    /// a rank that is apart has at least these shares of the counts above
    Both least_messages{1, 1}, least_elements{1, 1};
    Sizes& operator*=(const Sizes& other) {
      messages *= other.messages;
      elements *= other.elements;
      own *= other.own;
      least_messages *= other.least_messages;
      least_elements *= other.least_elements;
      return *this;
    }
  };
  /// The near part of the data of one direction, derived from a Meeting's shares and blocks along
  /// the axis. Elements are given as shares of the elements that a rank needs.
  struct Near {
    /// At most the share min(1, max(share * times, floor)) of the elements is near. These elements
    /// lie in at most blocks * counted + more blocks. `share` and `blocks` are those of the
    /// Meeting. One struct for all cases needs one load and no branch.
    struct Bound {
      float times = 1, floor = 0, counted = 1, more = 0;
    };
    /// by Reach; the last bound is for Reach::Share if the halo counts as near
    std::array<Bound, 6> bounds{};
    /// upper bound of the own elements of a rank that is apart, as a share of the own elements in
    /// Sizes
    float own_apart = 0;
  };
  /// Counts of one rank, relative to those of Sizes.
  struct Alike {
    Both elements{1, 1}, messages{1, 1}, own{1, 1};
    Both near{1, 1};         ///< share of the rank's elements that its innermost group holds
    Both near_blocks{1, 1};  ///< number of the group's blocks that hold them
  };
  struct Along {
    Sizes sizes;
    Near forward, backward;
    /// whether the blocks of each end are equally long and aligned with those of the other end, so
    /// that the shares of a Meeting hold
    bool plain = true;
    /// the least counts of any rank: at a border of the axis, a rank needs less
    Alike least{};
    bool known = true;  ///< whether the numbers of parts determine where the blocks lie
    /// Whether the places of blocks (home_places()) are the blocks themselves, contain them, or are
    /// unknown.
    enum class Located : std::uint8_t { Exactly, Within, Nowhere } located = Located::Exactly;
  };
  Along along(int home_parts, int wanted_parts);

  /// A rank whose blocks at both ends have the same number. If both ends split the axis by the same
  /// digits, all ranks are such, and any of them may be chosen: of uneven blocks, one that needs
  /// much. `near_run`: how many consecutive blocks an innermost group holds.
  Alike alike(int parts, int near_run);
  /// Where a block lies: within an interval, with at least so many elements.
  struct Place {
    Interval within;
    std::int64_t least = 0;
  };
  /// The places of the blocks of either end, in the order of their indices. Their beginnings and
  /// their ends ascend.
  std::vector<Place> home_places(int parts) const;
  std::vector<Place> wanted_places(int parts) const;

 private:
  const std::vector<Interval>& home_blocks(int parts);
  const std::vector<Interval>& wanted_blocks(int parts);
  Along of_unknown_blocks(int home_parts, int wanted_parts) const;
  Along::Located within() const;
  Distribution home_;
  Needed needed_;
  Axis axis_;
  std::int64_t extent_ = 1;
  bool windowless_ = true, shifted_ = false;
  /// the blocks by number of parts; filled on first use
  std::map<int, std::vector<Interval>> home_blocks_, wanted_blocks_;
};

/// A lower bound of an edge's cost, from the numbers of parts of both ends along each axis. The
/// places of the digits need not be known yet.
class EdgePrices {
 public:
  /// What the chosen rank needs, relative to AxisReading::Sizes: AxisReading::Alike multiplied over
  /// the axes that both ends split alike.
  struct Scales {
    Both elements{1, 1}, messages{1, 1}, own{1, 1};
    Scales& operator*=(const AxisReading::Alike& alike) {
      elements *= alike.elements;
      messages *= alike.messages;
      own *= alike.own;
      return *this;
    }
  };
  /// `products`: AxisReading::Sizes multiplied over all axes. `terms`: number of ranks that
  /// contribute to the same block's gradient.
  EdgePrices(const EdgeRates& rates, const AxisReading::Sizes& products, float terms);
  /// How the two ends lie to each other, multiplied over all axes.
  struct Lying {
    /// shares and blocks as in Meeting; backward, also multiplied by the number of terms in each
    /// innermost group
    Both near, near_blocks;
    Both own;  ///< share of the own elements in Sizes that counts as own
    /// whether the rank may have any block along some axis; false if `scales` has the least counts
    bool any_block;
    Scales scales{};
  };
  float seconds(const EdgeRates& rates, const Lying& lying) const;
  /// The cost if all data come from other innermost groups. No pair of ends with these numbers of
  /// parts has a greater bound, unless both split some axis alike.
  float most() const { return forward_of(chosen_.far) + backward_of(chosen_.far); }
  /// A lower bound over all pairs of ends with these numbers of parts: any rank of which as much is
  /// near as can be. This short form of seconds() matters: it is computed for every pair of kinds.
  float least(const EdgeRates& rates) const;

 private:
  /// The data that a rank needs, its own included.
  struct Amount {
    Amount(const EdgeRates& rates, Both all_messages, Both all_elements);
    Both far_of(const EdgeRates& rates, const Scales& scales) const {
      return messages * scales.messages * rates.message +
             elements * scales.elements * rates.element;
    }
    Both messages, elements, far;
  };
  /// The sum over both directions. A rank with one message, and all of it its own, receives nothing.
  static float sum(Both seconds, Both messages) {
    constexpr float rounding = 1e-4F;
    seconds = messages <= 1 + rounding ? Both{} : at_least(seconds, Both{});
    return forward_of(seconds) + backward_of(seconds);
  }
  Amount chosen_, least_;  ///< for the chosen rank, and the least for any rank
  Both own_;
  Both one_term_;   ///< elements, of one term of the gradient
  Both most_near_;  ///< elements
  Both innermost_;
};

inline EdgePrices::Amount::Amount(const EdgeRates& rates, Both all_messages, Both all_elements)
    : messages(all_messages),
      elements(all_elements),
      far(messages * rates.message + elements * rates.element) {}

/// The ranks of an innermost group together hold at most `innermost` times the elements that one
/// rank can own.
[[gnu::always_inline]] inline EdgePrices::EdgePrices(const EdgeRates& rates,
                                                     const AxisReading::Sizes& of, float terms)
    : chosen_(rates, of.messages * Both{1, terms}, of.elements * Both{1, terms}),
      least_(rates, chosen_.messages * of.least_messages, chosen_.elements * of.least_elements),
      own_(of.own),
      one_term_(of.elements),
      most_near_(static_cast<float>(rates.innermost) * own_),
      innermost_(Both{} + static_cast<float>(rates.innermost)) {}

[[gnu::always_inline]] inline float EdgePrices::least(const EdgeRates& rates) const {
  const Both near = at_most(least_.messages, innermost_),
             near_all = at_most(least_.elements, most_near_);
  return sum(least_.far - near * rates.near_message - near_all * rates.near_element -
                 rates.own_message - at_most(own_, least_.elements) * rates.own_element,
             least_.messages);
}

[[gnu::always_inline]] inline float EdgePrices::seconds(const EdgeRates& rates,
                                                        const Lying& lying) const {
  const Amount& all = lying.any_block ? least_ : chosen_;
  const Both messages = all.messages * lying.scales.messages,
             elements = all.elements * lying.scales.elements,
             own_elements = at_most(own_ * lying.own * lying.scales.own, elements),
             own_messages = lying.own > 0 ? Both{1, 1} : Both{},
             near =
                 at_most(at_most(at_least(lying.near_blocks, own_messages), messages), innermost_),
             near_elements = lying.near * one_term_ * lying.scales.elements,
             near_all =
                 at_most(at_most(at_least(own_elements, near_elements), elements), most_near_);
  return sum(all.far_of(rates, lying.scales) - near * rates.near_message -
                 near_all * rates.near_element - own_messages * rates.own_message -
                 own_elements * rates.own_element,
             lying.own == 1 ? messages : Both{2, 2});
}

}  // namespace stratplan
