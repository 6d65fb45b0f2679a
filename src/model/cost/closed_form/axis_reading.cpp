#include "model/cost/closed_form/axis_reading.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "model/base/sorted_range.hpp"

namespace stratplan {
namespace {

/// The elements that one block at one end of an edge reads from the blocks at the other end. The
/// block's own place is the run of blocks at the other end that it would read if all blocks were
/// equally long.
struct BlockNeed {
  std::int64_t needed = 0, blocks = 0;  ///< counted with repetitions
  /// most elements in one block at the other end, and in one such block outside the own place
  std::int64_t own = 0, own_apart = 0;
  std::int64_t before = 0, behind = 0;  ///< elements in blocks before the own place, and behind it
  std::int64_t blocks_before = 0, blocks_behind = 0;
  std::int64_t beyond() const { return before + behind; }
  std::int64_t blocks_beyond() const { return blocks_before + blocks_behind; }
};

/// One direction of an edge along one axis. The asking blocks need elements, and the answering
/// blocks hold them.
class DirectedReading {
 public:
  DirectedReading(const std::vector<Interval>& asking, const std::vector<Interval>& answering,
                  bool alike)
      : asking_(asking), answering_(answering) {
    auto near = answering_.begin();
    for (const std::int64_t place : representative_places(alike))
      places_.push_back({place, at(place, near)});
    for (const auto& [number, place] : places_) {
      own_ = std::max(own_, place.own);
      own_apart_ = std::max(own_apart_, place.own_apart);
      beyond_ = std::max(beyond_, place.beyond());
      blocks_beyond_ = std::max(blocks_beyond_, place.blocks_beyond());
    }
    choose();
  }

  float needed() const { return single(needed_); }
  float blocks() const { return single(blocks_); }
  float own() const { return single(own_); }
  /// The fewest elements that a place needs, as a share of the chosen place's elements. With four
  /// asking blocks or more, only inner places count: whichever digit of the place is fixed, an
  /// inner place remains.
  float least_needed() const {
    return needed_ > 0 ? least([](const BlockNeed& place) { return place.needed; }) / needed() : 1;
  }
  float least_blocks() const {
    return blocks_ > 0 ? least([](const BlockNeed& place) { return place.blocks; }) / blocks() : 1;
  }
  /// The same over all places, those at the borders included.
  float least_needed_anywhere() const {
    return needed_ > 0 ? single(anywhere(&BlockNeed::needed)) / needed() : 1;
  }
  float least_blocks_anywhere() const {
    return blocks_ > 0 ? single(anywhere(&BlockNeed::blocks)) / blocks() : 1;
  }

  AxisReading::Near near() const {
    const auto parts = std::ssize(asking_), others = std::ssize(answering_);
    const auto [far, far_blocks] = far_at_border();
    std::int64_t cut = needed_, cut_blocks = blocks_, longest = 0;
    for (const auto& [number, place] : places_) {
      if (!inside(number)) continue;
      cut = std::min(cut, place.beyond());
      cut_blocks = std::min(cut_blocks, place.blocks_beyond());
    }
    for (const Interval& block : answering_) longest = std::max(longest, block.size());
    const auto just = [](float share, float blocks) {
      return AxisReading::Near::Bound{share, 0, 0, blocks};
    };
    const float longer = share_of(longest) * single(others) / single(parts),
                halo = share_of(beyond_), halo_blocks = single(blocks_beyond_);
    return {.bounds = {{just(share_of(needed_ - cut), single(blocks_ - cut_blocks)),
                        just(share_of(needed_ - far), single(blocks_ - far_blocks)),
                        just(1, blocks()),
                        {0, halo, 0, halo_blocks},
                        {longer, 0, 1, 0},
                        {longer, halo, 1, halo_blocks}}},
            .own_apart = own_ > 0 ? single(own_apart_) / own() : 0};
  }

  /// One direction of AxisReading::Alike.
  struct Alike {
    float elements = 1, messages = 1, own = 1, near = 1, near_blocks = 1;
  };
  /// Chooses the place that needs most. Elements from far count twice.
  Alike alike(std::int64_t near_run) const {
    Alike chosen;
    std::int64_t most = -1;
    for (const auto& [number, place] : places_) {
      std::int64_t own = 0, near = 0, near_blocks = 0;
      const std::int64_t first = number / near_run * near_run;
      for (std::int64_t other = first; other < first + near_run; ++other) {
        const std::int64_t common = intersect(answering_[static_cast<std::size_t>(other)],
                                              asking_[static_cast<std::size_t>(number)])
                                        .size();
        near += common;
        near_blocks += common > 0 ? 1 : 0;
        if (other == number) own = common;
      }
      const std::int64_t weight = 2 * place.needed - near;
      if (weight <= most) continue;
      most = weight;
      chosen = {needed_ > 0 ? single(place.needed) / needed() : 1,
                blocks_ > 0 ? single(place.blocks) / blocks() : 1,
                own_ > 0 ? single(own) / this->own() : 1,
                place.needed > 0 ? single(near) / single(place.needed) : 1, single(near_blocks)};
    }
    return chosen;
  }

