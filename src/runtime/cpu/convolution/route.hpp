#pragma once
// The routes by which the cpu backend computes a convolution. The plan names the route, which the
// profile has measured. Where the plan names none, a fixed rule chooses. Nothing is timed at run
// time, so that all ranks and all runs use the same route. Activations are stored channels last. A
// blocked or planar route reorders them on the way in and out; the route's measured time includes
// the reorders.
#include <optional>
#include <string_view>
#include <vector>

#include "model/partition/program/kernel.hpp"

namespace stratplan::cpu {

/// Increased whenever kernels of this backend or collectives of the communicators become faster or
/// slower. Profiles of another revision are then measured again.
constexpr int kernels_revision = 5;

enum class Route : int {
  MatrixProduct,  ///< the buffers are matrices as stored
  /// 3 x 3 windows of stride 1 by Winograd's transform, with a quarter of the multiplications
  Winograd,
  Unfolded,      ///< windows unfolded into rows, then a matrix product
  ChannelsLast,  ///< x and y as stored, weights reordered
  Blocked,       ///< the library's blocks of channels; x, y and weights reordered
  /// (N, C, D, H, W); x, y and weights reordered. Some kernels are accepted by the library in this
  /// layout alone.
  Planar,
};

std::string_view name_of(Route route);

/// A convolution as a matrix product: x is rows x inner, the weights columns x inner, y rows x
/// columns.
struct MatrixShape {
  std::int64_t rows = 0;
  std::int64_t inner = 0;
  std::int64_t columns = 0;
};
/// Returns the kernel as a matrix product of unchanged buffers, or nothing if it is not one. The
/// kernel must have one group and no padding. Its window must cover the whole input (a fully
/// connected layer) or be a single point of stride 1.
std::optional<MatrixShape> as_matrix_product(const Kernel& kernel);

/// Returns the routes to try where the plan names none, the preferred one first. `wide_vectors`:
/// the processor has AVX-512, for which the library has better channels-last kernels.
std::vector<Route> routes(const Kernel& kernel, bool wide_vectors);

}  // namespace stratplan::cpu
