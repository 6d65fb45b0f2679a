#pragma once
// Random meshes to learn from: where has a moving mesh become tangled? A square of size x size
// cells moves with a smooth random displacement u (a sum of plane waves of up to four periods), as
// the mesh of a Lagrangian simulation moves with its material. A cell is tangled if the Jacobian of
// its map is zero or negative at one of its corners: there edges cross, and a simulation must mend
// the mesh before it goes on (the task of LLNL's mesh-tangling networks). How strongly a mesh is
// sheared varies from sample to sample, from hardly a tangled cell to a quarter of all.
//
// Eighteen channels describe a cell. The Jacobian is none of them: it has to be found.
//
//   0, 1     displacement of the centre, x and y, in sides of the square
//   2, 3     place of the centre, x and y, in sides of the square
//   4, 5     mean of the two edges along x, a vector, in undistorted edges (as all below)
//   6, 7     mean of the two edges along y
//   8 .. 11  lengths of the edges: along x at the lower and the upper y, along y at the lower and
//            the upper x
//   12, 13   lengths of the diagonals
//   14       cosine of the angle between the mean edges
//   15       share of the mean edge along x in the sum of both lengths
//   16, 17   half the difference of the two edges along x: the hourglass mode
#include <cstdint>
#include <vector>

namespace stratplan {

struct MeshMaps {
  std::int64_t size = 128;  ///< cells along each side
  std::uint64_t seed = 1;
};

inline constexpr std::int64_t mesh_channels = 18;

struct MeshSample {
  std::vector<float> channels;        ///< [18][size][size], y before x
  std::vector<std::int32_t> tangled;  ///< [size][size]: 1 where tangled, else 0
};

/// A function of seed and index alone.
MeshSample mesh_sample(const MeshMaps& maps, std::int64_t index);

/// The labels as the mesh networks predict them, [block * block][size / block][size / block]: an
/// output position answers for block x block cells, one channel each, row by row. mesh128, mesh1k
/// and mesh2k: blocks of 32, hence their 1024 channels. Requires that `block` divides `size`.
std::vector<float> mesh_targets(const std::vector<std::int32_t>& tangled, std::int64_t size,
                                std::int64_t block);

}  // namespace stratplan
