#include "model/partition/lowering/overlapped_halo.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/partition/transfer.hpp"

namespace stratplan {
namespace {

const Window& window_along(const Needed& needed, Axis axis) {
  return needed.windows[static_cast<std::size_t>(spatial_index(axis))];
}

/// Returns the outermost spatial axis along which the input or the output has more than one
/// element.
Axis axis_to_cut(const Region& output, const Region& input) {
  const auto found = std::find_if(spatial_axes.begin(), spatial_axes.end(), [&](Axis axis) {
    return output[axis].size() > 1 || input[axis].size() > 1;
  });
  return found == spatial_axes.end() ? Axis::W : *found;
}

/// Returns the longer of the two parts of `positions` that lie before and behind `taken`.
Interval beside(Interval positions, Interval taken) {
  const Interval lost = intersect(positions, taken);
  if (lost.empty()) return positions;
  const Interval before{positions.begin, lost.begin}, after{lost.end, positions.end};
  return before.size() >= after.size() ? before : after;
}

/// Returns a run of a sample's output positions that read nothing of the received regions. The run
/// may include positions that read only padding. The result is empty if all positions of the run
/// read only padding.
Interval interior_of(const std::vector<Region>& received, const Needed& needed, Axis axis,
                     const Region& sample) {
  Interval interior = sample[axis];
  for (const Region& region : received) {
    if (intersect(region[Axis::N], sample[Axis::N]).empty()) continue;
    interior = beside(
        interior, reading(window_along(needed, axis), region[axis], needed.iteration.shape[axis]));
  }
  const bool reads = !interior.empty() &&
                     !intersect(needed.unclipped(axis, interior), {0, needed.tensor[axis]}).empty();
  return reads ? interior : Interval{};
}

/// Returns the piece of one sample's outputs at `positions`. `input`: the region that all of the
/// rank's outputs need.
SplitPiece piece_at(Interval positions, Axis axis, const Region& sample, const Region& input,
                    const Needed& needed) {
  SplitPiece piece{sample, input,
                   local_window(window_along(needed, axis), positions, needed.tensor[axis])};
  piece.output[axis] = positions;
  piece.input[Axis::N] = sample[Axis::N];
  piece.input[axis] = intersect(needed.unclipped(axis, positions), {0, needed.tensor[axis]});
  return piece;
}

}  // namespace

InteriorSplit interior_split(const Distribution& home, const Needed& needed, const Region& output,
                             int rank) {
  const Region input = needed.region(needed.iteration.place(rank));
  InteriorSplit split{axis_to_cut(output, input), {}, {}};
  std::vector<Region> received;
  for (const Transfer& transfer : enumerate(home, needed, rank).receives)
    if (transfer.from != rank) received.push_back(transfer.region);
  for (std::int64_t n = output[Axis::N].begin; n < output[Axis::N].end; ++n) {
    Region sample = output;
    sample[Axis::N] = {n, n + 1};
    const Interval all = sample[split.axis];
    const Interval interior =
        received.empty() ? Interval{} : interior_of(received, needed, split.axis, sample);
    const auto add = [&](std::vector<SplitPiece>& to, Interval positions) {
      if (!positions.empty()) to.push_back(piece_at(positions, split.axis, sample, input, needed));
    };
    add(split.interior, interior);
    add(split.boundary, {all.begin, interior.empty() ? all.end : interior.begin});
    if (!interior.empty()) add(split.boundary, {interior.end, all.end});
  }
  return split;
}

std::optional<Rejection> check_interior_split(const Network& network,
                                              const LayerDecompositions& decompositions,
                                              LayerIndex index) {
  const Layer& layer = network.layer(index);
  const auto reject = [&](std::string_view reason) {
    return Rejection{fmt::format("layer {} has no interior to compute while its halo arrives: {}",
                                 layer.name, reason)};
  };
  if (layer.kind != LayerKind::Convolution) return reject("it is not a convolution");
  const LayerIndex producer = layer.inputs.front();
  if (network.layer(producer).kind == LayerKind::Input)
    return reject("its input is data that the rank loads, so it receives no halo");
  const Decomposition& decomposition = decompositions[static_cast<std::size_t>(index)];
  const LayerDistributions here = distribute(layer, decomposition);
  const Distribution home =
      distribute(network.layer(producer), decompositions[static_cast<std::size_t>(producer)]).home;
  for (int rank = 0; rank < decomposition.grid.ranks(); ++rank) {
    const int of_job = decomposition.ranks.of_job(rank), owns = home.place(of_job);
    if ((owns < 0 || !home.owned(owns).contains(here.inputs.front().region(rank))) &&
        !interior_split(home, here.inputs.front(), here.raw.owned(rank), of_job).interior.empty())
      return {};
  }
  return reject(
      fmt::format("with decomposition {} behind a producer with decomposition {}, no rank receives "
                  "input that only some of its outputs read",
                  decomposition.text(), decompositions[static_cast<std::size_t>(producer)].text()));
}

std::set<std::string> layers_with_interior(const Network& network,
                                           const LayerDecompositions& decompositions) {
  std::set<std::string> names;
  for (LayerIndex index = 0; index < network.size(); ++index)
    if (!check_interior_split(network, decompositions, index))
      names.insert(network.layer(index).name);
  return names;
}

}  // namespace stratplan
