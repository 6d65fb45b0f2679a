#pragma once
// Reads and writes files in the safetensors format. A file holds an 8-byte little-endian header
// length, a JSON header {name: {"dtype", "shape", "data_offsets"}}, and the values, little-endian
// and row-major. Only values of type F32 are supported; others can be skipped.
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/device/tensor.hpp"

namespace stratplan {

/// The strings in the header's "__metadata__", by name.
using Metadata = std::map<std::string, std::string>;

/// Writes the file, or replaces it atomically. Throws EnvironmentError if it cannot be written.
void write_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                       const Metadata& metadata = {});

/// A tensor whose values are made only when they are written.
struct TensorSource {
  std::string name;
  std::vector<std::int64_t> shape;
  std::function<std::vector<float>()> values;  ///< returns one value per element
};
/// Writes the same file while it holds the values of one tensor at a time. Passes on exceptions of
/// the sources. Then the file at the path stays as it was.
void write_safetensors(const std::filesystem::path& path, const std::vector<TensorSource>& tensors,
                       const Metadata& metadata = {});

/// Returns a file's tensors in the order of its header. Throws InputError if the file is missing,
/// truncated or malformed, or holds another type than F32.
std::vector<NamedTensor> read_safetensors(const std::filesystem::path& path);

struct SafetensorsFile {
  Metadata metadata;
  std::vector<NamedTensor> tensors;
  std::map<std::string, std::string> skipped{};  ///< tensors of other types than F32: their types
};
/// What to do with tensors of other types than F32.
enum class OtherTypes { Refused, Skipped };
/// Returns a file's tensors and metadata. Throws the errors of read_safetensors.
SafetensorsFile read_safetensors_file(const std::filesystem::path& path,
                                      OtherTypes other_types = OtherTypes::Refused);

}  // namespace stratplan
