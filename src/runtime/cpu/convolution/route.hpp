#pragma once
// The routes by which the cpu backend computes a convolution. The plan names the route that the
// profile measured as the fastest. If the plan names no route, a fixed rule chooses one. No route
// is timed at run time, so that all ranks and all runs use the same route. Activations are stored
// channels last. A blocked or planar route reorders activations on the way in and out. The route's
// measured time includes the reorders.
#include <optional>
#include <string_view>
#include <vector>

#include "model/partition/program/kernel.hpp"

namespace stratplan::cpu {

/// Revision of the performance of this part, increased whenever kernels of this backend or
/// collectives of the communicators become faster or slower. Profiles of another revision are then
/// measured again.
constexpr int kernels_revision = 5;

enum class Route : int {
  MatrixProduct,  ///< one matrix product of the buffers as stored
  /// Winograd's transform, for 3 x 3 windows of stride 1, with a quarter of the multiplications
  Winograd,
  Unfolded,      ///< windows unfolded into rows, then a matrix product
  ChannelsLast,  ///< oneDNN on x and y as stored, weights reordered
  Blocked,       ///< oneDNN on blocks of channels; x, y and weights reordered
  /// oneDNN on (N, C, D, H, W); x, y and weights reordered. The library accepts some kernels in
  /// this layout alone.
  Planar,
};

std::string_view name_of(Route route);

/// A convolution as a matrix product: x is rows x inner, the weights are columns x inner, and y is
/// rows x columns.
struct MatrixShape {
  std::int64_t rows = 0;
  std::int64_t inner = 0;
  std::int64_t columns = 0;
};
/// Returns the kernel as a matrix product of unchanged buffers, or nullopt if the kernel is not
/// such a product. The kernel must have one group and no padding. Its window must cover the whole
/// input (a fully connected layer) or be a single point of stride 1.
std::optional<MatrixShape> as_matrix_product(const Kernel& kernel);

/// Returns the routes to try if the plan names no route, the preferred route first. `wide_vectors`:
/// whether the processor has AVX-512, for which oneDNN has better channels-last kernels.
std::vector<Route> routes(const Kernel& kernel, bool wide_vectors);

}  // namespace stratplan::cpu
