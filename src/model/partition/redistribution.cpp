#include "model/partition/redistribution.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace stratplan {

std::vector<Region> GroupMove::tiles() const {
  std::vector<Region> different;
  for (const TilePart& part : parts)
    if (different.empty() || different.back() != part.tile) different.push_back(part.tile);
  return different;
}

bool GroupMove::in_place() const {
  std::int64_t before = 0;
  for (const Region& tile : tiles()) {
    if (!is_contiguous(tile, region) || elements_before(tile, region) != before) return false;
    before += tile.elements();
  }
  return true;
}

namespace {

/// The blocks of one end of an edge along one axis.
struct AxisBlocks {
  std::vector<Interval> blocks;  ///< by the index that the dimensions which split the axis make
  std::vector<int> index;        ///< by rank of the grid; empty if there is one block
  int of(int rank) const { return index.empty() ? 0 : index[static_cast<std::size_t>(rank)]; }
  Interval at(int rank) const { return blocks[static_cast<std::size_t>(of(rank))]; }
};
using Blocks = std::array<AxisBlocks, axis_count>;

/// `interval`: of a rank of the grid.
template <class IntervalOf>
AxisBlocks blocks_along(const Distribution& by, Axis axis, IntervalOf&& interval) {
  AxisBlocks along;
  int parts = 1;
  for (const Dim dim : by.split(axis).by) {
    if (by.grid.parts(dim) == 1) continue;
    const std::vector<int> indices = by.grid.indices(dim);
    along.index.resize(indices.size(), 0);
    parts *= by.grid.parts(dim);
    for (std::size_t rank = 0; rank < indices.size(); ++rank)
      along.index[rank] = along.index[rank] * by.grid.parts(dim) + indices[rank];
  }
  along.blocks.resize(static_cast<std::size_t>(parts));
  std::vector<bool> known(along.blocks.size());
  for (int rank = 0; rank < (parts == 1 ? 1 : by.grid.ranks()); ++rank) {
    const auto block = static_cast<std::size_t>(along.of(rank));
    if (known[block]) continue;
    along.blocks[block] = interval(rank);
    known[block] = true;
  }
  return along;
}

AxisBlocks held_along(const Distribution& home, Axis axis) {
  return blocks_along(home, axis, [&](int rank) { return home.owned(axis, rank); });
}

AxisBlocks wanted_along(const Needed& needed, Axis axis) {
  return blocks_along(needed.iteration, axis, [&](int rank) { return needed.region(axis, rank); });
}

int parts_along(const Distribution& by, Axis axis) {
  int parts = 1;
  for (const Dim dim : by.split(axis).by) parts *= by.grid.parts(dim);
  return parts;
}

/// Whether unions can consist of several tiles, as far as their numbers along each axis tell. This
/// takes no time per rank.
bool can_gather(const Distribution& tiles, const Distribution& unions) {
  return std::ranges::any_of(
      all_axes, [&](Axis axis) { return parts_along(tiles, axis) > parts_along(unions, axis); });
}

/// Whether the blocks follow each other and cover an axis.
bool is_tiled(const std::vector<Interval>& blocks, std::int64_t extent) {
  std::int64_t end = 0;
  for (const Interval& block : blocks) {
    if (block.begin != end || block.empty()) return false;
    end = block.end;
  }
  return end == extent;
}

/// Returns the number of tiles that make up an interval; 0 if the interval cuts a tile. The tiles
/// follow each other.
int tiles_in(const std::vector<Interval>& tiles, Interval interval) {
  const auto first = std::ranges::lower_bound(tiles, interval.begin, {}, &Interval::begin),
             last = std::ranges::lower_bound(tiles, interval.end, {}, &Interval::end);
  const bool exact = first != tiles.end() && last != tiles.end() &&
                     first->begin == interval.begin && last->end == interval.end;
  return exact ? static_cast<int>(last - first) + 1 : 0;
}

/// How the blocks of one end of an edge (tiles) make up those of the other end (unions).
class Tiling {
 public:
  /// Returns nothing unless each union consists of whole tiles, and each rank's tile lies in the
  /// rank's union.
  static std::optional<Tiling> find(const Distribution& home, const Needed& needed,
                                    bool held_are_tiles) {
    Tiling tiling;
    for (const Axis axis : all_axes) {
      AxisBlocks held = held_along(home, axis), wanted = wanted_along(needed, axis);
      if (!held_are_tiles) std::swap(held, wanted);
      if (!is_tiled(held.blocks, home.shape[axis])) return {};
      std::vector<int>& counts = tiling.counts_[static_cast<std::size_t>(axis)];
      for (const Interval& all : wanted.blocks) counts.push_back(tiles_in(held.blocks, all));
      if (std::ranges::count(counts, 0) > 0) return {};
      tiling.tiles_[static_cast<std::size_t>(axis)] = std::move(held);
      tiling.unions_[static_cast<std::size_t>(axis)] = std::move(wanted);
    }
    for (std::size_t axis = 0; axis < axis_count; ++axis) {
      const AxisBlocks &tiles = tiling.tiles_[axis], &unions = tiling.unions_[axis];
      const bool both_split = !tiles.index.empty() && !unions.index.empty();
      for (int rank = 0; rank < (both_split ? home.grid.ranks() : 0); ++rank)
        if (!unions.at(rank).contains(tiles.at(rank))) return {};
    }
    for (const std::vector<int>& counts : tiling.counts_) {
      const bool equal = std::ranges::count(counts, counts.front()) == std::ssize(counts);
      tiling.tiles_per_union_ *= equal ? counts.front() : 0;
    }
    return tiling;
  }

