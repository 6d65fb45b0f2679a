#pragma once
// How a convolution is computed here: as the plan says, which has it from measurements; by rule
// where it does not say, never by timing at run time, so that all ranks and all runs do the same.
// Activations lie channels last outside; a blocked or planar route reorders them on the way in and
// out, inside its own time.
#include <optional>
#include <string_view>
#include <vector>

#include "model/partition/program/kernel.hpp"

namespace stratplan::cpu {

/// Raised whenever kernels here, or the communicators' collectives, become faster or slower: what
/// was measured of others is then measured again.
constexpr int kernels_revision = 5;

enum class Route : int {
  MatrixProduct,  ///< the buffers as they lie are matrices
  /// 3 x 3 windows of stride 1 through a transform that leaves a quarter of the products
  Winograd,
  Unfolded,      ///< windows unfolded into rows, then a product of matrices
  ChannelsLast,  ///< x and y as they lie, weights reordered
  Blocked,       ///< the library's own blocks of channels, x, y and weights reordered
  Planar,  ///< plain (N, C, D, H, W), likewise: the library takes it where it takes nothing else
};

std::string_view name_of(Route route);

/// x is rows x inner, the weights columns x inner, y rows x columns.
struct MatrixShape {
  std::int64_t rows = 0;
  std::int64_t inner = 0;
  std::int64_t columns = 0;
};
/// If the window covers the whole input (a fully connected layer) or is a single point, and there
/// is one group.
std::optional<MatrixShape> as_matrix_product(const Kernel& kernel);

/// The routes to try where no plan says which, the preferred first. `wide_vectors`: the processor
/// has AVX-512, for which the library has better channels-last kernels.
std::vector<Route> routes(const Kernel& kernel, bool wide_vectors);

}  // namespace stratplan::cpu
