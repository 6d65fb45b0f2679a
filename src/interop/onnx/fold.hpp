#pragma once
// What models compute from constants alone, most of it extents ("shape noise": Shape, Gather,
// Concat, Reshape, ...), is worked out while importing.
#include <optional>

#include "interop/onnx/model.hpp"

namespace stratplan::interop {

/// Whether `fold` knows the operator.
bool folds(const Node& node);
/// The node's output; an input that is left out is nothing. Added to `all`. Throws Inexpressible.
Constant fold(const Node& node, const std::vector<std::optional<Constant>>& inputs, Constants& all);

}  // namespace stratplan::interop
