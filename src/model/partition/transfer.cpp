#include "model/partition/transfer.hpp"

#include <algorithm>
#include <functional>

#include "model/base/assert.hpp"

namespace stratplan {

namespace {

using Indices = std::array<int, dim_count>;

/// The part of a block along one axis that overlaps a given interval.
struct Piece {
  Indices index{};         ///< the block's index along each dimension of `by`
  Interval overlap;        ///< within the tensor
  DimList by;              ///< the dimensions that split the axis
  std::int64_t shift = 0;  ///< Transfer::shift along the axis
};
using Pieces = std::array<std::vector<Piece>, axis_count>;

int& at(Indices& indices, Dim dim) { return indices[static_cast<std::size_t>(dim)]; }
int at(const Indices& indices, Dim dim) { return indices[static_cast<std::size_t>(dim)]; }

/// Returns the home blocks along an axis that overlap `wanted`.
std::vector<Piece> owners_along(const Distribution& home, Axis axis, Interval wanted) {
  std::vector<Piece> pieces{{{}, {0, home.shape[axis]}, home.split(axis).by}};
  const Split& split = home.split(axis);
  for (const Dim dim : split.by) {
    std::vector<Piece> finer;
    for (const Piece& outer : pieces) {
      const Interval inside = intersect(outer.overlap, wanted);
      if (inside.empty()) continue;
      const std::int64_t extent = outer.overlap.size(), parts = home.grid.parts(dim);
      const std::int64_t first =
          block_of(extent, parts, inside.begin - outer.overlap.begin, split.quantum);
      const std::int64_t last =
          block_of(extent, parts, inside.end - 1 - outer.overlap.begin, split.quantum);
      for (std::int64_t i = first; i <= last; ++i) {
        const Interval inner = block(extent, parts, i, split.quantum);
        Piece piece{outer.index,
                    {outer.overlap.begin + inner.begin, outer.overlap.begin + inner.end},
                    split.by};
        at(piece.index, dim) = static_cast<int>(i);
        finer.push_back(piece);
      }
    }
    pieces = std::move(finer);
  }
  for (Piece& piece : pieces) piece.overlap = intersect(piece.overlap, wanted);
  std::erase_if(pieces, [](const Piece& piece) { return piece.overlap.empty(); });
  return pieces;
}

/// Calls visit(shift) for each multiple of the extent by which a tensor that wraps around is
/// shifted where `read` overlaps it.
template <class Visit>
void for_each_turn(Interval read, std::int64_t extent, Visit&& visit) {
  for (std::int64_t shift = floor_divide(read.begin, extent) * extent; shift < read.end;
       shift += extent)
    visit(shift);
}

/// As above. `wanted` may reach beyond the tensor if that wraps around.
std::vector<Piece> owners_along(const Distribution& home, const Needed& needed_by, Axis axis,
                                Interval wanted) {
  if (!needed_by.wraps(axis)) return owners_along(home, axis, wanted);
  std::vector<Piece> all;
  for_each_turn(wanted, home.shape[axis], [&](std::int64_t shift) {
    for (Piece& piece : owners_along(home, axis,
                                     intersect(Interval{wanted.begin - shift, wanted.end - shift},
                                               {0, home.shape[axis]}))) {
      piece.shift = shift;
      all.push_back(piece);
    }
  });
  return all;
}

/// Returns the blocks of the consumer's iteration space, along an axis, that need part of `owned`.
std::vector<Piece> readers_along(const Needed& needed_by, Axis axis, Interval owned) {
  if (!is_spatial(axis)) {
    // The iteration space is the tensor's own axis, or a longer axis that contains it.
    const std::int64_t before = axis == Axis::C ? needed_by.first_channel : 0;
    std::vector<Piece> pieces =
        owners_along(needed_by.iteration, axis, {owned.begin + before, owned.end + before});
    for (Piece& piece : pieces)
      piece.overlap = {piece.overlap.begin - before, piece.overlap.end - before};
    return pieces;
  }
  const DimList& by = needed_by.iteration.split(axis).by;
  SP_ASSERT(by.size() <= 1, "axis {} of the iteration space is split {} times, more than once",
            axis_names[static_cast<std::size_t>(axis)], by.size());
  const std::int64_t extent = needed_by.iteration.shape[axis],
                     quantum = needed_by.iteration.split(axis).quantum;
  const int parts = by.empty() ? 1 : needed_by.iteration.grid.parts(by.front());
  const auto needs = [&](std::int64_t i) {
    return needed_by.unclipped(axis, block(extent, parts, i, quantum));
  };
  std::vector<Piece> pieces;
  const auto add = [&](int i, std::int64_t shift) {
    const Interval read = needs(i);
    Piece piece{{}, intersect(Interval{read.begin - shift, read.end - shift}, owned), by, shift};
    if (!by.empty()) at(piece.index, by.front()) = i;
    if (!piece.overlap.empty()) pieces.push_back(piece);
  };
  if (needed_by.mirrors(axis)) {  // the intervals do not ascend at the ends
    for (int i = 0; i < parts; ++i) add(i, 0);
    return pieces;
  }
  // Blocks ascend, and so do the intervals that they need. A bisection finds the first block whose
  // interval ends behind owned.begin.
  const auto add_all = [&](std::int64_t shift) {
    const Interval wanted{owned.begin + shift, owned.end + shift};
    int first = 0;
    for (int count = parts; count > 0;) {
      const int half = count / 2;
      if (needs(first + half).end <= wanted.begin) {
        first += half + 1;
        count -= half + 1;
      } else {
        count = half;
      }
    }
    for (int i = first; i < parts && needs(i).begin < wanted.end; ++i) add(i, shift);
  };
  if (needed_by.wraps(axis))
    for_each_turn({needs(0).begin, needs(parts - 1).end}, needed_by.tensor[axis], add_all);
  else
    add_all(0);
  return pieces;
}

/// Calls `visit(indices, transfer)` for each combination of one piece per axis. The transfer has a
/// region and a shift.
template <class Visit>
void for_each_combination(const Pieces& pieces, Visit&& visit) {
  const std::function<void(std::size_t, const Indices&, const Transfer&)> descend =
      [&](std::size_t axis, const Indices& indices, const Transfer& box) {
        if (axis == axis_count) return visit(indices, box);
        for (const Piece& piece : pieces[axis]) {
          Indices extended = indices;
          for (std::size_t d = 0; d < dim_count; ++d) extended[d] += piece.index[d];
          Transfer narrowed = box;
          narrowed.region.interval[axis] = piece.overlap;
          narrowed.shift[axis] = piece.shift;
          descend(axis + 1, extended, narrowed);
        }
      };
  descend(0, Indices{}, Transfer{});
}

/// Returns the job's rank that sends the block to `rank`. Several ranks hold the block, one per
/// combination of indices along `copies`. A rank that holds the block serves itself. Another rank
/// of the tensor's grid is served by a holder with which it shares the most levels. A rank outside
/// the grid may be served by any holder. Among the possible holders, the rank number chooses, so
/// that the load spreads.
int nearest_copy(const Distribution& tensor, Indices block_index, const DimList& copies, int rank) {
  for (const Dim dim : copies) at(block_index, dim) = 0;
  const int holder = tensor.grid.rank_at(block_index), place = tensor.place(rank);
  if (place >= 0) return tensor.ranks.of_job(tensor.grid.nearest(holder, copies, place));
  const std::vector<int> holders = tensor.group(holder, copies);
  return holders[static_cast<std::size_t>(rank) % holders.size()];
}

Pieces owners(const Distribution& home, const Needed& needed, int reader) {
  const Region wanted = needed.region(reader);
  Pieces pieces;
  for (const Axis axis : all_axes)
    pieces[static_cast<std::size_t>(axis)] = owners_along(home, needed, axis, wanted[axis]);
  return pieces;
}

Pieces readers(const Needed& needed, const Region& owned) {
  Pieces pieces;
  for (const Axis axis : all_axes)
    pieces[static_cast<std::size_t>(axis)] = readers_along(needed, axis, owned[axis]);
  return pieces;
}

/// Calls `visit(rank, transfer)` for every rank that reads part of `owned`. Ranks that differ only
/// along `copies` are each visited.
template <class Visit>
void for_each_reader(const Needed& needed, const Region& owned, const DimList& copies,
                     Visit&& visit) {
  for_each_combination(readers(needed, owned), [&](const Indices& indices, const Transfer& box) {
    for (const int rank :
         needed.iteration.grid.group(needed.iteration.grid.rank_at(indices), copies))
      visit(rank, box);
  });
}

DimList joined(DimList a, const DimList& b) {
  for (const Dim dim : b) a.push_back(dim);
  return a;
}

void check_tensors(const Distribution& home, const Needed& needed) {
  SP_ASSERT(home.shape == needed.tensor,
            "the home tensor has {} elements, but the needed tensor has {}", home.shape.elements(),
            needed.tensor.elements());
  SP_ASSERT(home.dims_with(Role::Partial).empty() && home.dims_with(Role::Gathered).empty(),
            "the home {} has Partial or Gathered dimensions", home.text());
}

void check_ranks(const Distribution& home, const Needed& needed) {
  check_tensors(home, needed);
  SP_ASSERT(
      home.grid.ranks() == needed.iteration.grid.ranks() && home.ranks == needed.iteration.ranks,
      "the home lies on {}{}, but the consumer on {}{}", home.grid.text(), home.ranks.text(),
      needed.iteration.grid.text(), needed.iteration.ranks.text());
}

/// Sorts by the peer, then by the place where the consumer reads the region.
void sort(TransferList& list) {
  const auto sort_by = [](std::vector<Transfer>& transfers, int Transfer::*peer) {
    std::sort(transfers.begin(), transfers.end(), [&](const Transfer& a, const Transfer& b) {
      if (a.*peer != b.*peer) return a.*peer < b.*peer;
      const Region first = a.read(), second = b.read();
      return std::ranges::lexicographical_compare(first.interval, second.interval, {},
                                                  &Interval::begin, &Interval::begin);
    });
  };
  sort_by(list.receives, &Transfer::from);
  sort_by(list.sends, &Transfer::to);
}

Transfer between(int from, int to, const Transfer& box) {
  return {from, to, box.region, box.shift};
}

}  // namespace

TransferList enumerate(const Distribution& home, const Needed& needed, int rank) {
  check_tensors(home, needed);
  const DimList copies = home.dims_with(Role::Redundant);
  const int reads = needed.iteration.place(rank), owns = home.place(rank);
  TransferList list;
  if (reads >= 0)
    for_each_combination(
        owners(home, needed, reads), [&](const Indices& indices, const Transfer& box) {
          list.receives.push_back(between(nearest_copy(home, indices, copies, rank), rank, box));
        });
  if (owns >= 0) {
    Indices own{};
    for (const Dim dim : home.dims_with(Role::Block)) at(own, dim) = home.grid.index(dim, owns);
    const DimList all_copies = joined(needed.iteration.dims_with(Role::Gathered),
                                      needed.iteration.dims_with(Role::Redundant));
    for_each_reader(needed, home.owned(owns), all_copies, [&](int place, const Transfer& box) {
      const int reader = needed.iteration.ranks.of_job(place);
      if (nearest_copy(home, own, copies, reader) == rank)
        list.sends.push_back(between(rank, reader, box));
    });
  }
  sort(list);
  return list;
}

TransferList enumerate_adjoint(const Distribution& home, const Needed& needed, int rank) {
  check_tensors(home, needed);
  const Distribution& readers = needed.iteration;
  const DimList terms = readers.dims_with(Role::Gathered),
                copies = readers.dims_with(Role::Redundant);
  const auto contributor = [&](int place, int owner) {
    Indices index{};
    for (const Dim dim : all_dims) at(index, dim) = readers.grid.index(dim, place);
    return nearest_copy(readers, index, copies, owner);
  };
  const int reads = readers.place(rank), owns = home.place(rank);
  TransferList list;
  if (owns >= 0)
    for_each_reader(needed, home.owned(owns), terms, [&](int place, const Transfer& box) {
      list.receives.push_back(between(contributor(place, rank), rank, box));
    });
  if (reads >= 0)
    for_each_combination(
        owners(home, needed, reads), [&](const Indices& indices, const Transfer& box) {
          for (const int owner :
               home.group(home.grid.rank_at(indices), home.dims_with(Role::Redundant)))
            if (contributor(reads, owner) == rank) list.sends.push_back(between(rank, owner, box));
        });
  sort(list);
  return list;
}

ArrivalCounts::ArrivalCounts(const Distribution& home, const Needed& needed, bool adjoint)
    : home_(home), needed_(needed), adjoint_(adjoint) {
  check_ranks(home, needed);
  const ProcessGrid& grid = senders().grid;
  for (int levels = 0; levels <= grid.levels(); ++levels) {
    std::int64_t terms = 1;
    if (adjoint)
      for (const Dim dim : needed.iteration.dims_with(Role::Gathered))
        terms *= grid.parts_from(dim, levels);
    terms_.push_back(terms);
  }
  for (const Axis axis : all_axes) along_[static_cast<std::size_t>(axis)] = entries_along(axis);
}

ArrivalCounts::Along ArrivalCounts::entries_along(Axis axis) const {
  Along along;
  std::vector<std::int64_t> places;  // by rank: one number for the block indices at both ends
  for (const Distribution* end : {&home_, &needed_.iteration})
    for (const Dim dim : end->split(axis).by) {
      const std::vector<int> indices = end->grid.indices(dim);
      places.resize(indices.size(), 0);
      for (std::size_t rank = 0; rank < indices.size(); ++rank)
        places[rank] = places[rank] * end->grid.parts(dim) + indices[rank];
    }
  std::unordered_map<std::int64_t, int> entries;
  along.entry_of.reserve(places.size());
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const bool as_before = rank > 0 && places[rank] == places[rank - 1];
    along.entry_of.push_back(
        as_before
            ? along.entry_of.back()
            : entries.try_emplace(places[rank], static_cast<int>(entries.size())).first->second);
  }
  along.entries.resize(std::max<std::size_t>(1, entries.size()));
  return along;
}

