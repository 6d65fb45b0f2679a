#pragma once
// A plan layer by layer: its decompositions with identical neighbours folded, and where the time of
// a step goes.
#include <vector>

#include "model/partition/block.hpp"
#include "model/partition/execution.hpp"
#include "model/partition/program/program.hpp"
#include "model/plan/timeline.hpp"
#include "report/table.hpp"

namespace stratplan {

/// Time of one layer's steps in one iteration, by kind; the mean over the ranks, so that waiting
/// for a slower rank shows where it happens.
struct LayerTimes {
  Seconds compute{};     ///< kernels, packing and loading included
  Seconds exchange{};    ///< point-to-point messages, waiting included
  Seconds collective{};  ///< waiting included
  Seconds total() const { return compute + exchange + collective; }
  LayerTimes& operator+=(const LayerTimes& other);
};

/// Durations by [rank][step of the rank's program].
using Durations = std::vector<std::vector<Seconds>>;
Durations durations(const Timeline& timeline, const std::vector<Program>& programs);

/// Per layer of the network; requires one duration per step.
std::vector<LayerTimes> times_by_layer(const std::vector<Program>& programs,
                                       const Durations& durations, int layers);
LayerTimes sum(const std::vector<LayerTimes>& layers);

/// Consecutive layers of one decomposition, inputs left out.
struct LayerRun {
  LayerIndex first = 0;
  LayerIndex last = 0;
  int layers = 0;
  std::string decomposition;
};
std::vector<LayerRun> fold_neighbours(const Network& network, const LayerDecompositions& layers);

/// Columns: layers, how many, decomposition; and predicted ms per step, where `times` (per layer)
/// is not empty.
Table decomposition_table(const Network& network, const LayerDecompositions& layers,
                          const std::vector<LayerTimes>& times = {});

/// What goes on beside kernels, in a line; empty if nothing does.
std::string overlap_text(const Execution& execution);
/// What is done to need less memory, in a line; empty if nothing is.
std::string memory_text(const Execution& execution);

}  // namespace stratplan
