#pragma once
// What a block costs under a candidate, and an edge under a pair of candidates: the sum of the very
// ops that lower() would make of them, on the rank that has most to do. What overlaps, and who
// waits for whom, is the simulator's business.
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "model/cost/op_cost.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/partition/lowering/recompute.hpp"

namespace stratplan {

/// Of one rank and one iteration.
struct LayerCost {
  Seconds forward{};           ///< kernels
  Seconds backward{};          ///< kernels
  Seconds update{};            ///< kernels
  Seconds communication{};     ///< collectives, and exchanges inside the block
  Tier tier = Tier::Measured;  ///< of the least well known op
  Bytes persistent{};          ///< parameters, their gradients, optimizer state
  Bytes saved{};  ///< activations that backward reads; what the next block reads is counted there
  Seconds total() const { return forward + backward + update + communication; }
};

/// The ops that a block's own cost is made of, on one rank: each fusion's, and those of the edges
/// between them.
std::vector<Program> block_programs(const Network& network, const Block& block,
                                    const Decomposition& root, const Execution& execution,
                                    int rank);

/// Ranks among which the one with most to do is to be found: all of a small grid. Of a large one
/// those at the first, second and last place along each dimension, for the first blocks are the
/// longest (interval.hpp), the second has neighbours on both sides, and the last reads padding.
std::vector<int> representative_ranks(const ProcessGrid& grid);

/// Whether some consumer's backward phase reads the layer's output: then that consumer counts it.
bool kept_by_consumers(const Network& network, const Recomputation& recomputation,
                       LayerIndex layer);

/// By layer: equal numbers for layers that differ in name and place only.
std::vector<int> layer_classes(const Network& network, const Execution& execution);
/// The same text for blocks that differ in names and places only. `classes`: those of its layers.
std::string class_of(const Network& network, const std::vector<int>& classes, const Block& block);

/// Prices blocks and edges of one network on one machine. Equal descriptions are priced once, so
/// the repeated blocks of deep networks are cheap.
class LayerCosts {
 public:
  /// All must outlive this.
  LayerCosts(const Network& network, const Execution& execution, const MachineProfile& machine);

  /// Requires that the candidate is legal.
  const LayerCost& block(const Block& block, const Decomposition& root);
  /// Both directions of one edge between layers.
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
  std::vector<int> layer_classes_;  ///< equal for layers that differ in name only
  std::map<Kernel, OpCost> kernels_;
  std::map<BlockKey, LayerCost> blocks_;
  std::map<EdgeKey, Seconds> edges_;
};

}  // namespace stratplan