  Region tile(int rank) const { return region(tiles_, rank); }
  Region all(int rank) const { return region(unions_, rank); }
  /// Equal for ranks with equal tiles, or with equal unions.
  int tile_number(int rank) const { return number(tiles_, rank); }
  int union_number(int rank) const { return number(unions_, rank); }
  /// The number of tiles in each union; 0 if unions differ in it.
  int tiles_per_union() const { return tiles_per_union_; }
  /// Whether no two unions overlap.
  bool unions_are_apart() const {
    return std::ranges::all_of(unions_, [](const AxisBlocks& along) {
      return is_tiled(along.blocks, along.blocks.back().end);
    });
  }

 private:
  static Region region(const Blocks& blocks, int rank) {
    Region made;
    for (const Axis axis : all_axes) made[axis] = blocks[static_cast<std::size_t>(axis)].at(rank);
    return made;
  }
  static int number(const Blocks& blocks, int rank) {
    int made = 0;
    for (const AxisBlocks& along : blocks)
      made = made * static_cast<int>(along.blocks.size()) + along.of(rank);
    return made;
  }
  Blocks tiles_, unions_;
  std::array<std::vector<int>, axis_count> counts_;  ///< by union along the axis
  int tiles_per_union_ = 1;
};

/// Ranks with the same union, by tile. All tiles have equally many copies.
using Copies = std::vector<std::vector<int>>;

/// A rank, with the numbers of the union that it needs and of the tile that it holds.
struct Holder {
  int all, tile, rank;
  friend auto operator<=>(const Holder&, const Holder&) = default;
};

/// Whether sorted holders of one union hold all its tiles equally often.
bool hold_equally_often(std::span<const Holder> holders, int tiles_per_union) {
  const auto tiles = static_cast<std::size_t>(tiles_per_union);
  if (tiles == 0 || holders.size() % tiles != 0) return false;
  const std::size_t copies = holders.size() / tiles;
  for (std::size_t i = 0; i < holders.size(); i += copies) {
    const bool same = holders[i].tile == holders[i + copies - 1].tile,
               another = i == 0 || holders[i].tile != holders[i - 1].tile;
    if (!same || !another) return false;
  }
  return true;
}

/// The copies of the tiles that make up the rank's union. Nothing unless each union's ranks hold
/// all its tiles equally often.
std::optional<Copies> copies_in_union(const Tiling& tiling, int ranks, int rank) {
  std::vector<Holder> holders;
  for (int one = 0; one < ranks; ++one)
    holders.push_back({tiling.union_number(one), tiling.tile_number(one), one});
  std::ranges::sort(holders);
  Copies copies;
  for (auto begin = holders.begin(); begin != holders.end();) {
    const auto end = std::ranges::upper_bound(begin, holders.end(), begin->all, {}, &Holder::all);
    if (!hold_equally_often({begin, end}, tiling.tiles_per_union())) return {};
    if (begin->all == tiling.union_number(rank))
      for (auto holder = begin; holder != end; ++holder) {
        if (holder == begin || holder->tile != (holder - 1)->tile) copies.emplace_back();
        copies.back().push_back(holder->rank);
      }
    begin = end;
  }
  return copies;
}

/// Returns the copies of each tile that lie nearer to each other than to any other tile, so that
/// data of other tiles reach all of them from afar. The copies are those near to `rank`, or as near
/// to its copies as those of its own tile. Each has one copy per tile if copies are not near.
Copies near_copies(const Copies& copies, const ProcessGrid& grid, int rank, bool together) {
  // The most levels that different tiles share. Without `together`, no copies share more.
  int far = together ? 0 : grid.levels();
  if (together) {
    // Neighbours in ascending order share most levels.
    std::vector<std::pair<int, std::size_t>> members;  // rank, tile
    for (std::size_t tile = 0; tile < copies.size(); ++tile)
      for (const int holder : copies[tile]) members.emplace_back(holder, tile);
    std::ranges::sort(members);
    for (std::size_t i = 1; i < members.size(); ++i)
      if (members[i].second != members[i - 1].second)
        far = std::max(far, grid.common_levels(members[i].first, members[i - 1].first));
  }
  // By tile, runs of copies that share more levels.
  std::vector<std::vector<std::vector<int>>> clusters;
  std::size_t own = 0;
  for (const std::vector<int>& holders : copies) {
    std::vector<std::vector<int>>& runs = clusters.emplace_back();
    for (const int holder : holders) {
      if (runs.empty() || grid.common_levels(runs.back().front(), holder) <= far)
        runs.emplace_back();
      runs.back().push_back(holder);
      if (holder == rank) own = runs.size() - 1;
    }
  }
  Copies near;
  for (const auto& runs : clusters) {
    // All ranks decide alike, so all runs count, not only those near to this rank.
    if (runs.size() != clusters.front().size() || std::ranges::any_of(runs, [&](const auto& run) {
          return run.size() != runs.front().size();
        }))
      return near_copies(copies, grid, rank, false);
    near.push_back(runs[own]);
  }
  return near;
}

/// Returns a collective over ranks of the job, given with their parts.
GroupMove move_over(Collective op, std::vector<std::pair<int, TilePart>> members,
                    const Region& region) {
  std::ranges::sort(members, {}, &std::pair<int, TilePart>::first);
  GroupMove move{op, {}, region, {}};
  for (const auto& [member, part] : members) {
    move.group.push_back(member);
    move.parts.push_back(part);
  }
  return move;
}

/// Gathers the tiles of the rank's union. Where a tile has several copies, each of them gathers the
/// union with ranks that hold one copy of each other tile. Copies that are near to each other
/// gather together, and each brings a part of the tile. So each byte comes from afar once.
GroupMove gather(const Tiling& tiling, const Copies& copies, const Distribution& home, int rank) {
  const std::size_t count = copies.front().size();
  const bool together = count > 1 && home.ranks == Ranks() &&
                        std::ranges::all_of(copies, [&](const std::vector<int>& holders) {
                          return tiling.tile(holders.front()).elements() >= std::ssize(holders);
                        });
  std::vector<std::pair<int, TilePart>> members;
  for (const std::vector<int>& holders : near_copies(copies, home.grid, rank, together))
    for (std::size_t copy = 0; copy < holders.size(); ++copy) {
      const Region tile = tiling.tile(holders[copy]);
      const Interval run =
          block(tile.elements(), std::ssize(holders), static_cast<std::int64_t>(copy));
      members.emplace_back(home.ranks.of_job(holders[copy]), TilePart{tile, run});
    }
  return move_over(Collective::AllGather, std::move(members), tiling.all(rank));
}

/// Gathers the tiles of each union among the ranks that need it.
std::vector<GroupMove> gathers(const std::optional<Tiling>& tiling, const Distribution& home,
                               int rank) {
  if (!tiling || tiling->tiles_per_union() < 2) return {};
  const auto copies = copies_in_union(*tiling, home.grid.ranks(), rank);
  if (!copies) return {};
  return {gather(*tiling, *copies, home, rank)};
}

/// Sums the terms of each union among the ranks that hold them. A rank keeps its tile of the sum.
/// If several members have the same tile, all members get the whole sum.
std::vector<GroupMove> sums(const std::optional<Tiling>& tiling, const Needed& needed, int rank) {
  if (!tiling || !tiling->unions_are_apart()) return {};
  const Distribution& readers = needed.iteration;
  const DimList terms = readers.dims_with(Role::Gathered);
  std::vector<bool> seen(static_cast<std::size_t>(readers.grid.ranks()));
  for (int first = 0; first < readers.grid.ranks(); ++first) {
    if (seen[static_cast<std::size_t>(first)]) continue;
    std::vector<Holder> holders;
    for (const int member : readers.grid.group(first, terms)) {
      holders.push_back({0, tiling->tile_number(member), member});
      seen[static_cast<std::size_t>(member)] = true;
    }
    std::ranges::sort(holders);
    if (!hold_equally_often(holders, tiling->tiles_per_union())) return {};
  }
  const std::vector<int> group = readers.grid.group(rank, terms);
  std::vector<std::pair<int, TilePart>> members;
  for (const int member : group) {
    const Region tile = tiling->tile(member);
    members.emplace_back(readers.ranks.of_job(member), TilePart{tile, {0, tile.elements()}});
  }
  const bool scatters = tiling->tiles_per_union() == std::ssize(group);
  GroupMove move = move_over(scatters ? Collective::ReduceScatter : Collective::AllReduce,
                             std::move(members), tiling->all(rank));
  if (!scatters) move.parts.clear();
  return {move};
}

/// Sums the terms of each tile among the ranks that hold them, then gathers the sums.
std::vector<GroupMove> sums_and_gathers(const std::optional<Tiling>& tiling,
                                        const Distribution& home, const Needed& needed, int rank) {
  std::vector<GroupMove> moves = gathers(tiling, home, rank);
  if (moves.empty()) return {};
  const Distribution& readers = needed.iteration;
  std::vector<int> group = readers.group(rank, readers.dims_with(Role::Gathered));
  std::ranges::sort(group);
  moves.insert(moves.begin(), {Collective::AllReduce, std::move(group), tiling->tile(rank), {}});
  return moves;
}

/// The place of a rank of the job in the grids of both ends; -1 if they lie on different ranks.
int common_place(const Distribution& home, const Needed& needed, int rank) {
  const bool alike =
      home.grid.ranks() == needed.iteration.grid.ranks() && home.ranks == needed.iteration.ranks;
  return alike && home.grid.ranks() > 1 ? home.place(rank) : -1;
}

}  // namespace

std::vector<GroupMove> collectives(const Distribution& home, const Needed& needed, int rank) {
  const int place = common_place(home, needed, rank);
  if (place < 0 || !can_gather(home, needed.iteration)) return {};
  return gathers(Tiling::find(home, needed, true), home, place);
}

std::vector<GroupMove> collectives_adjoint(const Distribution& home, const Needed& needed,
                                           int rank) {
  const int place = common_place(home, needed, rank);
  if (place < 0) return {};
  const bool adds = !needed.iteration.dims_with(Role::Gathered).empty();
  if (adds)
    if (std::vector<GroupMove> moves = sums(Tiling::find(home, needed, true), needed, place);
        !moves.empty())
      return moves;
  if (!can_gather(needed.iteration, home)) return {};
  const std::optional<Tiling> wanted_are_tiles = Tiling::find(home, needed, false);
  return adds ? sums_and_gathers(wanted_are_tiles, home, needed, place)
              : gathers(wanted_are_tiles, home, place);
}

}  // namespace stratplan
