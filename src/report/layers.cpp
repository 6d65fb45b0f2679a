#include "report/layers.hpp"

#include <fmt/format.h>

#include <array>

#include "model/base/assert.hpp"
#include "model/base/text.hpp"

namespace stratplan {

LayerTimes& LayerTimes::operator+=(const LayerTimes& other) {
  compute += other.compute;
  exchange += other.exchange;
  collective += other.collective;
  return *this;
}

Durations durations(const Timeline& timeline, const std::vector<Program>& programs) {
  SP_ASSERT(timeline.ranks.size() == programs.size(), "there are {} timelines for {} programs",
            timeline.ranks.size(), programs.size());
  Durations result;
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    result.emplace_back(programs[rank].ops.size());
    for (const Span& span : timeline.ranks[rank])
      result.back()[static_cast<std::size_t>(span.op)] += span.end - span.start;
  }
  return result;
}

std::vector<LayerTimes> times_by_layer(const std::vector<Program>& programs,
                                       const Durations& durations, int layers) {
  std::vector<LayerTimes> result(static_cast<std::size_t>(layers));
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    const auto& steps = programs[rank].ops;
    SP_ASSERT(durations[rank].size() == steps.size(), "there are {} durations for {} ops",
              durations[rank].size(), steps.size());
    for (std::size_t s = 0; s < steps.size(); ++s) {
      if (steps[s].layer < 0) continue;
      LayerTimes& times = result[static_cast<std::size_t>(steps[s].layer)];
      const Seconds share = durations[rank][s] / static_cast<double>(programs.size());
      if (steps[s].producer >= 0 && communicates(steps[s])) {
        times.exchange += share;
      } else if (std::holds_alternative<CollectiveOp>(steps[s].body)) {
        times.collective += share;
      } else {
        times.compute += share;
      }
    }
  }
  return result;
}

LayerTimes sum(const std::vector<LayerTimes>& layers) {
  LayerTimes total;
  for (const auto& layer : layers) total += layer;
  return total;
}

std::vector<LayerRun> fold_neighbours(const Network& network, const LayerDecompositions& layers) {
  std::vector<LayerRun> runs;
  for (LayerIndex i = 0; i < network.size(); ++i) {
    if (network.layer(i).is_data()) continue;
    const std::string text = layers[static_cast<std::size_t>(i)].text();
    if (runs.empty() || runs.back().decomposition != text) runs.push_back({i, i, 0, text});
    runs.back().last = i;
    ++runs.back().layers;
  }
  return runs;
}

Table decomposition_table(const Network& network, const LayerDecompositions& layers,
                          const std::vector<LayerTimes>& times) {
  using enum Table::Align;
  Table table{{{"layers", Left}, {"number"}, {"decomposition", Left}}, {}};
  if (!times.empty()) table.columns.push_back({"predicted ms"});
  for (const LayerRun& run : fold_neighbours(network, layers)) {
    const std::string& first = network.layer(run.first).name;
    std::vector<std::string> row{
        run.layers == 1 ? first : first + " .. " + network.layer(run.last).name,
        std::to_string(run.layers), run.decomposition};
    if (!times.empty()) {
      LayerTimes total;
      for (LayerIndex i = run.first; i <= run.last; ++i)
        total += times[static_cast<std::size_t>(i)];
      row.push_back(milliseconds(total.total()));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

namespace {

/// Whether the layer's windows reach into the blocks of other ranks.
bool reads_halo(const Layer& layer, const Decomposition& decomposition) {
  constexpr std::array dims{Dim::D, Dim::H, Dim::W};
  const auto& windows = layer.windows();
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (decomposition.grid.parts(dims[i]) > 1 && windows[i].span() > 1) return true;
  return false;
}

}  // namespace

std::string overlap_text(const Execution& execution, const Network& network,
                         const LayerDecompositions& layers) {
  if (!execution.concurrent_streams) return {};
  std::vector<std::string> halos, redistributions;
  for (const std::string& name : execution.overlapped_halos) {
    const LayerIndex layer = *network.find(name);
    (reads_halo(network.layer(layer), layers[static_cast<std::size_t>(layer)]) ? halos
                                                                               : redistributions)
        .push_back(name);
  }
  std::string text = "communication goes on beside kernels";
  if (!halos.empty())
    text += fmt::format("; layers whose halo exchange overlaps computation of the interior: {}",
                        fmt::join(halos, ", "));
  if (!redistributions.empty())
    text += fmt::format(
        "; layers whose redistribution overlaps computation of the outputs that need none of it: "
        "{}",
        fmt::join(redistributions, ", "));
  return text;
}

std::string memory_text(const Execution& execution) {
  constexpr std::array shared{"", "the optimizer's state", "gradients and the optimizer's state",
                              "parameters, gradients and the optimizer's state"};
  std::vector<std::string> parts;
  if (is_narrow(execution.precision.activations))
    parts.push_back(fmt::format("activations in {}", name_of(execution.precision.activations)));
  if (!execution.recompute.empty())
    parts.push_back(
        fmt::format("recomputed for the backward phase: {}", fmt::join(execution.recompute, ", ")));
  if (execution.sharding > 0)
    parts.push_back(fmt::format("sharded over the ranks: {}",
                                shared[static_cast<std::size_t>(execution.sharding)]));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace stratplan
