#pragma once
// What a plan takes and keeps in closed form, its edges left out: enough to tell which of thousands
// are worth a closer look.
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
  Seconds kernels{};  ///< of it
  Bytes memory{};     ///< what persists, and what the backward phase reads
};

/// Equal blocks under equal decompositions are priced once. Not for several threads at once.
class LayoutEstimates {
 public:
  /// All must outlive this.
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
  std::vector<std::string> classes_;  ///< by block
  std::map<std::pair<std::string, Decomposition>, LayoutEstimate> known_;
  std::map<std::tuple<ProcessGrid, std::vector<Dim>, int>, GroupShape> shapes_;
};

/// What one block would make again.
struct Remaking {
  std::vector<std::string> layers;  ///< to be named
  Bytes saved{};
  Seconds takes{};
};
/// Of all blocks that would keep less, those first that save most for each second that they take.
std::vector<Remaking> remakings(const Network& network, const std::vector<Block>& blocks,
                                const LayerDecompositions& layers, const Execution& execution,
                                const MachineProfile& machine);

}  // namespace stratplan
