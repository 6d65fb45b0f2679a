#pragma once
// Estimates the time and memory of a plan in closed form, without its edges. The estimates suffice
// to select the promising plans among thousands.
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "model/cost/closed_form/block_cost.hpp"
#include "model/cost/collective_cost.hpp"
#include "model/machine/machine_profile.hpp"
#include "model/partition/block.hpp"

namespace stratplan {

struct LayoutEstimate {
  Seconds step{};
  Seconds kernels{};  ///< time of kernels; part of `step`
  Bytes memory{};     ///< persistent memory, and memory saved for the backward phase
};

/// Estimates layouts. Equal blocks under equal decompositions are estimated only once. Not
/// thread-safe.
class LayoutEstimates {
 public:
  /// All arguments must outlive this object.
  LayoutEstimates(const Network& network, const std::vector<Block>& blocks,
                  const Execution& execution, const MachineProfile& machine);

  LayoutEstimate of(const LayerDecompositions& layers);
  LayoutEstimate of_block(std::size_t block, const Decomposition& root);

 private:
  Seconds price(const BlockCollective& collective, const ProcessGrid& grid);
  GroupShape shape_of_group(const BlockCollective& collective, const ProcessGrid& grid);

  const Network& network_;
  const std::vector<Block>& blocks_;
  const Execution& execution_;
  const MachineProfile& machine_;
  std::vector<std::string> classes_;                   ///< by block
  std::map<std::string, ClosedFormBlockCost> models_;  ///< by class
  std::map<std::pair<std::string, Decomposition>, LayoutEstimate> known_;
  std::map<std::tuple<ProcessGrid, std::vector<Dim>, int>, GroupShape> shapes_;
};

/// Returns, by block, the candidate that needs least memory among those that agree on the split of
/// shared parameters; of equal ones the fastest. Returns nothing if no candidates agree.
std::vector<Decomposition> leanest_roots(const Network& network, const std::vector<Block>& blocks,
                                         const Topology& topology, LayoutEstimates& estimates);

/// The effect of recomputation in one block.
struct Remaking {
  std::vector<std::string> layers;  ///< names for Execution::recompute
  /// bytes that are no longer kept
  Bytes saved{};
  /// additional time per step
  Seconds takes{};
};
/// Returns one entry per block in which recomputation saves memory. The entries descend by bytes
/// saved per second of additional time.
std::vector<Remaking> remakings(const Network& network, const std::vector<Block>& blocks,
                                const LayerDecompositions& layers, const Execution& execution,
                                const MachineProfile& machine);

}  // namespace stratplan
