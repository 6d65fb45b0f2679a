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
#include "model/cost/closed_form/axis_reading.hpp"
#include "model/cost/op_cost.hpp"
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

/// The exact cost of the transfers of one micro-batch, in both directions, as they are lowered.
/// Requires that both ends lie on the same ranks.
Seconds edge_cost(const EdgeRates& rates, Distribution home, Needed needed);
/// The same if messages make all transfers.
Seconds edge_cost_in_messages(const EdgeRates& rates, Distribution home, Needed needed);

/// A lower bound of an edge's cost, from the numbers of parts of both ends along each axis. The
/// places of the digits need not be known yet.
class EdgePrices {
 public:
  /// What the chosen rank needs, relative to AxisReading::Sizes: AxisReading::Alike multiplied over
  /// the axes that both ends split alike.
  struct Scales {
    BothWays elements{1, 1}, messages{1, 1}, own{1, 1};
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
    BothWays near, near_blocks;
    BothWays own;  ///< share of the own elements in Sizes that counts as own
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
    Amount(const EdgeRates& rates, BothWays all_messages, BothWays all_elements);
    BothWays far_of(const EdgeRates& rates, const Scales& scales) const {
      return messages * scales.messages * rates.message +
             elements * scales.elements * rates.element;
    }
    BothWays messages, elements, far;
  };
  /// The sum over both directions. A rank with one message, and all of it its own, receives
  /// nothing.
  static float sum(BothWays seconds, BothWays messages) {
    constexpr float rounding = 1e-4F;
    seconds = messages <= 1 + rounding ? BothWays{} : at_least(seconds, BothWays{});
    return forward_of(seconds) + backward_of(seconds);
  }
  Amount chosen_, least_;  ///< for the chosen rank, and the least for any rank
  BothWays own_;
  BothWays one_term_;   ///< elements, of one term of the gradient
  BothWays most_near_;  ///< elements
  BothWays innermost_;
};

inline EdgePrices::Amount::Amount(const EdgeRates& rates, BothWays all_messages,
                                  BothWays all_elements)
    : messages(all_messages),
      elements(all_elements),
      far(messages * rates.message + elements * rates.element) {}

/// The ranks of an innermost group together hold at most `innermost` times the elements that one
/// rank can own.
[[gnu::always_inline]] inline EdgePrices::EdgePrices(const EdgeRates& rates,
                                                     const AxisReading::Sizes& of, float terms)
    : chosen_(rates, of.messages * BothWays{1, terms}, of.elements * BothWays{1, terms}),
      least_(rates, chosen_.messages * of.least_messages, chosen_.elements * of.least_elements),
      own_(of.own),
      one_term_(of.elements),
      most_near_(static_cast<float>(rates.innermost) * own_),
      innermost_(BothWays{} + static_cast<float>(rates.innermost)) {}

[[gnu::always_inline]] inline float EdgePrices::least(const EdgeRates& rates) const {
  const BothWays near = at_most(least_.messages, innermost_),
                 near_all = at_most(least_.elements, most_near_);
  return sum(least_.far - near * rates.near_message - near_all * rates.near_element -
                 rates.own_message - at_most(own_, least_.elements) * rates.own_element,
             least_.messages);
}

[[gnu::always_inline]] inline float EdgePrices::seconds(const EdgeRates& rates,
                                                        const Lying& lying) const {
  const Amount& all = lying.any_block ? least_ : chosen_;
  const BothWays messages = all.messages * lying.scales.messages,
                 elements = all.elements * lying.scales.elements,
                 own_elements = at_most(own_ * lying.own * lying.scales.own, elements),
                 own_messages = lying.own > 0 ? BothWays{1, 1} : BothWays{},
                 near = at_most(at_most(at_least(lying.near_blocks, own_messages), messages),
                                innermost_),
                 near_elements = lying.near * one_term_ * lying.scales.elements,
                 near_all =
                     at_most(at_most(at_least(own_elements, near_elements), elements), most_near_);
  return sum(all.far_of(rates, lying.scales) - near * rates.near_message -
                 near_all * rates.near_element - own_messages * rates.own_message -
                 own_elements * rates.own_element,
             lying.own == 1 ? messages : BothWays{2, 2});
}

}  // namespace stratplan
