#pragma once
// The wire format of ONNX files (protobuf), as far as the import walks it itself: it takes a model
// apart so that protobuf never copies the tensors' bytes.
#include <cstdint>
#include <optional>
#include <string>

#include "interop/onnx/file_bytes.hpp"

namespace stratplan::interop {

/// A range of a model's file.
struct Range {
  std::int64_t offset = 0, bytes = 0;
};

/// Returns the model as protobuf can parse it, with a locator in place of each tensor's raw data. A
/// long list of floats (float_data) counts as raw data, too. Returns nothing if the file breaks the
/// wire format. Tensors at these places lose their raw data:
///   graph.initializer           weights
///   graph.node.attribute.t      literals
std::optional<std::string> without_raw_data(const FileBytes& file);

/// Returns the range in the file that a locator stands for. Requires a model of without_raw_data().
Range located(const std::string& locator);

}  // namespace stratplan::interop