 private:
  template <class Of>
  float least(const Of& of) const {
    std::int64_t least = of(places_.front().second);
    for (const auto& [number, place] : places_)
      if (asking_.size() < 4 || inside(number)) least = std::min(least, of(place));
    return single(least);
  }
  std::int64_t anywhere(std::int64_t BlockNeed::*count) const {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const auto& [number, place] : places_) least = std::min(least, place.*count);
    return least;
  }
  template <class Value>
  static float single(Value value) {
    return static_cast<float>(value);
  }
  float share_of(std::int64_t elements) const {
    return needed_ > 0 ? single(elements) / needed() : 1;
  }
  bool inside(std::int64_t place) const {
    const auto parts = std::ssize(asking_);
    return parts < 3 || (place > 0 && place + 1 < parts);
  }
  /// The number of asking blocks that lie in one answering block.
  std::int64_t within_one() const {
    return std::max<std::int64_t>(1, std::ssize(asking_) / std::ssize(answering_));
  }

  /// The indices of all places, or of a few representative places if all blocks except those at the
  /// borders of the axis are alike.
  std::vector<std::int64_t> representative_places(bool alike) const {
    const auto parts = std::ssize(asking_);
    const std::int64_t many = within_one(), middle = parts / 2 / many * many;
    std::vector<std::int64_t> some;
    if (alike && parts > 12) {
      some = {0,          1,      many - 1,         many,         2 * many - 1,
              middle - 1, middle, parts - many - 1, parts - many, parts - 2,
              parts - 1};
      make_sorted_set(some);
      std::erase_if(some, [&](std::int64_t place) { return place < 0 || place >= parts; });
      return some;
    }
    some.resize(static_cast<std::size_t>(parts));
    std::iota(some.begin(), some.end(), 0);
    return some;
  }

  /// `near`: the first answering block that an earlier place may need; becomes that of this place.
  BlockNeed at(std::int64_t number, std::vector<Interval>::const_iterator& near) const {
    const auto parts = std::ssize(asking_), others = std::ssize(answering_);
    const std::int64_t first = number * others / parts,
                       last = std::max(first, ((number + 1) * others + parts - 1) / parts - 1);
    const Interval mine = asking_[static_cast<std::size_t>(number)];
    BlockNeed place;
    if (mine.empty()) return place;
    const bool behind = near != answering_.begin() && (near - 1)->end > mine.begin;
    if (behind) near = answering_.begin();
    near = gallop(near, answering_.end(),
                  [&](const Interval& block) { return block.end <= mine.begin; });
    for (auto block = near; block != answering_.end() && block->begin < mine.end; ++block) {
      const std::int64_t common = intersect(*block, mine).size(),
                         other = block - answering_.begin();
      if (common == 0) continue;
      place.needed += common;
      place.blocks += 1;
      place.own = std::max(place.own, common);
      if (first <= other && other <= last) continue;
      place.own_apart = std::max(place.own_apart, common);
      (other < first ? place.before : place.behind) += common;
      (other < first ? place.blocks_before : place.blocks_behind) += 1;
    }
    return place;
  }

  /// Chooses the place that the bound describes. With one or two asking blocks, it is the place
  /// that receives most. With three or more, its numbers are the minima over the inner places, so
  /// that the bound holds for any inner place.
  void choose() {
    const auto received = [](const BlockNeed& place) { return place.needed - place.own; };
    needed_ = blocks_ = std::numeric_limits<std::int64_t>::max();
    std::int64_t most = -1;
    for (const auto& [number, place] : places_) {
      if (asking_.size() < 3) {
        if (received(place) <= most) continue;
        most = received(place);
        needed_ = place.needed;
        blocks_ = place.blocks;
      } else if (inside(number)) {
        needed_ = std::min(needed_, place.needed);
        blocks_ = std::min(blocks_, place.blocks);
      }
    }
  }

