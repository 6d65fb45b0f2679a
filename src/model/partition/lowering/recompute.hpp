#pragma once
// Recomputation: layers whose outputs are not kept from the forward to the backward phase. Such
// outputs are computed again from the layers' inputs, just before a backward pass reads them. This
// saves memory and costs time. A normalization's sums over ranks are small and are kept. Transfers
// between layers and the sums of partial outputs over ranks are repeated.
//
// Naming a layer also names the layers before it in its block (block.hpp), whose outputs would be
// kept only for the named layer. An input from another block is kept if its producer is not named.
// If the producer is named too, its output is recomputed first, and so on. So a run of blocks whose
// outputs are named is recomputed from the last output before the run. Data of a named input layer
// are loaded again, since the data source holds them until the step's end.
//
// Worked table: the outputs of conv1 bn1 relu1 | conv2 bn2 relu2 | fc, with | between blocks.
//   named         kept                        recomputed
//   nothing       conv1, relu1, conv2, relu2  -
//   conv1         relu1, conv2, relu2         conv1, before bn1's backward passes
//   conv1, conv2  relu1, relu2                conv2, before bn2's backward passes; conv1, before
//                                             bn1's
//   relu1, conv2  relu2                       conv1, relu1, conv2, all before bn2's backward passes
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/partition/block.hpp"

namespace stratplan {

class Recomputation {
 public:
  Recomputation(const Network& network, const std::set<std::string>& names);

  /// Whether the layer's output is not kept.
  bool dropped(LayerIndex layer) const {
    return !marks_.empty() && marks_[static_cast<std::size_t>(layer)].dropped;
  }
  /// Whether the layer's output is dropped, and the backward phase reads it.
  bool recomputed(LayerIndex layer) const {
    return !marks_.empty() && marks_[static_cast<std::size_t>(layer)].recomputed;
  }
  /// Whether the input that `consumer` reads from `producer` is brought again for the backward
  /// phase.
  bool brings_again(LayerIndex consumer, LayerIndex producer) const;

 private:
  struct Mark {
    bool dropped = false, recomputed = false;
    /// the layer reads its input in the backward phase: for gradients, or to be recomputed
    bool reads_input = false;
    bool is_read = false;  ///< `reads_input` holds for some consumer
    int consumers = 0;
    LayerIndex consumer = -1;  ///< one of the consumers
  };
  std::vector<Mark> marks_;  ///< by layer; empty if no layer is named
};

/// Returns nothing if the layer can be recomputed.
std::optional<Rejection> check_recompute(const Network& network, LayerIndex layer);

/// Returns, per block, the layer to name so that the block recomputes every output that only this
/// block reads in the backward phase. Outputs that other blocks read in the backward phase are
/// kept, even if those blocks are recomputed too. An index of -1 means that the block has no output
/// to recompute.
std::vector<LayerIndex> recomputable(const Network& network, const std::vector<Block>& blocks);

/// Returns the names of all recomputable() layers, and of input layers whose data the backward
/// phase reads.
std::set<std::string> layers_to_recompute(const Network& network);

}  // namespace stratplan
