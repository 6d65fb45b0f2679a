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
  /// Counts along the axis for one rank. Forward, the rank needs `wanted` elements from `homes`
  /// home blocks. At most `wanted_at_home` of these elements are its own. Backward, it needs `held`
  /// elements, with repetitions, from `readers` wanted blocks. At most `held_and_wanted` of these
  /// are its own.
  struct Sizes {
    float homes = 1, wanted = 1, wanted_at_home = 1;   ///< forward
    float readers = 1, held = 1, held_and_wanted = 1;  ///< backward
    /// Each rank that a Choice may take instead has at least these shares of the counts above.
    float least_homes = 1, least_wanted = 1, least_readers = 1, least_held = 1;
    Sizes& operator*=(const Sizes& other) {
      homes *= other.homes;
      wanted *= other.wanted;
      wanted_at_home *= other.wanted_at_home;
      readers *= other.readers;
      held *= other.held;
      held_and_wanted *= other.held_and_wanted;
      least_homes *= other.least_homes;
      least_wanted *= other.least_wanted;
      least_readers *= other.least_readers;
      least_held *= other.least_held;
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
    /// upper bound of the own elements of a rank that is apart (Choice), as a share of the own
    /// elements in Sizes
    float own_apart = 0;
  };
  struct Along {
    Sizes sizes;
    Near forward, backward;
    /// whether the blocks of each end are equally long and aligned with those of the other end, so
    /// that the shares of a Meeting hold
    bool plain = true;
    /// The least counts of any rank, as shares of those in `sizes`: at a border of the axis, a rank
    /// needs less.
    struct Least {
      float homes = 1, wanted = 1, readers = 1, held = 1;
    } least{};
    bool known = true;  ///< whether the numbers of parts determine where the blocks lie
    /// Whether the places of blocks (home_places()) are the blocks themselves, contain them, or are
    /// unknown.
    enum class Located : std::uint8_t { Exactly, Within, Nowhere } located = Located::Exactly;
  };
  Along along(int home_parts, int wanted_parts);

  /// A rank whose blocks at both ends have the same number. If both ends split the axis by the same
  /// digits, all ranks are such, and any of them may be chosen: of uneven blocks, one that needs
  /// much. Counts are relative to those of Sizes.
  struct Alike {
    struct Side {
      float elements = 1, messages = 1, own = 1;
      float near = 1;         ///< share of the rank's elements that its innermost group holds
      float near_blocks = 1;  ///< number of the group's blocks that hold them
    };
    Side forward, backward;
  };
  /// `near_run`: how many consecutive blocks an innermost group holds.
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

/// Chooses the rank that a lower bound describes. Along some axes the rank is apart: its blocks at
/// both ends have nothing in common.
class Choice {
 public:
  /// For any two axes, some rank is apart along both. For three axes, there may be no such rank.
  static constexpr int most_apart = 2;
  /// `cut`: number of axes whose blocks are not plain. `at_best`: each meeting is an upper bound
  /// over several ends, so that no single end has more in common.
  Choice(int cut, bool at_best) : cut_(cut), at_best_(at_best) {}
  /// Returns an upper bound of the common part of both ends along an axis whose blocks are not
  /// plain. `meeting` is the common part that blocks of equal length would have.
  Meeting along(Meeting meeting, const AxisReading::Along& blocks);
  /// Adds an axis along which the rank is apart. Returns false if it cannot be apart along one more
  /// axis.
  bool takes_apart(float own_forward, float own_backward);
  /// Whether the rank may have any block along some axis.
  bool any_block() const { return apart_ > 0 || at_best_; }
  /// The share of a rank's greatest possible number of own elements that counts as own. `all`: the
  /// meetings, multiplied over all axes. What is not near is not own.
  float own_forward(const Meeting& all) const { return forward_ * common(all, all.near_home); }
  float own_backward(const Meeting& all) const { return backward_ * common(all, all.near_wanted); }

 private:
  float common(const Meeting& all, float near) const {
    if (!all.matched) return near > 0 ? 1 : 0;
    return both_taken() ? 1 : all.common;
  }
  bool both_taken() const { return apart_ == most_apart || (at_best_ && cut_ >= most_apart); }
  int cut_, apart_ = 0;
  bool at_best_;
  float forward_ = 1, backward_ = 1;
};

inline bool Choice::takes_apart(float own_forward, float own_backward) {
  if (apart_ == most_apart) return false;
  ++apart_;
  forward_ *= own_forward;
  backward_ *= own_backward;
  return true;
}

inline Meeting Choice::along(Meeting meeting, const AxisReading::Along& blocks) {
  if (!blocks.known || (at_best_ && cut_ > most_apart)) meeting = unknown;
  const bool apart =
      meeting.common == 0 && takes_apart(blocks.forward.own_apart, blocks.backward.own_apart);
  if (meeting.common == 0 && !apart) meeting = unknown;
  const auto bound = [&](const AxisReading::Near& near, Reach reach) -> const auto& {
    const bool halo = reach == Reach::Share && (apart || at_best_);
    return near.bounds[static_cast<std::size_t>(reach) + halo];
  };
  const auto &home = bound(blocks.forward, meeting.home_reach),
             &wanted = bound(blocks.backward, meeting.wanted_reach);
  meeting.common = 1;
  meeting.near_home = std::min(1.0F, std::max(meeting.near_home * home.times, home.floor));
  meeting.near_homes = meeting.near_homes * home.counted + home.more;
  meeting.near_wanted = std::min(1.0F, std::max(meeting.near_wanted * wanted.times, wanted.floor));
  meeting.near_readers = meeting.near_readers * wanted.counted + wanted.more;
  return meeting;
}

/// A lower bound of an edge's cost, from the numbers of parts of both ends along each axis. The
/// places of the digits need not be known yet.
class EdgePrices {
 public:
  /// What the chosen rank needs, relative to AxisReading::Sizes: AxisReading::Alike multiplied over
  /// the axes that both ends split alike.
  struct Scale {
    float elements = 1, messages = 1, own = 1;
    Scale& operator*=(const AxisReading::Alike::Side& side) {
      elements *= side.elements;
      messages *= side.messages;
      own *= side.own;
      return *this;
    }
  };
  /// `products`: AxisReading::Sizes multiplied over all axes. `terms`: number of ranks that
  /// contribute to the same block's gradient.
  EdgePrices(const EdgeRates& rates, const AxisReading::Sizes& products, float terms);
  /// What the chosen rank needs in each direction.
  struct Scales {
    Scale forward{}, backward{};
  };
  /// How the two ends lie to each other, multiplied over all axes.
  struct Lying {
    /// as in Meeting; near_wanted and near_readers are also multiplied by the number of terms in
    /// each innermost group
    float near_home, near_homes, near_wanted, near_readers;
    float own_forward, own_backward;  ///< as in Choice
    /// whether the rank may have any block along some axis; false if `scales` has the least counts
    bool any_block;
    Scales scales{};
  };
  float seconds(const EdgeRates& rates, const Lying& lying) const;
  /// The cost if all data come from other innermost groups. No pair of ends with these numbers of
  /// parts has a greater bound, unless both split some axis alike.
  float most() const { return forward_.chosen.far + backward_.chosen.far; }
  /// A lower bound over all pairs of ends with these numbers of parts.
  float least(const EdgeRates& rates) const {
    return forward_.least_seconds(rates) + backward_.least_seconds(rates);
  }

 private:
  /// The data that a rank needs, its own included, and how much of these data can be near.
  struct Amount {
    Amount(const EdgeRates& rates, float all_messages, float all_elements, float own);
    float far_of(const EdgeRates& rates, const Scale& scale) const {
      return messages * scale.messages * rates.message + elements * scale.elements * rates.element;
    }
    float messages, elements, far, most_near_elements;
  };
  struct Direction {
    float seconds(const EdgeRates& rates, bool any_block, float common, float near_blocks,
                  float near_elements, const Scale& scale) const;
    /// seconds() of any rank of which as much is near as can be. This short form of it matters: it
    /// is computed for every pair of kinds.
    float least_seconds(const EdgeRates& rates) const;
    static constexpr float rounding = 1e-4F;
    Amount chosen, least;  ///< for the chosen rank, and the least for any rank
    float own;
  };
  Direction forward_, backward_;
  float held_;  ///< elements of one term of the gradient
};

/// The ranks of an innermost group together hold at most `innermost` times the elements that one
/// rank can own.
inline EdgePrices::Amount::Amount(const EdgeRates& rates, float all_messages, float all_elements,
                                  float own)
    : messages(all_messages),
      elements(all_elements),
      far(messages * rates.message + elements * rates.element),
      most_near_elements(static_cast<float>(rates.innermost) * own) {}

[[gnu::always_inline]] inline float EdgePrices::Direction::seconds(const EdgeRates& rates,
                                                                   bool any_block, float common,
                                                                   float near_blocks,
                                                                   float near_elements,
                                                                   const Scale& scale) const {
  const Amount& all = any_block ? least : chosen;
  const float messages = all.messages * scale.messages, elements = all.elements * scale.elements;
  if (common == 1 && messages <= 1 + rounding) return 0;
  const float own_elements = std::min(own * common * scale.own, elements),
              own_messages = common > 0 ? 1.0F : 0.0F,
              near = std::min({std::max(near_blocks, own_messages), messages,
                               static_cast<float>(rates.innermost)}),
              near_all = std::min(
                  {std::max(own_elements, near_elements), elements, all.most_near_elements});
  return std::max(0.0F, all.far_of(rates, scale) - near * rates.near_message -
                            near_all * rates.near_element - own_messages * rates.own_message -
                            own_elements * rates.own_element);
}

[[gnu::always_inline]] inline float EdgePrices::Direction::least_seconds(
    const EdgeRates& rates) const {
  const float near = std::min(least.messages, static_cast<float>(rates.innermost)),
              near_all = std::min(least.elements, least.most_near_elements),
              seconds = least.far - near * rates.near_message - near_all * rates.near_element -
                        rates.own_message - std::min(own, least.elements) * rates.own_element;
  return least.messages <= 1 + rounding ? 0 : std::max(0.0F, seconds);
}

[[gnu::always_inline]] inline EdgePrices::EdgePrices(const EdgeRates& rates,
                                                     const AxisReading::Sizes& of, float terms)
    : forward_{Amount(rates, of.homes, of.wanted, of.wanted_at_home),
               Amount(rates, of.homes * of.least_homes, of.wanted * of.least_wanted,
                      of.wanted_at_home),
               of.wanted_at_home},
      backward_{Amount(rates, terms * of.readers, terms * of.held, of.held_and_wanted),
                Amount(rates, terms * of.readers * of.least_readers,
                       terms * of.held * of.least_held, of.held_and_wanted),
                of.held_and_wanted},
      held_(of.held) {}

[[gnu::always_inline]] inline float EdgePrices::seconds(const EdgeRates& rates,
                                                        const Lying& lying) const {
  const Scale &forward = lying.scales.forward, &backward = lying.scales.backward;
  return forward_.seconds(rates, lying.any_block, lying.own_forward, lying.near_homes,
                          lying.near_home * forward_.chosen.elements * forward.elements, forward) +
         backward_.seconds(rates, lying.any_block, lying.own_backward, lying.near_readers,
                           lying.near_wanted * held_ * backward.elements, backward);
}

}  // namespace stratplan
