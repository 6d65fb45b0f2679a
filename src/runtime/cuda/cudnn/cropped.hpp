#pragma once
// Crops the input of a convolution. cuDNN requires that windows begin at the tensor's border or
// before it, and end less than a stride before the tensor's end. The windows of a Kernel may leave
// more of x unread. For example, x may be the output of a block of a transposed convolution, whose
// windows need not reach all of x.
#include <array>

#include "model/partition/program/kernel.hpp"

namespace stratplan::cudnn {

/// A convolution on the part of x that its windows reach.
struct Cropped {
  Kernel kernel;                                ///< of the cropped part, without negative padding
  std::array<std::int64_t, axis_count> from{};  ///< where the cropped part begins in x
  bool whole = true;                            ///< whether the cropped part is all of x
};
/// Returns the cropped convolution. Requires windows that fit into the padded x. Both ends of a
/// dimension get the same padding if no window then reads more than before, because many of cuDNN's
/// engines take no other.
Cropped cropped(const Kernel& kernel);

}  // namespace stratplan::cudnn
