#include "model/cost/edge_model.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "model/base/assert.hpp"
#include "model/partition/local_kernel.hpp"

namespace stratplan {
namespace {

double quotient(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

/// Elements of `wanted` in all of `blocks`, and how many of them have any.
std::pair<std::int64_t, std::int64_t> overlap(const std::vector<Interval>& blocks,
                                              const Interval& wanted) {
  std::int64_t elements = 0, count = 0;
  for (const Interval& block : blocks) {
    const std::int64_t common = intersect(block, wanted).size();
    elements += common;
    count += common > 0;
  }
  return {elements, count};
}

/// A few of so many places: the first and the last, whose windows reach beyond the tensor, their neighbours, and the middle.
std::set<std::int64_t> telling_places(std::int64_t places) {
  std::set<std::int64_t> some;
  for (const std::int64_t place :
       {std::int64_t{0}, std::int64_t{1}, places / 2 - 1, places / 2, places - 2, places - 1})
    if (place >= 0 && place < places) some.insert(place);
  return some;
}

}  // namespace

EdgeRates edge_rates(int ranks, const MachineProfile& machine, DataType type) {
  const Topology placement = machine.placement(ranks);
  std::size_t inner = placement.size() - 1, outer = 0;
  while (inner > 0 && placement[inner] == 1) --inner;
  while (outer < inner && placement[outer] == 1) ++outer;
  const auto rates = [&](std::size_t level) {
    const Bytes large{std::int64_t{1} << 30};
    const Seconds latency = estimate_exchange(level, {1, {0}, {0}}, placement, machine);
    return std::pair(
        latency.value,
        (estimate_exchange(level, {1, large, large}, placement, machine) - latency).value *
            static_cast<double>(size_of(type)) / static_cast<double>(large.value));
  };
  constexpr std::int64_t many = std::int64_t{1} << 28;
  const auto seconds_of = [&](std::int64_t elements) {
    const Region all = flat(elements);
    return cost_of(copy_kernel(all, all, all, all, type), machine).seconds.value;
  };
  const double start = seconds_of(1);
  const auto [far_message, far_element] = rates(outer);
  const auto [near_message, near_element] = rates(inner);
  const double copied = (seconds_of(many) - start) / static_cast<double>(many);
  // What a rank has itself is copied once, if anything moves at all.
  const auto single = [](double value) { return static_cast<float>(value); };
  return {single(far_message + 2 * start),    single(far_element + 2 * copied),
          single(far_message - near_message), single(far_element - near_element),
          single(near_message + start),       single(near_element + copied),
          machine.topology(ranks).back()};
}

AxisReading::AxisReading(const Distribution& home, const Needed& needed, Axis axis)
    : home_(home), needed_(needed), axis_(axis) {
  extent_ = std::max<std::int64_t>(1, needed.tensor[axis]);
  shifted_ = axis == Axis::C && needed.iteration.shape[axis] != needed.tensor[axis];
  const std::vector<Interval> halves = wanted_blocks(2);
  const bool tiles =
      halves[0].end == halves[1].begin && halves[0].begin == 0 && halves[1].end == extent_;
  plain_ = !shifted_ &&
           (!is_spatial(axis) || (needed.iteration.shape[axis] == needed.tensor[axis] && tiles));
}

std::vector<Interval> AxisReading::home_blocks(int parts) const {
  std::vector<Interval> blocks;
  for (int index = 0; index < parts; ++index)
    blocks.push_back(block(extent_, parts, index, home_.split(axis_).quantum));
  return blocks;
}

std::vector<Interval> AxisReading::wanted_blocks(int parts) const {
  std::vector<Interval> blocks;
  for (int index = 0; index < parts; ++index) {
    const Interval positions =
        block(needed_.iteration.shape[axis_], parts, index, needed_.iteration.split(axis_).quantum);
    blocks.push_back(positions.empty()
                         ? Interval{0, 0}
                         : intersect(needed_.unclipped(axis_, positions), {0, extent_}));
  }
  return blocks;
}

AxisReading::Sizes AxisReading::sizes(int home_parts, int wanted_parts) const {
  const int finer = std::max(home_parts, wanted_parts);
  const auto single = [](auto value) { return static_cast<float>(value); };
  if (plain_) {
    const auto longest = [&](int parts) { return single((extent_ + parts - 1) / parts); };
    const float wanted = longest(wanted_parts), held = longest(home_parts),
                common = std::min(wanted, held);
    return {single(std::max(1.0, quotient(home_parts, wanted_parts))), wanted, common,
            single(std::max(1.0, quotient(wanted_parts, home_parts))), held,   common};
  }
  const std::vector<Interval> home = home_blocks(home_parts), wanted = wanted_blocks(wanted_parts);
  Sizes worst;
  float forward = -1, backward = -1;
  for (const std::int64_t place : telling_places(finer)) {
    const Interval& mine = home[static_cast<std::size_t>(place * home_parts / finer)];
    const Interval& need = wanted[static_cast<std::size_t>(place * wanted_parts / finer)];
    const float common = single(intersect(mine, need).size());
    const auto [needed, blocks] = overlap(home, need);
    if (single(needed) - common > forward) {
      forward = single(needed) - common;
      worst.wanted = single(needed);
      worst.homes = single(blocks);
      worst.wanted_at_home = common;
    }
    const auto [read, users] = overlap(wanted, mine);
    if (single(read) - common > backward) {
      backward = single(read) - common;
      worst.held = single(read);
      worst.readers = single(users);
      worst.held_and_wanted = common;
    }
  }
  return worst;
}

AxisReading::Unhaloed AxisReading::unhaloed(int home_parts, int wanted_parts,
                                            const Sizes& sizes) const {
  if (plain_) return {};
  const auto share = [](double part, double whole) {
    return whole > 0 ? static_cast<float>(std::min(1.0, part / whole)) : 1.0F;
  };
  return {share(quotient(extent_, wanted_parts), sizes.wanted),
          share(std::max(1.0, quotient(home_parts, wanted_parts)), sizes.homes),
          share(quotient(extent_, home_parts), sizes.held),
          share(std::max(1.0, quotient(wanted_parts, home_parts)), sizes.readers)};
}

Seconds edge_cost(const EdgeRates& rates, const Distribution& home, const Needed& needed) {
  const std::vector<GridDigit> from = home.grid.digits(), to = needed.iteration.grid.digits();
  AxisReading::Sizes products;
  Meeting meetings;
  for (const Axis axis : all_axes) {
    const AxisReading reading(home, needed, axis);
    const AxisDigits held = digits_along(from, home.split(axis).by, rates.innermost),
                     wanted = digits_along(to, needed.iteration.split(axis).by, rates.innermost);
    const AxisReading::Sizes sizes = reading.sizes(held.parts(), wanted.parts());
    products *= sizes;
    meetings *= with_halo(meet(held, wanted, rates.innermost, reading.shifted()),
                          reading.unhaloed(held.parts(), wanted.parts(), sizes));
  }
  double terms = 1, inside = 1;
  for (const GridDigit& digit : to) {
    if (needed.iteration.role(digit.dim) != Role::Gathered) continue;
    terms *= digit.parts;
    if (digit.stride < rates.innermost) inside *= digit.parts;
  }
  meetings.near_wanted *= static_cast<float>(inside);
  meetings.near_readers *= static_cast<float>(inside);
  return {EdgePrices(rates, products, static_cast<float>(terms)).seconds(rates, meetings)};
}

}  // namespace stratplan
