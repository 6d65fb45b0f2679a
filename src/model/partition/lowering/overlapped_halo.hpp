#pragma once
// The interior/boundary split. While the halo of a convolution is on its way, the rank computes the
// outputs that read nothing of the halo (the interior). Then the rank computes the other outputs
// (the boundary). Each sample's outputs are cut along the outermost of D, H and W with an extent
// above 1 on this rank. So each piece and its input are contiguous, and kernels run on slices
// without a copy.
//
// Worked table: kernel 3, stride 1, padding 1 on both sides, 9 rows on 3 ranks.
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

/// A run of one sample's outputs along the cut axis, and the region of the input that the run
/// reads.
struct SplitPiece {
  Region output;
  Region input;
  Window window;  ///< along the axis that is cut, with the piece's own padding
  friend bool operator==(const SplitPiece&, const SplitPiece&) = default;
};

/// The pieces of a rank's outputs. Each output is in exactly one piece.
struct InteriorSplit {
  Axis axis = Axis::D;               ///< the axis that is cut
  std::vector<SplitPiece> interior;  ///< at most one per sample; reads nothing that is received
  std::vector<SplitPiece> boundary;  ///< the other outputs, in order
};

/// Splits the region `output` of a convolution's output, which the job's rank `rank` computes.
/// `home`: the distribution in which the convolution's input lies. `needed`: the regions of this
/// input that ranks read. The interior is empty if the rank receives nothing, or if all of its
/// outputs read something received. All of them do so if the grid also splits a spatial axis behind
/// the cut axis, since each piece then has a halo along that axis.
InteriorSplit interior_split(const Distribution& home, const Needed& needed, const Region& output,
                             int rank);

/// Returns nothing if the layer has an interior, which is so if some rank receives input that only
/// some of this rank's outputs read.
std::optional<Rejection> check_interior_split(const Network& network,
                                              const LayerDecompositions& decompositions,
                                              LayerIndex layer);

/// The names of all layers that check_interior_split() accepts.
std::set<std::string> layers_with_interior(const Network& network,
                                           const LayerDecompositions& decompositions);

}  // namespace stratplan
