#pragma once
// Makes constants of ONNX tensors (TensorProto). Values are in the message, or in a file beside the
// model ("external data").
#include <onnx/onnx.pb.h>

#include <string>

#include "interop/onnx/constant.hpp"

namespace stratplan::interop {

/// Adds the tensor to `all` and returns it. The tensor must outlive `all`. `model_file`: the file
/// that holds the tensor. External data must lie below that file's folder, and are opened only when
/// values are requested. `name`: the initializer's name; empty for a literal.
///
/// Throws Inexpressible, naming the tensor, on a type that is not numeric, bad extents, or a number
/// of values that contradicts the shape. A request for values throws InputError if the external
/// data cannot be read.
Constant constant_of(const onnx::TensorProto& tensor, const std::string& model_file, Constants& all,
                     const std::string& name);

}  // namespace stratplan::interop
