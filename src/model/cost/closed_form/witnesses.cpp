#include "model/cost/closed_form/witnesses.hpp"

#include <algorithm>

#include "model/base/index.hpp"
#include "model/base/sorted_range.hpp"

namespace stratplan {
namespace {

constexpr int most_witnesses = 6, most_near = 16;

/// The counts of one of `blocks`, which is read, or written, once in each position. A block that is
/// the whole axis meets all others that are not empty.
AxisBlocks::Count at_least(std::span<const AxisReading::Place> blocks, int number,
                           std::span<const AxisReading::Place> others) {
  const std::int64_t least = blocks[at(number)].least;
  const std::int64_t met =
      blocks.size() > 1 ? 1 : std::ranges::count_if(others, [](const AxisReading::Place& other) {
        return other.least > 0;
      });
  return {static_cast<float>(least), least > 0 ? static_cast<float>(met) : 0};
}

/// What one rank receives in one direction.
struct Received {
  AxisBlocks::Count all, near{0, 0}, own{0, 0};
  void add_near(float elements, float times) {
    near.elements += elements * times;
    near.blocks += elements > 0 ? times : 0;
  }
  float seconds(const EdgeRates& rates) const {
    // Nothing moves. Where places only contain blocks, `own` may be more than all.
    if (own.blocks >= all.blocks && own.elements >= all.elements) return 0;
    return all.blocks * rates.message + all.elements * rates.element -
           near.blocks * rates.near_message - near.elements * rates.near_element -
           own.blocks * rates.own_message - own.elements * rates.own_element;
  }
};

}  // namespace

Witnesses::Witnesses(int ranks, int innermost) : near_(innermost) {
  if (innermost > most_near) return;
  for (int i = 1; i <= std::min(most_witnesses, ranks); ++i) {
    const int rank = spread_evenly(i, ranks);
    first_of_group_.push_back(rank / innermost * innermost);
    places_.push_back(rank % innermost);
  }
}

std::vector<std::uint16_t> Witnesses::blocks(const AxisDigits& digits) const {
  std::vector<std::uint16_t> blocks;
  for (const int first : first_of_group_)
    for (int rank = first; rank < first + near_; ++rank)
      blocks.push_back(static_cast<std::uint16_t>(digits.index_of(rank)));
  return blocks;
}

std::vector<AxisBlocks::Count> overlaps(std::span<const AxisReading::Place> blocks,
                                        std::span<const AxisReading::Place> others) {
  std::vector<AxisBlocks::Count> counts;
  auto first = others.begin();
  for (const AxisReading::Place& place : blocks) {
    const Interval& block = place.within;
    AxisBlocks::Count& count = counts.emplace_back(AxisBlocks::Count{0, 0});
    first = gallop(first, others.end(), [&](const AxisReading::Place& other) {
      return other.within.end <= block.begin;
    });
    for (auto other = first; other != others.end() && other->within.begin < block.end; ++other) {
      const std::int64_t common = intersect(other->within, block).size();
      count.elements += static_cast<float>(common);
      count.blocks += common > 0 ? 1 : 0;
    }
  }
  return counts;
}

AxisBlocks::Count AxisBlocks::read_by(int wanted_block) const {
  if (home.empty()) return {forward_of(sizes.elements), forward_of(sizes.messages)};
  return exact ? reads[at(wanted_block)] : at_least(wanted, wanted_block, home);
}

AxisBlocks::Count AxisBlocks::written_to(int home_block) const {
  if (home.empty()) return {backward_of(sizes.elements), backward_of(sizes.messages)};
  return exact ? writes[at(home_block)] : at_least(home, home_block, wanted);
}

float AxisBlocks::common(std::uint16_t home_block, std::uint16_t wanted_block) const {
  if (!home.empty())
    return static_cast<float>(
        intersect(home[home_block].within, wanted[wanted_block].within).size());
  return nesting.nested(home_block, wanted_block) ? forward_of(sizes.own) : 0;
}

namespace {

/// The elements that one rank holds and another one wants, by their places in Witnesses::blocks().
float common(const WitnessedEdge& edge, float elements, std::size_t holder, std::size_t reader) {
  for (const AxisBlocks& axis : edge.axes) {
    elements *= axis.common(axis.of_home[holder], axis.of_wanted[reader]);
    if (elements == 0) break;
  }
  return elements;
}

}  // namespace

float slowest_witness(const Witnesses& witnesses, const WitnessedEdge& edge, const EdgeRates& rates,
                      float enough) {
  float read_seconds = 0, sum_seconds = 0;
  for (int witness = 0; witness < witnesses.count(); ++witness) {
    const std::size_t group = at(witness * witnesses.near()),
                      self = group + at(witnesses.place(witness));
    Received reads{{forward_of(edge.whole.elements), 1}},
        sums{{backward_of(edge.whole.elements) * edge.terms, edge.terms}};
    for (const AxisBlocks& axis : edge.axes) {
      const AxisBlocks::Count read = axis.read_by(axis.of_wanted[self]),
                              written = axis.written_to(axis.of_home[self]);
      reads.all.elements *= read.elements;
      reads.all.blocks *= read.blocks;
      sums.all.elements *= written.elements;
      sums.all.blocks *= written.blocks;
    }
    for (int mate = 0; mate < witnesses.near(); ++mate) {
      const std::size_t other = group + at(mate);
      const bool own = other == self, holds = (edge.home_copies >> mate & 1U) != 0,
                 reader = (edge.wanted_copies >> mate & 1U) != 0;
      const float held = own || holds ? common(edge, forward_of(edge.whole.own), other, self) : 0,
                  written =
                      own || reader ? common(edge, backward_of(edge.whole.own), self, other) : 0;
      if (holds) reads.add_near(held, 1);
      if (reader) sums.add_near(written, edge.terms_inside);
      if (!own) continue;
      reads.own = {held, held > 0 ? 1.0F : 0.0F};
      sums.own = {written, written > 0 ? 1.0F : 0.0F};
    }
    read_seconds = std::max(read_seconds, reads.seconds(rates));
    sum_seconds = std::max(sum_seconds, sums.seconds(rates));
    if (read_seconds + sum_seconds >= enough) break;
  }
  return read_seconds + sum_seconds;
}

}  // namespace stratplan
