#pragma once
// Random meshes as training data. A network predicts where a moving mesh has become tangled. A
// square of size x size cells moves with a smooth random displacement u, a sum of plane waves of up
// to four periods. The mesh of a Lagrangian simulation moves with its material in this way. A cell
// is tangled if the Jacobian of the map from the undistorted cell is zero or negative at one of the
// corners. A simulation must mend tangled cells before it goes on. LLNL's mesh-tangling networks
// have this task. The strain varies from sample to sample. In some meshes hardly a cell is tangled,
// in others a quarter of all cells.
//
// Eighteen channels describe a cell. The Jacobian is not among the channels, so the network has to
// learn it. The unit of channels 0 to 3 is the side of the square. The unit of all later lengths is
// the length of an undistorted edge.
//
//   0, 1     displacement of the centre, x and y
//   2, 3     position of the centre, x and y
//   4, 5     mean of the two edges along x, as a vector
//   6, 7     mean of the two edges along y, as a vector
//   8 .. 11  lengths of the edges: along x at the lower and the upper y, along y at the lower and
//            the upper x
//   12, 13   lengths of the diagonals
//   14       cosine of the angle between the mean edges
//   15       length of the mean edge along x, divided by the sum of both mean edges' lengths
//   16, 17   half the difference of the two edges along x, as a vector (the hourglass mode)
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
  std::vector<std::int32_t> tangled;  ///< [size][size]; 1 for a tangled cell, else 0
};

/// Returns one sample, which depends on seed and index alone.
MeshSample mesh_sample(const MeshMaps& maps, std::int64_t index);

/// Returns the labels in the layout that the mesh networks predict:
///   [block * block][size / block][size / block]
/// An output position covers block x block cells, with one channel per cell, row by row. The
/// networks mesh128, mesh1k and mesh2k use blocks of 32, so they predict 1024 channels. Requires
/// that `block` divides `size`.
std::vector<float> mesh_targets(const std::vector<std::int32_t>& tangled, std::int64_t size,
                                std::int64_t block);

}  // namespace stratplan
