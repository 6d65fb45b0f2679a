#pragma once
// The cost of a block under a candidate, and of an edge under a pair of candidates. Each is the sum
// of the costs of the ops that lower() would make, on the rank with the most work. Overlap and
// waiting are left to the simulator.
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "model/cost/op_cost.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/partition/lowering/recompute.hpp"

namespace stratplan {

/// The cost of one block on one rank, per iteration.
struct LayerCost {
  Seconds forward{};           ///< time of kernels and loads
  Seconds backward{};          ///< time of kernels and loads
  Seconds update{};            ///< time of kernels
  Seconds communication{};     ///< time of collectives, and of exchanges inside the block
  Tier tier = Tier::Measured;  ///< the least certain tier among the ops
  Bytes persistent{};          ///< parameters, their gradients, optimizer state
  /// activations that the backward phase reads, without those that consumers count as their own
  /// (kept_by_consumers)
  Bytes saved{};
  Seconds total() const { return forward + backward + update + communication; }
};

/// The programs whose ops make up a block's own cost on one rank: one program per fusion, then one
/// per edge between fusions.
std::vector<Program> block_programs(const Network& network, const Block& block,
                                    const Decomposition& root, const Execution& execution,
                                    int rank);

/// A few ranks, among them the rank with the most work. For a small grid, these are all ranks. For
/// a large grid, these are the ranks with the first, second or last index along each dimension
/// (along R, only the first). The first blocks are the longest (interval.hpp), the second block has
/// neighbours on both sides, and the last block reads padding.
std::vector<int> representative_ranks(const ProcessGrid& grid);

/// Whether the backward phase of some consumer reads the layer's output. That consumer then counts
/// the output as its own saved memory.
bool kept_by_consumers(const Network& network, const Recomputation& recomputation,
                       LayerIndex layer);

/// A class number per layer. Layers that differ only in name and place in the network have equal
/// numbers.
std::vector<int> layer_classes(const Network& network, const Execution& execution);
/// A key that is equal for blocks that differ only in names and places in the network. `classes`:
/// the result of layer_classes().
std::string class_of(const Network& network, const std::vector<int>& classes, const Block& block);

/// Computes the costs of blocks and edges of one network on one machine. Equal blocks are computed
/// once, so the repeated blocks of deep networks are cheap.
class LayerCosts {
 public:
  /// All arguments must outlive this object.
  LayerCosts(const Network& network, const Execution& execution, const MachineProfile& machine);

  /// The cost of a block under a candidate. Requires that the candidate is legal.
  const LayerCost& block(const Block& block, const Decomposition& root);
  /// The cost of one edge between two layers, forward and backward together.
  Seconds edge(LayerIndex producer, const Decomposition& from, LayerIndex consumer,
               std::size_t input, const Decomposition& to);

 private:
  using BlockKey = std::pair<std::string, Decomposition>;
  using EdgeKey = std::tuple<int, Decomposition, int, std::size_t, Decomposition>;

  OpCost price(const Op& op, const Program& program);
  LayerCost price_block(const Block& block, const Decomposition& root, int rank);
  int layer_class(LayerIndex layer) const {
    return layer_classes_[static_cast<std::size_t>(layer)];
  }

  const Network& network_;
  const Execution& execution_;
  const MachineProfile& machine_;
  Recomputation recomputation_;
  std::vector<int> layer_classes_;  ///< equal for layers that differ only in name and place
  std::map<Kernel, OpCost> kernels_;
  std::map<BlockKey, LayerCost> blocks_;
  std::map<EdgeKey, Seconds> edges_;
};

}  // namespace stratplan
