#pragma once
// Crops the input of a convolution. In cuDNN, windows begin at the tensor's border or before it,
// and end less than a stride before the tensor's end. Our windows may leave more of x unread: the
// windows of a block of a transposed convolution need not reach all of its output.
#include <array>

#include "model/partition/program/kernel.hpp"

namespace stratplan::cudnn {

/// A convolution on the part of x that its windows reach.
struct Cropped {
  Kernel kernel;                                ///< its x is the part; no padding is negative
  std::array<std::int64_t, axis_count> from{};  ///< where the part begins in x
  bool whole = true;                            ///< the part is all of x
};
/// Returns the cropped convolution. Requires windows that fit into the padded x.
Cropped cropped(const Kernel& kernel);

}  // namespace stratplan::cudnn
