#pragma once
// What an edge costs: the price of what a rank receives in one direction, by how near it comes from
// (ArrivalCounts), on the rank that it is worst for; of both directions together.
//
// Between two candidates that is exact. Over all candidates it is bounded from below, from the
// splits of both ends along each axis alone: what a rank needs multiplies over axes, and so does
// what of it is near or its own. The bound speaks of one rank, chosen axis by axis: along each it
// has a block with as much halo as blocks in the middle have. Where digits of an axis lie apart, a
// rank with nothing in common along it can be chosen besides, if that axis' own block is free; it
// counts as the smallest. tests/model/cost/edge_model_test.cpp holds the bound against the exact
// price.
#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "model/cost/op_cost.hpp"
#include "model/partition/axis_digits.hpp"
#include "model/partition/distribution.hpp"
#include "model/partition/transfer.hpp"

namespace stratplan {

/// What an edge costs, in seconds: per message and element if all come from other innermost groups
/// and are packed and unpacked, and what is saved of this by those that are near, and further by
/// those that a rank has itself.
struct EdgeRates {
  float message = 0, element = 0;
  float near_message = 0, near_element = 0;
  float own_message = 0, own_element = 0;
  int innermost = 1;  ///< ranks of an innermost group
};
EdgeRates edge_rates(int ranks, const MachineProfile& machine, DataType type = DataType::F32);

/// One pass in each direction, exactly. The ends lie on the same ranks.
Seconds edge_cost(const EdgeRates& rates, Distribution home, Needed needed);

/// How an axis of a tensor is held and read, whatever the number of parts.
class AxisReading {
 public:
  AxisReading(const Distribution& home, const Needed& needed, Axis axis);
  /// Along the axis: elements that a rank needs, blocks of the other end that they lie in (or that
  /// want them), and at most so many of them are its own. What is left of this on any other rank,
  /// as a share.
  struct Sizes {
    float homes = 1, wanted = 1, wanted_at_home = 1;   ///< forward
    float readers = 1, held = 1, held_and_wanted = 1;  ///< backward: with repetitions
    /// Shares of the above that any other rank has at least.
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
  /// In one direction, what a Meeting's shares and blocks amount to along the axis. Elements are
  /// shares of what a rank needs.
  struct Near {
    /// At most min(1, max(share * times, floor)) of the elements, and blocks * counted + more
    /// blocks. One struct is one load, and no branch.
    struct Bound {
      float times = 1, floor = 0, counted = 1, more = 0;
    };
    std::array<Bound, 6> bounds{};  ///< by Reach; the last: Reach::Share, with halo all the same
    float own_apart = 0;  ///< from one block that is not its own place's, of what can be its own
  };
  struct Along {
    Sizes sizes;
    Near forward, backward;
    bool plain = true;  ///< equal blocks that end where the other end's do: shares of Meeting hold
    bool known = true;  ///< whether blocks lie where the numbers of parts say
  };
  Along along(int home_parts, int wanted_parts);

 private:
  const std::vector<Interval>& home_blocks(int parts);
  const std::vector<Interval>& wanted_blocks(int parts);
  Along of_unknown_blocks(int home_parts, int wanted_parts) const;
  Distribution home_;
  Needed needed_;
  Axis axis_;
  std::int64_t extent_ = 1;
  bool windowless_ = true, shifted_ = false;
  std::map<int, std::vector<Interval>> home_blocks_, wanted_blocks_;  ///< by parts, once asked for
};

/// How the rank that a bound speaks of is chosen: along which axes it is apart from its own.
class Choice {
 public:
  /// `cut`: axes whose blocks are not plain. `at_best`: meetings are the best of several ends'; no
  /// one of these has more in common.
  Choice(int cut, bool at_best) : cut_(cut), at_best_(at_best) {}
  /// What the ends have in common along an axis whose blocks are not plain.
  Meeting along(Meeting meeting, const AxisReading::Along& blocks);
  /// Takes an axis along which the rank is apart, if it can be apart along one more.
  bool takes_apart(float own_forward, float own_backward);
  /// Along some axis the rank may have any block.
  bool any_block() const { return apart_ > 0 || at_best_; }
  /// Of what can be the rank's own. `common`: product over all axes.
  float own_forward(float common) const { return forward_ * (both_taken() ? 1 : common); }
  float own_backward(float common) const { return backward_ * (both_taken() ? 1 : common); }