  /// Returns the elements and blocks that a block at the border of a group needs beyond the group.
  /// A group is the run of asking blocks in one answering block. Its first block needs elements
  /// before the group, and its last block needs elements behind the group. For each of these two
  /// blocks, the least over the inner places counts. The counts with more elements are returned.
  std::pair<std::int64_t, std::int64_t> far_at_border() const {
    constexpr auto none = std::numeric_limits<std::int64_t>::max();
    std::int64_t before = none, behind = none, blocks_before = none, blocks_behind = none;
    for (const auto& [number, place] : places_) {
      if (!inside(number)) continue;
      if (number % within_one() == 0) {
        before = std::min(before, place.before);
        blocks_before = std::min(blocks_before, place.blocks_before);
      }
      if ((number + 1) % within_one() == 0) {
        behind = std::min(behind, place.behind);
        blocks_behind = std::min(blocks_behind, place.blocks_behind);
      }
    }
    if (before == none || behind == none) return {0, 0};
    return before >= behind ? std::pair(before, blocks_before) : std::pair(behind, blocks_behind);
  }

  const std::vector<Interval>&asking_, &answering_;
  std::vector<std::pair<std::int64_t, BlockNeed>> places_;
  std::int64_t needed_ = 0, blocks_ = 0, own_ = 0, own_apart_ = 0, beyond_ = 0, blocks_beyond_ = 0;
};

}  // namespace

AxisReading::AxisReading(const Distribution& home, const Needed& needed, Axis axis)
    : home_(home), needed_(needed), axis_(axis) {
  extent_ = std::max<std::int64_t>(1, needed.tensor[axis]);
  shifted_ = axis == Axis::C && needed.iteration.shape[axis] != needed.tensor[axis];
  const std::vector<Interval>& halves = wanted_blocks(2);
  const bool tiles =
      halves[0].end == halves[1].begin && halves[0].begin == 0 && halves[1].end == extent_;
  const bool scaled = is_spatial(axis) &&
                      !needed.scales[static_cast<std::size_t>(spatial_index(axis))].is_identity();
  windowless_ =
      !shifted_ && !scaled &&
      (!is_spatial(axis) || (needed.iteration.shape[axis] == needed.tensor[axis] && tiles));
}

const std::vector<Interval>& AxisReading::home_blocks(int parts) {
  std::vector<Interval>& blocks = home_blocks_[parts];
  if (!blocks.empty()) return blocks;
  for (int index = 0; index < parts; ++index)
    blocks.push_back(block(extent_, parts, index, home_.split(axis_).quantum));
  return blocks;
}

const std::vector<Interval>& AxisReading::wanted_blocks(int parts) {
  std::vector<Interval>& blocks = wanted_blocks_[parts];
  if (!blocks.empty()) return blocks;
  for (int index = 0; index < parts; ++index) {
    const Interval positions =
        block(needed_.iteration.shape[axis_], parts, index, needed_.iteration.split(axis_).quantum);
    blocks.push_back(positions.empty() ? Interval{0, 0} : needed_.ascending(axis_, positions));
  }
  return blocks;
}

namespace {

/// Returns the places of what blocks read. If two dimensions split the axis, the blocks also depend
/// on how the parts are divided between both, and each place contains the block in all such cases.
template <class Read>
std::vector<AxisReading::Place> places_of(std::int64_t extent, int parts, const Split& split,
                                          const Read& read) {
  std::vector<int> outers{1};
  for (int outer = 2; split.by.size() > 1 && outer <= parts; ++outer)
    if (parts % outer == 0) outers.push_back(outer);
  std::vector<AxisReading::Place> places;
  std::int64_t end = 0;
  for (int index = 0; index < parts; ++index) {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    AxisReading::Place place{{most, 0}, most};
    for (const int outer : outers) {
      const int inner = parts / outer;
      const Interval around = block(extent, outer, index / inner, split.quantum),
                     within = block(around.size(), inner, index % inner, split.quantum),
                     mine = read({around.begin + within.begin, around.begin + within.end});
      place.least = std::min(place.least, mine.size());
      if (mine.empty()) continue;
      place.within.begin = std::min(place.within.begin, mine.begin);
      place.within.end = std::max(place.within.end, mine.end);
    }
    if (place.within.empty()) place.within = {end, end};
    end = place.within.end;
    places.push_back(place);
  }
  return places;
}

}  // namespace

std::vector<AxisReading::Place> AxisReading::home_places(int parts) const {
  return places_of(extent_, parts, home_.split(axis_), [](Interval block) { return block; });
}