namespace {

/// Returns the block indices along the dimensions `by` as one number. Each index keeps only the
/// levels outside `level`.
template <class IndexAlong>
std::int64_t as_number(const ProcessGrid& grid, const DimList& by, int level, IndexAlong&& index) {
  std::int64_t number = 0;
  for (const Dim dim : by) {
    const int inner = grid.parts_from(dim, level);
    number = number * (grid.parts(dim) / inner) + index(dim) / inner;
  }
  return number;
}

}  // namespace

/// Counts the senders' blocks that overlap a receiver's interval along an axis, grouped by the
/// blocks' indices.
ArrivalCounts::Groups ArrivalCounts::groups_along(Axis axis, int rank) const {
  const ProcessGrid& grid = senders().grid;
  const std::vector<Piece> pieces =
      adjoint_ ? readers_along(needed_, axis, home_.owned(axis, rank))
               : owners_along(home_, needed_, axis, needed_.region(axis, rank));
  Groups groups(terms_.size());
  for (auto piece = pieces.begin(); piece != pieces.end(); ++piece) {
    // Where the tensor wraps around, a message may hold several pieces of one block.
    const bool begins =
        !needed_.wraps(axis) || std::none_of(pieces.begin(), piece, [&](const Piece& before) {
          return before.index == piece->index;
        });
    for (std::size_t levels = 0; levels < groups.size(); ++levels) {
      Arrivals& group = groups[levels][as_number(grid, piece->by, static_cast<int>(levels),
                                                 [&](Dim dim) { return at(piece->index, dim); })];
      group.messages += begins ? 1 : 0;
      group.elements += piece->overlap.size();
    }
  }
  return groups;
}

