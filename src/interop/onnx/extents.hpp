#pragma once
// Extents and axes as ONNX's operators count them. All functions throw Inexpressible where the
// operator's own rules are broken.
#include "interop/onnx/constant.hpp"

namespace stratplan::interop {

/// A position of so many, counted from 0; below zero it counts from the end.
std::int64_t within(std::int64_t position, std::int64_t extent);
/// `axes` of a tensor of so many axes, counted from 0.
std::vector<std::int64_t> from_front(std::vector<std::int64_t> axes, std::size_t rank);
/// Throws unless `order`, counted from 0, names each of so many axes once.
void need_permutation(const std::vector<std::int64_t>& order, std::size_t rank);
/// Extents after Squeeze (without axes: of all extents of 1), Unsqueeze, Flatten, Reshape.
Extents squeezed(const Extents& extents, const std::vector<std::int64_t>& axes);
Extents unsqueezed(const Extents& extents, const std::vector<std::int64_t>& axes);
Extents flattened(const Extents& extents, std::int64_t axis);
Extents reshaped(const Extents& extents, Extents target, bool zero_is_zero);

}  // namespace stratplan::interop
