#pragma once
// A convolution as a product of matrices: x is unfolded (im2col), a block of output positions at a
// time, so that each row holds what one window reads in the order in which the weights lie. Nothing
// is reordered, and what is unfolded stays in the cache.
#include "runtime/cpu/kernels.hpp"

namespace stratplan::cpu {

/// Forward and backward filter; null for backward data, which would have to fold.
std::unique_ptr<HostKernel> make_unfolded(const Kernel& kernel);

}  // namespace stratplan::cpu
