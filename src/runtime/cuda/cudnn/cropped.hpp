#pragma once
// cuDNN's windows begin at the tensor's border or in front of it, and end at most a stride before
// its end. Ours may leave more of x unread: the blocks of a transposed convolution, whose windows
// need not reach all of its output.
#include <array>

#include "model/partition/program/kernel.hpp"

namespace stratplan::cudnn {

/// A convolution on that part of x which its windows reach.
struct Cropped {
  Kernel kernel;                                ///< x is the part; no padding is negative
  std::array<std::int64_t, axis_count> from{};  ///< where the part begins in x
  bool whole = true;                            ///< there is nothing to crop
};
/// Requires windows that fit into the padded x.
Cropped cropped(const Kernel& kernel);

}  // namespace stratplan::cudnn
