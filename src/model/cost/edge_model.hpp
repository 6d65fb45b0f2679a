#pragma once
// What an edge costs in closed form: how much of what a rank needs lies on itself, in its innermost group and elsewhere, from the splits of both ends along each
// axis alone; never a list of messages. What the ends have in common multiplies over axes, so a pair of candidates costs a few products.
//
// Approximations beside the lowered program, measured in tests/model/cost/edge_model_test.cpp: forward and backward count the rank that each is worst for; a rank
// sends as many messages as it receives, all copies of one direction have the same size, and the halo of an axis that several innermost groups
// divide comes from another group.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "model/cost/step_cost.hpp"
#include "model/partition/axis_digits.hpp"
#include "model/partition/distribution.hpp"

namespace stratplan {

/// What an edge costs, in seconds: per message and element if all come from other innermost groups and are packed and unpacked, and what is saved of this by those
/// that are near, and further by those that a rank has itself.
struct EdgeRates {
  float message = 0, element = 0;
  float near_message = 0, near_element = 0;
  float own_message = 0, own_element = 0;
  int innermost = 1;  ///< ranks of an innermost group
};
EdgeRates edge_rates(int ranks, const MachineProfile& machine, DataType type = DataType::F32);

/// How an axis of a tensor is held and read, whatever the number of parts.
class AxisReading {
 public:
  AxisReading(const Distribution& home, const Needed& needed, Axis axis);
  /// Of the rank that it is worst for: elements along the axis, blocks of the other end that they lie in (or that want them), and what of them the rank has itself
  /// where one end's block lies in the other's. The share without the halo, of both.
  struct Sizes {
    float homes = 1, wanted = 1, wanted_at_home = 1;   ///< forward
    float readers = 1, held = 1, held_and_wanted = 1;  ///< backward: with repetitions
    float none = 1, neither = 1;                       ///< eight are multiplied in two instructions
    Sizes& operator*=(const Sizes& other) {
      homes *= other.homes;
      wanted *= other.wanted;
      wanted_at_home *= other.wanted_at_home;
      readers *= other.readers;
      held *= other.held;
      held_and_wanted *= other.held_and_wanted;
      none *= other.none;
      neither *= other.neither;
      return *this;
    }
  };
  /// The share of them that is no halo.
  struct Unhaloed {
    float wanted = 1, homes = 1, held = 1, readers = 1;
    bool all() const { return wanted == 1 && homes == 1 && held == 1 && readers == 1; }
  };
  Sizes sizes(int home_parts, int wanted_parts) const;
  Unhaloed unhaloed(int home_parts, int wanted_parts, const Sizes& sizes) const;
  /// The tensor lies somewhere in a longer axis: blocks of both ends never match.
  bool shifted() const { return shifted_; }

 private:
  std::vector<Interval> home_blocks(int parts) const;
  std::vector<Interval> wanted_blocks(int parts) const;
  Distribution home_;
  Needed needed_;
  Axis axis_;
  std::int64_t extent_ = 1;
  bool plain_ = true, shifted_ = false;
};

/// The halo of an axis that several innermost groups divide is not near.
inline Meeting with_halo(Meeting meeting, const AxisReading::Unhaloed& unhaloed) {
  if (meeting.home_spread) {
    meeting.near_home *= unhaloed.wanted;
    meeting.near_homes *= unhaloed.homes;
  }
  if (meeting.wanted_spread) {
    meeting.near_wanted *= unhaloed.held;
    meeting.near_readers *= unhaloed.readers;
  }
  return meeting;
}

/// What an edge costs between two numbers of parts along each axis, before anything is known of the places of their digits.
class EdgePrices {
 public:
  /// Products over the axes of AxisReading::Sizes, and `terms`, ranks that contribute to the same block's gradient. `halo`: a block with its halo is at most so many
  /// times the block.
  EdgePrices(const EdgeRates& rates, const AxisReading::Sizes& products, float terms,
             float halo = 1);
  /// `meetings`: products over the axes; near_wanted and near_readers besides times the terms in each innermost group.
  float seconds(const EdgeRates& rates, const Meeting& meetings) const;
  /// Nothing in common anywhere near: no pair costs more,
  float most() const { return forward_.far + backward_.far; }
  /// and none less.
  float least() const { return least_; }

 private:
  struct Direction {
    Direction(const EdgeRates& rates, float all_messages, float all_elements, float own_elements)
        : messages(all_messages),
          elements(all_elements),
          own(own_elements),
          far(messages * rates.message + elements * rates.element) {}
    float seconds(const EdgeRates& rates, float common, float near_blocks,
                  float near_elements) const;
    /// The ranks of an innermost group have no more than each as much as this one.
    float least(const EdgeRates& rates, float halo) const {
      const auto group = static_cast<float>(rates.innermost);
      return seconds(rates, 1, group, std::min(elements, group * halo * own));
    }
    float messages, elements, own, far;
  };
  Direction forward_, backward_;
  float least_;
};

inline float EdgePrices::Direction::seconds(const EdgeRates& rates, float common, float near_blocks,
                                            float near_elements) const {
  constexpr float rounding = 1e-4F;
  const float own_elements = own * common, near = std::min(std::max(near_blocks, common), messages);
  const float all = far - near * rates.near_message -
                    std::max(own_elements, near_elements) * rates.near_element -
                    common * rates.own_message - own_elements * rates.own_element;
  return messages <= common + rounding ? 0 : all;
}

inline EdgePrices::EdgePrices(const EdgeRates& rates, const AxisReading::Sizes& products,
                              float terms, float halo)
    : forward_(rates, products.homes, products.wanted, products.wanted_at_home),
      backward_(rates, terms * products.readers, terms * products.held, products.held_and_wanted),
      least_(forward_.least(rates, halo) + backward_.least(rates, halo)) {
  backward_.elements = products.held;  // what is near of each term is counted by terms
}

inline float EdgePrices::seconds(const EdgeRates& rates, const Meeting& meetings) const {
  return forward_.seconds(rates, meetings.common, meetings.near_homes,
                          meetings.near_home * forward_.elements) +
         backward_.seconds(rates, meetings.common, meetings.near_readers,
                           meetings.near_wanted * backward_.elements);
}

/// One pass in each direction of one pair.
Seconds edge_cost(const EdgeRates& rates, const Distribution& home, const Needed& needed);

}  // namespace stratplan