 private:
  /// Some rank is apart along any two axes, but perhaps none along three.
  static constexpr int most_apart = 2;
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

/// What an edge costs at least between two numbers of parts along each axis, before anything is
/// known of the places of their digits.
class EdgePrices {
 public:
  /// Products over the axes of AxisReading::Sizes, and `terms`, ranks that contribute to the same
  /// block's gradient.
  EdgePrices(const EdgeRates& rates, const AxisReading::Sizes& products, float terms);
  /// `met`: over all axes; near_wanted and near_readers besides times the terms in each innermost
  /// group.
  float seconds(const EdgeRates& rates, const Meeting& met, const Choice& choice) const;
  /// Nothing in common anywhere near: no pair costs more,
  float most() const { return forward_.chosen.far + backward_.chosen.far; }
  /// and none less.
  float least() const { return least_; }

 private:
  /// What a rank receives, itself included, and how much of it can be near.
  struct Amount {
    Amount(const EdgeRates& rates, float all_messages, float all_elements, float own);
    float messages, elements, far, most_near, most_near_elements;
  };
  struct Direction {
    float seconds(const EdgeRates& rates, bool any_block, float common, float near_blocks,
                  float near_elements) const;
    Amount chosen, least;  ///< of the rank that is chosen; of any
    float own;
  };
  Direction forward_, backward_;
  float held_;  ///< elements of one term
  float least_ = 0;
};

/// The ranks of an innermost group have no more than each as much as a rank can have of its own.
inline EdgePrices::Amount::Amount(const EdgeRates& rates, float all_messages, float all_elements,
                                  float own)
    : messages(all_messages),
      elements(all_elements),
      far(messages * rates.message + elements * rates.element),
      most_near(std::min(messages, static_cast<float>(rates.innermost))),
      most_near_elements(std::min(elements, static_cast<float>(rates.innermost) * own)) {}

[[gnu::always_inline]] inline float EdgePrices::Direction::seconds(const EdgeRates& rates,
                                                                   bool any_block, float common,
                                                                   float near_blocks,
                                                                   float near_elements) const {
  constexpr float rounding = 1e-4F;
  const Amount& all = any_block ? least : chosen;
  if (common == 1 && all.messages <= 1 + rounding) return 0;
  const float own_elements = std::min(own * common, all.elements),
              own_messages = common > 0 ? 1.0F : 0.0F,
              near = std::min(std::max(near_blocks, own_messages), all.most_near),
              near_all = std::min(std::max(own_elements, near_elements), all.most_near_elements);
  return std::max(0.0F, all.far - near * rates.near_message - near_all * rates.near_element -
                            own_messages * rates.own_message - own_elements * rates.own_element);
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
      held_(of.held) {
  const auto least_of = [&](const Direction& one) {
    return one.seconds(rates, true, 1, one.least.most_near, one.least.most_near_elements);
  };
  least_ = least_of(forward_) + least_of(backward_);
}

inline float EdgePrices::seconds(const EdgeRates& rates, const Meeting& met,
                                 const Choice& choice) const {
  const bool any = choice.any_block();
  return forward_.seconds(rates, any, choice.own_forward(met.common), met.near_homes,
                          met.near_home * forward_.chosen.elements) +
         backward_.seconds(rates, any, choice.own_backward(met.common), met.near_readers,
                           met.near_wanted * held_);
}

}  // namespace stratplan
