#pragma once
// Extents and axes as ONNX's operators count them. All functions throw Inexpressible if the
// operator's rules are broken.
#include "interop/onnx/constant.hpp"

namespace stratplan::interop {

/// Returns the position counted from 0. A negative position counts from the end.
std::int64_t within(std::int64_t position, std::int64_t extent);
/// Returns the axes of a tensor with `rank` axes, counted from 0. Negative axes count from the end.
std::vector<std::int64_t> from_front(std::vector<std::int64_t> axes, std::size_t rank);
/// Throws unless `order` is a permutation of 0 to rank - 1.
void need_permutation(const std::vector<std::int64_t>& order, std::size_t rank);
/// Returns the extents after Squeeze. Without axes, all extents of 1 are dropped.
Extents squeezed(const Extents& extents, const std::vector<std::int64_t>& axes);
/// Returns the extents after Unsqueeze.
Extents unsqueezed(const Extents& extents, const std::vector<std::int64_t>& axes);
/// Returns the two extents after Flatten.
Extents flattened(const Extents& extents, std::int64_t axis);
/// Returns the extents after Reshape. An extent of -1 in `target` is inferred. An extent of 0 means
/// the input's extent, unless `zero_is_zero`.
Extents reshaped(const Extents& extents, Extents target, bool zero_is_zero);

}  // namespace stratplan::interop
