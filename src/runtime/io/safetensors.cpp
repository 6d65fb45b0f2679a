#include "runtime/io/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <optional>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/system/output.hpp"

namespace stratplan {
namespace {

static_assert(std::endian::native == std::endian::little,
              "values are copied as they lie in memory, so the host must be little-endian");
constexpr std::size_t length_bytes = 8;

std::int64_t elements_of(const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : shape) elements *= extent;
  return elements;
}

/// Returns the file's beginning: the header and its length. The header is padded with spaces so
/// that the values start at a multiple of 8 bytes.
template <class Tensor>
std::string beginning_of(const std::vector<Tensor>& tensors, const Metadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::int64_t begin = 0;
  for (const Tensor& tensor : tensors) {
    const std::int64_t end =
        begin + elements_of(tensor.shape) * static_cast<std::int64_t>(sizeof(float));
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.append((length_bytes - text.size() % length_bytes) % length_bytes, ' ');
  const std::uint64_t length = text.size();
  std::string bytes(length_bytes, '\0');
  std::memcpy(bytes.data(), &length, length_bytes);
  return bytes + text;
}

/// Reads the values after the header, tensor by tensor, so that memory never holds a second copy of
/// all values.
class Values {
 public:
  Values(std::string file, std::ifstream& stream, std::int64_t begin, std::int64_t end)
      : file_(std::move(file)), stream_(stream), begin_(begin), bytes_(end - begin) {}

  /// Returns the type of a tensor that has another type than F32, and counts its bytes as read.
  /// Returns nothing for F32, and for an entry that read() refuses.
  std::optional<std::string> skip(const Json& entry) {
    const auto type = entry.is_object() ? entry.value("dtype", Json()) : Json();
    if (!type.is_string() || type == "F32") return {};
    const auto offsets = entry.value("data_offsets", Json());
    if (!offsets.is_array() || offsets.size() != 2) return {};
    if (!offsets[0].is_number_integer() || !offsets[1].is_number_integer()) return {};
    const auto begin = offsets[0].get<std::int64_t>(), end = offsets[1].get<std::int64_t>();
    if (begin < 0 || end < begin || end > bytes_) return {};
    read_ = std::max(read_, end);
    return type.get<std::string>();
  }

  /// Returns the tensor that one entry of the header describes.
  NamedTensor read(const std::string& name, const Json& entry) {
    NamedTensor tensor{name, {}, {}};
    std::int64_t begin = 0, end = 0, elements = 1;
    try {
      if (entry.at("dtype") != "F32")
        throw InputError(file_, "/" + name + "/dtype", "expected F32");
      tensor.shape = entry.at("shape").get<std::vector<std::int64_t>>();
      begin = entry.at("data_offsets").at(0).get<std::int64_t>();
      end = entry.at("data_offsets").at(1).get<std::int64_t>();
    } catch (const Json::exception&) {
      throw InputError(file_, "/" + name, R"(expected {"dtype", "shape", "data_offsets"})");
    }
    for (const std::int64_t extent : tensor.shape)
      if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements))
        throw InputError(file_, "/" + name + "/shape", "expected extents of a tensor");
    if (begin < 0 || end < begin || end > bytes_ || elements > bytes_ ||
        (end - begin) != elements * 4)
      throw InputError(file_, "/" + name + "/data_offsets",
                       "expected offsets within the file that span the values of the shape");
    tensor.values.resize(static_cast<std::size_t>(elements));
    stream_.seekg(begin_ + begin);
    if (!stream_.read(reinterpret_cast<char*>(tensor.values.data()), end - begin))
      throw InputError(file_, "/" + name, "the tensor's values cannot be read");
    read_ = std::max(read_, end);
    return tensor;
  }

  /// Throws InputError if bytes follow the last tensor, which the format does not allow.
  void check_end() const {
    if (read_ != bytes_)
      throw InputError(file_, "",
                       fmt::format("expected {} bytes of values according to its header, found {}",
                                   read_, bytes_));
  }

 private:
  std::string file_;
  std::ifstream& stream_;
  std::int64_t begin_ = 0, bytes_ = 0, read_ = 0;
};

Metadata read_metadata(const std::string& file, const Json& entry) {
  try {
    return entry.get<Metadata>();
  } catch (const Json::exception&) {
    throw InputError(file, "/__metadata__", "expected an object of strings");
  }
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                       const Metadata& metadata) {
  std::string contents = beginning_of(tensors, metadata);
  for (const NamedTensor& tensor : tensors)
    contents.append(reinterpret_cast<const char*>(tensor.values.data()),
                    tensor.values.size() * sizeof(float));
  write_file_atomically(path, contents);
}

void write_safetensors(const std::filesystem::path& path, const std::vector<TensorSource>& tensors,
                       const Metadata& metadata) {
  OutputFile file(path);
  const std::string beginning = beginning_of(tensors, metadata);
  file.write(beginning.data(), beginning.size());
  for (const TensorSource& tensor : tensors) {
    const std::vector<float> values = tensor.values();
    SP_ASSERT(std::ssize(values) == elements_of(tensor.shape), "{}: {} values", tensor.name,
              values.size());
    file.write(values.data(), values.size() * sizeof(float));
  }
  file.complete();
}

std::vector<NamedTensor> read_safetensors(const std::filesystem::path& path) {
  return read_safetensors_file(path).tensors;
}

SafetensorsFile read_safetensors_file(const std::filesystem::path& path, OtherTypes other_types) {
  const std::string file = path.string();
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  if (!stream) throw InputError(file, "", "can not be opened");
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored))
    throw InputError(file, "", "expected a safetensors file, found a folder");
  const std::int64_t size = stream.tellg();
  stream.seekg(0);
  std::uint64_t length = 0;
  stream.read(reinterpret_cast<char*>(&length), length_bytes);
  if (std::memcmp(&length, "PK\3\4", 4) == 0)  // torch.save writes a ZIP file
    throw InputError(
        file, "",
        "expected a safetensors file, found a file of torch.save; "
        "safetensors.torch.save_file(module.state_dict(), path) writes the other kind");
  if (!stream || length > static_cast<std::uint64_t>(size) - length_bytes)
    throw InputError(file, "", "expected a safetensors header, but the file is too short for it");
  std::string text(length, '\0');
  stream.read(text.data(), std::ssize(text));
  const Json header = stream ? Json::parse(text, nullptr, false) : Json();
  if (!header.is_object())
    throw InputError(file, "", "expected a safetensors header, which is a JSON object");
  SafetensorsFile read;
  Values values(file, stream, static_cast<std::int64_t>(length_bytes + length), size);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__")
      read.metadata = read_metadata(file, entry);
    else if (const auto type =
                 other_types == OtherTypes::Skipped ? values.skip(entry) : std::nullopt)
      read.skipped[name] = *type;
    else
      read.tensors.push_back(values.read(name, entry));
  }
  values.check_end();
  return read;
}

}  // namespace stratplan
