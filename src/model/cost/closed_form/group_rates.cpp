#include "model/cost/closed_form/group_rates.hpp"

namespace stratplan {
namespace {

/// The innermost level at which the job's groups have several parts.
std::size_t innermost_of(const Topology& placement) {
  std::size_t level = placement.size() - 1;
  while (level > 0 && placement[level] == 1) --level;
  return level;
}

}  // namespace

GroupRates::GroupRates(int ranks, const MachineProfile& machine, DataType type, bool none) {
  const Topology placement = machine.placement(ranks);
  const std::size_t level = innermost_of(placement);
  innermost_ = placement[level];
  row_of_.assign(static_cast<std::size_t>(ranks) + 1, -1);
  if (none) return;
  for (int members = 2; members <= ranks; ++members) {
    if (ranks % members != 0) continue;
    const auto row = lines_.size();
    row_of_[static_cast<std::size_t>(members)] = static_cast<int>(row);
    lines_.resize(row + static_cast<std::size_t>(innermost_));
    add_shapes(members, level, {}, placement, machine, type);
    for (std::size_t near = row + 1; near < lines_.size(); ++near)
      for (std::size_t op = 0; op < collective_count; ++op) {
        Line& line = lines_[near][op];
        line.start = std::min(line.start, lines_[near - 1][op].start);
        line.element = std::min(line.element, lines_[near - 1][op].element);
      }
  }
  add_together(ranks);
}

void GroupRates::add_together(int ranks) {
  together_.resize(lines_.size());
  for (int tiles = 2; tiles <= ranks; ++tiles) {
    const int row = row_of_[static_cast<std::size_t>(tiles)];
    for (int copies = 2; row >= 0 && copies <= ranks / tiles; ++copies) {
      const int members =
          row_of_[static_cast<std::size_t>(tiles) * static_cast<std::size_t>(copies)];
      if (members < 0) continue;
      const auto near = static_cast<float>(copies);
      const Line& line =
          lines_[place(members, near)][static_cast<std::size_t>(Collective::AllGather)];
      // It also counts for all greater numbers of copies.
      for (std::size_t at = place(row, near); at < place(row, static_cast<float>(innermost_)) + 1;
           ++at) {
        together_[at].start = std::min(together_[at].start, line.start);
        together_[at].element = std::min(together_[at].element, line.element);
      }
    }
  }
}

/// Adds the shapes of groups of `members` ranks, given their members inside `level`. A group that
/// lies unevenly has the shape around its first member (shape_of()), so its outermost part is
/// rounded down.
void GroupRates::add_shapes(int members, std::size_t level, GroupShape shape,
                            const Topology& placement, const MachineProfile& machine,
                            DataType type) {
  const int rest = members / shape.size();
  if (level > 0) {
    for (int here = 1; here <= std::min(rest, placement[level]); ++here) {
      shape.members[level] = here;
      add_shapes(members, level - 1, shape, placement, machine, type);
    }
    return;
  }
  if (rest > placement.front()) return;
  shape.members.front() = rest;
  const int near = shape.members[innermost_of(placement)];
  const auto row = static_cast<std::size_t>(row_of_[static_cast<std::size_t>(members)]);
  Lines& lines = lines_[row + static_cast<std::size_t>(near) - 1];
  for (std::size_t op = 0; op < collective_count; ++op) {
    const auto seconds = [&](std::int64_t bytes) {
      return estimate_collective(static_cast<Collective>(op), {bytes}, shape, placement, machine)
          .value;
    };
    constexpr std::int64_t large = std::int64_t{1} << 50;
    const double per_element = (seconds(2 * large) - seconds(large)) *
                               static_cast<double>(size_of(type)) / static_cast<double>(large);
    Line& line = lines[op];
    // A measured collective may take any time.
    const bool measured = !machine.collectives.empty();
    line.start = measured ? 0 : std::min(line.start, static_cast<float>(seconds(0)));
    line.element = measured ? 0 : std::min(line.element, static_cast<float>(per_element));
  }
}

}  // namespace stratplan
