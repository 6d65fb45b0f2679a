#pragma once
// InteriorSplit: while what a convolution needs of other ranks is on its way, those of its outputs
// can be computed that read none of it. Each sample's outputs are cut along the outermost of D, H
// and W that has any extent on this rank: so a piece is contiguous, and so is what it reads, and
// kernels run on slices, without a copy.
//
// Worked table: kernel 3, stride 1, padding 1 and 1, 9 rows on 3 ranks.
//   rank  owns   receives      interior  boundary
//   0     [0,3)  [3,4)         [0,2)     [2,3)
//   1     [3,6)  [2,3) [6,7)   [4,5)     [3,4) [5,6)
//   2     [6,9)  [5,6)         [7,9)     [6,7)
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/partition/block.hpp"

namespace stratplan {

/// A run of one sample's outputs, and the block of inputs that it reads.
struct SplitPiece {
  Region output;
  Region input;
  Window window;  ///< between the two, along the axis that is cut
  friend bool operator==(const SplitPiece&, const SplitPiece&) = default;
};

/// Together they are all outputs of a rank, each once.
struct InteriorSplit {
  Axis axis = Axis::D;               ///< that is cut
  std::vector<SplitPiece> interior;  ///< at most one per sample: reads nothing that is received
  std::vector<SplitPiece> boundary;  ///< the others, in order
};

/// Of the outputs that the job's `rank` computes of a convolution whose input's home and need these
/// are. No interior if it receives nothing, or reads some of it everywhere: where an axis further
/// in is split too, each piece has a halo along that.
InteriorSplit interior_split(const Distribution& home, const Needed& needed, const Region& output,
                             int rank);

/// Nothing if the layer can be computed in slabs: on some rank some of its outputs read nothing
/// that is received.
std::optional<Rejection> check_interior_split(const Network& network,
                                              const LayerDecompositions& decompositions,
                                              LayerIndex layer);

/// The names of all layers that check_interior_split() admits.
std::set<std::string> layers_with_interior(const Network& network,
                                           const LayerDecompositions& decompositions);

/// Elements from the start of a dense buffer over `all` to that of a contiguous region in it.
std::int64_t elements_before(const Region& part, const Region& all);

}  // namespace stratplan
