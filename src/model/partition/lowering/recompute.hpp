#pragma once
// Recomputation: layers whose outputs are not kept from the forward to the backward phase. Such
// outputs are computed again from the layers' inputs, just before a backward pass reads them. This
// saves memory and costs time. A normalization's sums over ranks are small and are kept. So the
// only communication that is repeated is halo exchanges and sums over C parts.
//
// Naming a layer also names the layers before it in its block (block.hpp), whose outputs would be
// kept only for the named layer. An input from another block is kept if its producer is not named.
// If the producer is named too, its output is recomputed first, and so on. So a run of blocks whose
// outputs are named is recomputed from the last output before the run. Data are loaded again, since
// the data source holds them until the step's end.
//
//   conv1 bn1 relu1 | conv2 bn2 relu2 | fc
//   named         kept                        recomputed: before the backward phase of
//   nothing       conv1, relu1, conv2, relu2  -
//   conv1         relu1, conv2, relu2         conv1: bn1
//   conv1, conv2  relu1, relu2                conv2: bn2; conv1: bn1
//   relu1, conv2  relu2                       relu1 (and conv1 before it), conv2: bn2
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
    bool is_read = false;  ///< some consumer has reads_input
    int consumers = 0;
    LayerIndex consumer = -1;  ///< one of the consumers
  };
  std::vector<Mark> marks_;  ///< by layer; empty if nothing is named
};

/// Returns nothing if the layer can be recomputed.
std::optional<Rejection> check_recompute(const Network& network, LayerIndex layer);

/// Returns, per block, the layer to name so that the block recomputes every output that only this
/// block reads in the backward phase. Outputs that other blocks read there are kept, even if those
/// blocks are recomputed too. -1: the block has no output to recompute.
std::vector<LayerIndex> recomputable(const Network& network, const std::vector<Block>& blocks);

/// Returns the names of all recomputable() layers, and of input layers whose data the backward
/// phase reads.
std::set<std::string> layers_to_recompute(const Network& network);

}  // namespace stratplan
