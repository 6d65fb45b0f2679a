#pragma once
// A convolution as a matrix product of unfolded windows (im2col). x is unfolded for one block of
// output positions at a time. Each unfolded row holds the inputs of one window, in the order in
// which weights are stored. No tensor is reordered, and an unfolded block stays in the cache.
#include "runtime/cpu/kernels.hpp"

namespace stratplan::cpu {

/// Prepares the forward or the backward filter pass. Returns null for backward data, which would
/// need the inverse of unfolding. Requires one group.
std::unique_ptr<HostKernel> make_unfolded(const Kernel& kernel);

}  // namespace stratplan::cpu
