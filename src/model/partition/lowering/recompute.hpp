#pragma once
// Recomputation: layers whose outputs are not kept from the forward to the backward phase. They are
// made again there, from their inputs, just before something reads them: memory for time. What is
// summed over ranks for a normalization is small and kept, so only halo exchanges are repeated, and
// sums over C parts.
//
// Naming a layer names those before it in its block (block.hpp), for they would be kept for its
// sake alone. Inputs that another block makes are kept if that layer is not named; if it is, it is
// made again first, and so on: a run of blocks whose outputs are named is made again from what lies
// before it. Data are loaded again, for they are at hand until the op's end.
//
//   conv1 bn1 relu1 | conv2 bn2 relu2 | fc  kept                        made again, before the
//                                                                       backward phase of
//   nothing named                           conv1, relu1, conv2, relu2  -
//   conv1                                   relu1, conv2, relu2         conv1: bn1
//   conv1, conv2                            relu1, relu2                conv2: bn2; conv1: bn1
//   relu1, conv2                            relu2                       relu1 (and conv1 before
//                                                                       it), conv2: bn2
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/partition/block.hpp"

namespace stratplan {

class Recomputation {
 public:
  Recomputation(const Network& network, const std::set<std::string>& names);

  /// Its output is not kept.
  bool dropped(LayerIndex layer) const {
    return !marks_.empty() && marks_[static_cast<std::size_t>(layer)].dropped;
  }
  /// Dropped, and something that the backward phase does reads it.
  bool recomputed(LayerIndex layer) const {
    return !marks_.empty() && marks_[static_cast<std::size_t>(layer)].recomputed;
  }
  /// What the layer reads of this producer is brought again for the backward phase.
  bool brings_again(LayerIndex consumer, LayerIndex producer) const;

 private:
  struct Mark {
    bool dropped = false, recomputed = false;
    bool reads_input = false;  ///< in the backward phase: for its gradients, or to be made again
    bool is_read = false;      ///< so by a consumer
    int consumers = 0;
    LayerIndex consumer = -1;  ///< one of them
  };
  std::vector<Mark> marks_;  ///< by layer; empty if nothing is named
};

/// Nothing if the layer can be made again.
std::optional<Rejection> check_recompute(const Network& network, LayerIndex layer);

/// Per block the layer to name so that it makes again all that it alone keeps, whatever the other
/// blocks do: what others read stays. -1: it keeps nothing so.
std::vector<LayerIndex> recomputable(const Network& network, const std::vector<Block>& blocks);

/// The names of all of those, and of data that the backward phase reads.
std::set<std::string> layers_to_recompute(const Network& network);

}  // namespace stratplan
