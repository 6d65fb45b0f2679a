#pragma once
// TensorProto to Constant: values in the message, or in a file beside the model ("external data").
#include <onnx/onnx.pb.h>

#include <string>

#include "interop/onnx/constant.hpp"

namespace stratplan::interop {

/// Adds the tensor to `all`, which it must outlive. `model_file`: the file that the tensor comes
/// from; external data are opened when values are asked for, and only below its
/// folder. Throws Inexpressible: a name that is followed by what is wrong: no numeric type, bad
/// extents, or another number of values than its shape says; asking for values throws InputError
/// where the
/// external data are not to be had.
Constant constant_of(const onnx::TensorProto& tensor, const std::string& model_file,
                     Constants& all);

}  // namespace stratplan::interop
