#pragma once
// Constant folding during the import of a model. Models compute many tensors from constants alone,
// with operators such as Shape, Gather, Concat and Reshape. Most of these tensors are extents.
#include <optional>

#include "interop/onnx/model.hpp"

namespace stratplan::interop {

/// Whether fold() can compute the node's operator.
bool folds(const Node& node);
/// Adds the node's output to `all` and returns that constant. `inputs`: nothing for an input that
/// the node omits. Requires folds(node). Throws Inexpressible.
Constant fold(const Node& node, const std::vector<std::optional<Constant>>& inputs, Constants& all);

}  // namespace stratplan::interop