/// Entry l of the result counts the senders' blocks that agree in the l outermost levels with the
/// block of `rank` in the senders' distribution. A block agrees in these levels exactly if each of
/// its indices does.
std::vector<Arrivals> ArrivalCounts::counts_along(Axis axis, int rank) {
  const auto number = [&](const Distribution& end, int level) {
    return as_number(end.grid, end.split(axis).by, level,
                     [&](Dim dim) { return end.grid.index(dim, rank); });
  };
  Along& along = along_[static_cast<std::size_t>(axis)];
  const auto [place, is_new] =
      along.groups.try_emplace(number(receivers(), receivers().grid.levels()));
  Groups& groups = place->second;
  if (is_new) groups = groups_along(axis, rank);
  std::vector<Arrivals> within(groups.size());
  for (std::size_t levels = 0; levels < groups.size(); ++levels)
    if (const auto group = groups[levels].find(number(senders(), static_cast<int>(levels)));
        group != groups[levels].end())
      within[levels] = group->second;
  return within;
}

std::span<const Arrivals> ArrivalCounts::within(int rank) {
  within_.clear();
  for (const std::int64_t terms : terms_) within_.push_back({terms, terms});
  for (const Axis axis : all_axes) {
    Along& along = along_[static_cast<std::size_t>(axis)];
    const int entry = along.entry_of.empty() ? 0 : along.entry_of[static_cast<std::size_t>(rank)];
    std::vector<Arrivals>& counts = along.entries[static_cast<std::size_t>(entry)];
    if (counts.empty()) counts = counts_along(axis, rank);
    for (std::size_t levels = 0; levels < counts.size(); ++levels) {
      within_[levels].messages *= counts[levels].messages;
      within_[levels].elements *= counts[levels].elements;
    }
  }
  return within_;
}

namespace {

Traffic summarize(const Distribution& home, const Needed& needed, bool adjoint) {
  ArrivalCounts counts(home, needed, adjoint);
  Traffic traffic;
  for (int rank = 0; rank < home.grid.ranks(); ++rank) {
    const std::span<const Arrivals> within = counts.within(rank);
    traffic.received.resize(within.size() - 1);
    for (std::size_t level = 0; level + 1 < within.size(); ++level) {
      const Arrivals from{within[level].messages - within[level + 1].messages,
                          within[level].elements - within[level + 1].elements};
      Arrivals& most = traffic.received[level];
      most = {std::max(most.messages, from.messages), std::max(most.elements, from.elements)};
      traffic.total_messages += from.messages;
      traffic.total_elements += from.elements;
    }
  }
  return traffic;
}

}  // namespace

Traffic summarize(const Distribution& home, const Needed& needed) {
  return summarize(home, needed, false);
}

Traffic summarize_adjoint(const Distribution& home, const Needed& needed) {
  return summarize(home, needed, true);
}

}  // namespace stratplan
