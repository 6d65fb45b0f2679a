#include "model/cost/edge_model.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "model/base/assert.hpp"

namespace stratplan {
namespace {

/// Prime factors of the ranks of each level, as digits of a rank number, outermost first.
std::vector<int> prime_digits(const Topology& topology) {
  std::vector<int> digits;
  for (int ranks : topology)
    for (int prime = 2; ranks > 1; ++prime)
      for (; ranks % prime == 0; ranks /= prime) digits.push_back(prime);
  return digits;
}

}  // namespace

int rank_by_digits(const Topology& topology, const std::function<bool(std::size_t)>& last) {
  const std::vector<int> digits = prime_digits(topology);
  int rank = 0;
  for (std::size_t place = 0; place < digits.size(); ++place) rank = rank * digits[place] + (last(place) ? digits[place] - 1 : 0);
  return rank;
}

std::vector<int> telling_ranks_of(const Topology& topology) {
  const std::size_t places = prime_digits(topology).size();
  std::set<int> ranks{0, rank_by_digits(topology, [](std::size_t) { return true; })};
  for (std::size_t bit = 1; bit < 2 * places; bit *= 2)
    for (const bool set : {true, false}) ranks.insert(rank_by_digits(topology, [&](std::size_t place) { return ((place & bit) != 0) == set; }));
  return {ranks.begin(), ranks.end()};
}

EdgeEnd::EdgeEnd(const Distribution& home, const std::vector<int>& ranks, int innermost)
    : EdgeEnd(Needed{home.shape, home, {}, {}, 0, false}, ranks, innermost) {}

EdgeEnd::EdgeEnd(Needed blocks, const std::vector<int>& ranks, int innermost) : blocks_(std::move(blocks)) {
  const Distribution& iteration = blocks_.iteration;
  for (const Axis axis : all_axes) {
    AxisBlocks& along = axes_[static_cast<std::size_t>(axis)];
    along.extent = std::max<std::int64_t>(1, blocks_.tensor[axis]);
    const DimList& split_by = iteration.split(axis).by;
    for (const Dim dim : split_by) along.parts *= iteration.grid.parts(dim);
    if (split_by.size() > 1) along.inner_parts = iteration.grid.parts(split_by[1]);
    along.windowed = is_spatial(axis) || blocks_.tensor[axis] != iteration.shape[axis];
    if (!along.windowed) continue;
    if (along.parts == 1) {
      along.intervals.push_back(blocks_.region(axis, 0));
      continue;
    }
    std::array<int, dim_count> at{};
    const auto& by = iteration.split(axis).by;
    for (std::int64_t index = 0; index < along.parts; ++index) {
      std::int64_t rest = index;
      for (std::size_t i = by.size(); i-- > 0;) {
        at[static_cast<std::size_t>(by[i])] = static_cast<int>(rest % iteration.grid.parts(by[i]));
        rest /= iteration.grid.parts(by[i]);
      }
      along.intervals.push_back(blocks_.region(axis, iteration.grid.rank_at(at)));
    }
  }
  for (const Dim dim : iteration.dims_with(Role::Gathered)) {
    terms *= iteration.grid.parts(dim);
    if (iteration.grid.ranks() > innermost) terms_inside *= iteration.grid.parts_from(dim, 1);
  }
  if (iteration.grid.ranks() <= innermost) terms_inside = terms;
  place(ranks, innermost);
}

/// The ranks of an innermost group differ in the digits of that level alone; the first and the last of them bound what they hold.
void EdgeEnd::place(const std::vector<int>& ranks, int innermost) {
  const ProcessGrid& grid = blocks_.iteration.grid;
  for (const int rank : ranks) {
    const int first = rank / innermost * innermost, last = std::min(first + innermost, grid.ranks()) - 1;
    Place& here = places_.emplace_back(Place{blocks_.region(rank), {}});
    for (const Axis axis : all_axes) {
      BlockRange& range = here.node_blocks[static_cast<std::size_t>(axis)];
      const DimList& by = blocks_.iteration.split(axis).by;
      if (!by.empty()) range.outer = {grid.index(by[0], first), grid.index(by[0], last)};
      if (by.size() > 1) range.inner = {grid.index(by[1], first), grid.index(by[1], last)};
    }
  }
}

EdgeEnd::Overlap EdgeEnd::overlap(Axis axis, Interval wanted) const {
  return overlap_of_run(axis, wanted, 0, axes_[static_cast<std::size_t>(axis)].parts - 1);
}

EdgeEnd::Overlap EdgeEnd::overlap(Axis axis, Interval wanted, const BlockRange& among) const {
  const std::int64_t inner_parts = axes_[static_cast<std::size_t>(axis)].inner_parts;
  if (among.inner.first == 0 && among.inner.second + 1 == inner_parts)
    return overlap_of_run(axis, wanted, among.outer.first * inner_parts, (among.outer.second + 1) * inner_parts - 1);
  Overlap all;
  for (std::int64_t outer = among.outer.first; outer <= among.outer.second; ++outer) {
    const Overlap run = overlap_of_run(axis, wanted, outer * inner_parts + among.inner.first, outer * inner_parts + among.inner.second);
    all.blocks += run.blocks;
    all.elements += run.elements;
  }
  return all;
}

EdgeEnd::Overlap EdgeEnd::overlap_of_run(Axis axis, Interval wanted, std::int64_t first, std::int64_t last) const {
  const AxisBlocks& along = axes_[static_cast<std::size_t>(axis)];
  wanted = intersect(wanted, {0, along.extent});
  if (wanted.empty()) return {};
  if (!along.windowed) {
    // Balanced blocks of blocks differ by a quantum at most.
    first = std::max(first, wanted.begin * along.parts / along.extent);
    last = std::min(last, (wanted.end - 1) * along.parts / along.extent);
    if (last < first) return {};
    const Interval held{first * along.extent / along.parts, (last + 1) * along.extent / along.parts};
    return {last - first + 1, intersect(held, wanted).size()};
  }
  Overlap all;
  for (auto block = static_cast<std::size_t>(first); block <= static_cast<std::size_t>(last); ++block) {
    const Interval& interval = along.intervals[block];
    if (interval.begin >= wanted.end) break;
    const std::int64_t common = intersect(interval, wanted).size();
    all.blocks += common > 0;
    all.elements += common;
  }
  return all;
}

EdgeModel::EdgeModel(int ranks, const MachineProfile& machine) : machine_(machine), placement_(machine.placement(ranks)) {
  const Topology topology = machine.topology(ranks);
  telling_ = telling_ranks_of(topology);
  innermost_ = topology.back();
  inner_level_ = placement_.size() - 1;
  while (inner_level_ > 0 && placement_[inner_level_] == 1) --inner_level_;
  while (outer_level_ < inner_level_ && placement_[outer_level_] == 1) ++outer_level_;
  const auto rates = [&](std::size_t level) {
    const Bytes large{std::int64_t{1} << 30};
    const Seconds latency = estimate_exchange(level, {1, {0}, {0}}, placement_, machine_);
    return Rates{latency.value,
                 (estimate_exchange(level, {1, large, large}, placement_, machine_) - latency).value * 4 / static_cast<double>(large.value)};
  };
  inside_ = rates(inner_level_);
  across_ = rates(outer_level_);
  Kernel copy;
  copy.kind = KernelKind::CopyRegion;
  copy_.message = cost_of(copy, machine_).seconds.value;
  constexpr std::int64_t many = std::int64_t{1} << 28;
  copy.x[Axis::C] = copy.y[Axis::C] = copy.region[Axis::C] = many;
  copy_.element = (cost_of(copy, machine_).seconds.value - copy_.message) / static_cast<double>(many);
}

Seconds EdgeModel::direction(const std::array<Received, 3>& by_distance) const {
  const auto& [all, inside, own] = by_distance;
  Seconds seconds{};
  const auto exchange = [&](std::size_t level, const Received& far, const Received& near) {
    if (far.messages <= near.messages) return;
    const Bytes bytes{(far.elements - near.elements) * 4};
    seconds += estimate_exchange(level, {far.messages - near.messages, bytes, bytes}, placement_, machine_);
  };
  exchange(outer_level_, all, inside);
  exchange(inner_level_, inside, own);
  const auto copies = [&](std::int64_t count, std::int64_t elements) {
    if (count <= 0) return;
    Kernel copy;
    copy.kind = KernelKind::CopyRegion;
    copy.x[Axis::C] = copy.y[Axis::C] = copy.region[Axis::C] = std::max<std::int64_t>(1, elements / count);
    seconds += cost_of(copy, machine_).seconds * static_cast<double>(count);
  };
  const std::int64_t messages = all.messages - own.messages;
  copies(2 * messages, 2 * (all.elements - own.elements));  // packed and unpacked
  if (messages > 0) copies(own.messages, own.elements);
  return seconds;
}

Seconds EdgeModel::cost(const EdgeEnd& home, const EdgeEnd& needed) const {
  Seconds longest{};
  for (std::size_t rank = 0; rank < telling_.size(); ++rank) {
    const EdgeEnd::Place &here = home.at(rank), &there = needed.at(rank);
    std::array<Received, 3> forward, backward;
    forward.fill({1, 1});
    backward = {Received{needed.terms, needed.terms}, {needed.terms_inside, needed.terms_inside}, {1, 1}};
    for (const Axis axis : all_axes) {
      const Interval wanted = there.own[axis], held = here.own[axis];
      const auto times = [](Received& product, const EdgeEnd::Overlap& along) {
        product.messages *= along.blocks;
        product.elements *= along.elements;
      };
      const auto own = [](Interval a, Interval b) {
        const std::int64_t common = intersect(a, b).size();
        return EdgeEnd::Overlap{common > 0, common};
      };
      times(forward[0], home.overlap(axis, wanted));
      times(forward[1], home.overlap(axis, wanted, here.node_blocks[static_cast<std::size_t>(axis)]));
      times(forward[2], own(wanted, held));
      times(backward[0], needed.overlap(axis, held));
      times(backward[1], needed.overlap(axis, held, there.node_blocks[static_cast<std::size_t>(axis)]));
      times(backward[2], own(wanted, held));
    }
    longest = std::max(longest, direction(forward) + direction(backward));
  }
  return longest;
}

Seconds EdgeModel::least(double messages, double elements) const {
  if (messages <= 0) return {0};
  // From the rank's own node come as many messages as it has other ranks at most, and none is longer than the average of all that it could be.
  const double near = std::min<double>(messages, innermost_ - 1), share = near / messages;
  const double moving =
      near * inside_.message + (messages - near) * across_.message + elements * (share * inside_.element + (1 - share) * across_.element);
  return {moving + 2 * std::max(messages * copy_.message, elements * copy_.element)};
}

Seconds EdgeModel::least(double elements, const Kind& home, const Kind& needed) const {
  double sources = 1, readers = needed.terms, held = elements, wanted = elements, common = elements;
  for (std::size_t axis = 0; axis < axis_count; ++axis) {
    const double mine = home.parts[axis], theirs = needed.parts[axis];
    sources *= std::max(1.0, mine / theirs);
    readers *= std::max(1.0, theirs / mine);
    held /= mine;
    wanted /= theirs;
    common /= std::max(mine, theirs);
  }
  constexpr double uneven = 0.8;  // blocks of few rows differ by one
  const Seconds forward = least(sources - 1, uneven * (wanted - common));
  const Seconds backward = least(readers - 1, uneven * (held * needed.terms - common));
  return std::max(forward + backward, least(1, uneven * std::min(held, wanted) / 2));
}

Seconds EdgeModel::gathering(double elements, int terms, int terms_inside) const {
  const auto all = [&](int ranks) { return Received{ranks, static_cast<std::int64_t>(elements) * ranks}; };
  return terms > 1 ? direction({all(terms), all(terms_inside), all(1)}) : Seconds{};
}

}  // namespace stratplan