std::vector<AxisReading::Place> AxisReading::wanted_places(int parts) const {
  return places_of(needed_.iteration.shape[axis_], parts, needed_.iteration.split(axis_),
                   [&](Interval positions) {
                     return positions.empty() ? positions : needed_.ascending(axis_, positions);
                   });
}

AxisReading::Along AxisReading::along(int home_parts, int wanted_parts) {
  const int finer = std::max(home_parts, wanted_parts),
            coarser = std::min(home_parts, wanted_parts);
  const std::int64_t quantum =
      std::max(home_.split(axis_).quantum, needed_.iteration.split(axis_).quantum);
  const bool even = finer % coarser == 0 && extent_ % (finer * quantum) == 0 && !shifted_ &&
                    needed_.iteration.shape[axis_] % (finer * quantum) == 0;
  const auto single = [](auto value) { return static_cast<float>(value); };
  if (windowless_ && even) {
    const float wanted = single(extent_ / wanted_parts), held = single(extent_ / home_parts),
                common = std::min(wanted, held);
    return {{BothWays{std::max(1.0F, single(home_parts / wanted_parts)),
                      std::max(1.0F, single(wanted_parts / home_parts))},
             BothWays{wanted, held}, BothWays{common, common}},
            {},
            {},
            true};
  }
  const std::vector<Interval>&home = home_blocks(home_parts), &wanted = wanted_blocks(wanted_parts);
  const bool one_is_whole = coarser == 1, nests = home_.split(axis_).by.size() > 1 ||
                                                  needed_.iteration.split(axis_).by.size() > 1;
  if (nests && !even && !shifted_ && !one_is_whole)
    return of_unknown_blocks(home_parts, wanted_parts);
  const DirectedReading forward(wanted, home, even), backward(home, wanted, even);
  return {{BothWays{forward.blocks(), backward.blocks()},
           BothWays{forward.needed(), backward.needed()}, BothWays{forward.own(), backward.own()},
           BothWays{forward.least_blocks(), backward.least_blocks()},
           BothWays{forward.least_needed(), backward.least_needed()}},
          forward.near(),
          backward.near(),
          wanted_parts == 1 && wanted.front() == Interval{0, extent_} &&
              extent_ % (home_parts * quantum) == 0,
          {BothWays{forward.least_needed_anywhere(), backward.least_needed_anywhere()},
           BothWays{forward.least_blocks_anywhere(), backward.least_blocks_anywhere()}},
          !shifted_ || one_is_whole,
          nests && !even ? within() : Along::Located::Exactly};
}

/// What is known of nested blocks that are not equally long.
AxisReading::Along::Located AxisReading::within() const {
  const std::size_t most =
      std::max(home_.split(axis_).by.size(), needed_.iteration.split(axis_).by.size());
  return most <= 2 && !is_spatial(axis_) ? Along::Located::Within : Along::Located::Nowhere;
}

AxisReading::Alike AxisReading::alike(int parts, int near_run) {
  const std::vector<Interval>&home = home_blocks(parts), &wanted = wanted_blocks(parts);
  const DirectedReading::Alike forward = DirectedReading(wanted, home, false).alike(near_run),
                               backward = DirectedReading(home, wanted, false).alike(near_run);
  return {BothWays{forward.elements, backward.elements},
          BothWays{forward.messages, backward.messages}, BothWays{forward.own, backward.own},
          BothWays{forward.near, backward.near},
          BothWays{forward.near_blocks, backward.near_blocks}};
}

/// Returns bounds for splits into unequal blocks. The blocks' sizes are known, but not their order.
AxisReading::Along AxisReading::of_unknown_blocks(int home_parts, int wanted_parts) const {
  const auto single = [](std::int64_t value) { return static_cast<float>(value); };
  const auto shortest = [&](int parts) { return extent_ / parts; };
  const auto longest = [&](int parts) { return (extent_ + parts - 1) / parts; };
  const std::int64_t common = std::min(longest(home_parts), longest(wanted_parts));
  Along along{{BothWays{std::max(1.0F, single(home_parts / wanted_parts)),
                        std::max(1.0F, single(wanted_parts / home_parts))},
               BothWays{single(shortest(wanted_parts)), single(shortest(home_parts))},
               BothWays{single(common), single(common)}},
              {},
              {},
              false,
              {},
              false,
              within()};
  along.forward.bounds.fill({1, 1, 0, forward_of(along.sizes.messages)});
  along.backward.bounds.fill({1, 1, 0, backward_of(along.sizes.messages)});
  return along;
}

}  // namespace stratplan
