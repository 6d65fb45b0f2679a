#pragma once
// Makes constants of ONNX tensors (TensorProto). Values are in the message, or in a file beside the
// model ("external data").
#include <onnx/onnx.pb.h>

#include <string>

#include "interop/onnx/constant.hpp"
#include "interop/onnx/file_bytes.hpp"

namespace stratplan::interop {

/// Adds the tensor to `all` and returns it. The tensor and the file must outlive `all`. `file`: the
/// file that holds the tensor, whose raw data is a locator (wire.hpp). External data must lie below
/// that file's folder, and are opened only when values are requested. `name`: the initializer's
/// name; empty for a literal.
///
/// Throws Inexpressible, naming the tensor, on a type that is not numeric, bad extents, or a number
/// of values that contradicts the shape. A request for values throws InputError if the external
/// data cannot be read.
Constant constant_of(const onnx::TensorProto& tensor, const FileBytes& file, Constants& all,
                     const std::string& name);

}  // namespace stratplan::interop
