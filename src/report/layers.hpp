#pragma once
// A plan by layer: its decompositions, with consecutive equal ones folded, and the time of a step
// by layer.
#include <string>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/index.hpp"
#include "model/partition/block.hpp"
#include "model/partition/execution.hpp"
#include "model/partition/program/program.hpp"
#include "model/plan/timeline.hpp"
#include "report/table.hpp"

namespace stratplan {

/// Time of one layer's ops in one iteration, by kind of op, as the mean over the ranks. Waiting for
/// a slower rank counts in the layer where it happens.
struct LayerTimes {
  Seconds compute{};     ///< kernels, packing and loading included
  Seconds exchange{};    ///< point-to-point messages, waiting included
  Seconds collective{};  ///< waiting included
  Seconds total() const { return compute + exchange + collective; }
  LayerTimes& operator+=(const LayerTimes& other);
};

/// Durations of ops, indexed by [rank][op of the rank's program].
using Durations = std::vector<std::vector<Seconds>>;
Durations durations(const Timeline& timeline, const std::vector<Program>& programs);

/// Returns the lists of the programs' ranks. `by_rank`: for each rank of the job, one entry per op.
/// Throws InputError with `file` and `pointer` if a list lacks an entry; `entry` says what that is.
template <class Entry>
std::vector<std::vector<Entry>> of_programs(const std::vector<std::vector<Entry>>& by_rank,
                                            const std::vector<Program>& programs,
                                            const std::string& file, const std::string& pointer,
                                            const std::string& entry) {
  std::vector<std::vector<Entry>> lists;
  for (const Program& program : programs) {
    const std::size_t rank = at(program.rank);
    if (by_rank.size() != at(program.ranks) || by_rank[rank].size() != program.ops.size())
      throw InputError(file, pointer,
                       "expected one " + entry + " for each op of each rank's program");
    lists.push_back(by_rank[rank]);
  }
  return lists;
}

/// Times per layer of the network, for a network of `layers` layers. Requires one duration per op.
/// Ops of no layer are left out.
std::vector<LayerTimes> times_by_layer(const std::vector<Program>& programs,
                                       const Durations& durations, int layers);
LayerTimes sum(const std::vector<LayerTimes>& layers);

/// Consecutive layers with the same decomposition. Input layers are left out.
struct LayerRun {
  LayerIndex first = 0;
  LayerIndex last = 0;
  int layers = 0;
  std::string decomposition;
};
std::vector<LayerRun> fold_neighbours(const Network& network, const LayerDecompositions& layers);

/// The columns are the layers, their number and their decomposition. If `times` (per layer) is not
/// empty, one more column has the predicted ms per step.
Table decomposition_table(const Network& network, const LayerDecompositions& layers,
                          const std::vector<LayerTimes>& times = {});

/// Returns one line about communication that goes on beside kernels; empty if there is none.
std::string overlap_text(const Execution& execution, const Network& network,
                         const LayerDecompositions& layers);
/// Returns one line about what the plan does to save memory (precision, recomputation, sharding);
/// empty if it does nothing.
std::string memory_text(const Execution& execution);

}  // namespace stratplan
