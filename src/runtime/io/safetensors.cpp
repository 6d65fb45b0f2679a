#include "runtime/io/safetensors.hpp"

#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"

namespace stratplan {
namespace {

static_assert(std::endian::native == std::endian::little,
              "values are copied as they lie in memory");
constexpr std::size_t length_bytes = 8;

/// Padded with spaces so that the values start at a multiple of 8 bytes.
std::string header_of(const std::vector<NamedTensor>& tensors, const Metadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t begin = 0;
  for (const NamedTensor& tensor : tensors) {
    const std::size_t end = begin + tensor.values.size() * sizeof(float);
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.append((length_bytes - text.size() % length_bytes) % length_bytes, ' ');
  return text;
}

/// One entry of the header, with its values cut from `data`.
NamedTensor read_tensor(const std::string& file, const std::string& name, const Json& entry,
                        std::string_view data) {
  NamedTensor tensor{name, {}, {}};
  std::int64_t begin = 0, end = 0, elements = 1;
  try {
    if (entry.at("dtype") != "F32") throw InputError(file, "/" + name + "/dtype", "expected F32");
    tensor.shape = entry.at("shape").get<std::vector<std::int64_t>>();
    begin = entry.at("data_offsets").at(0).get<std::int64_t>();
    end = entry.at("data_offsets").at(1).get<std::int64_t>();
  } catch (const Json::exception&) {
    throw InputError(file, "/" + name, R"(expected {"dtype", "shape", "data_offsets"})");
  }
  for (const std::int64_t extent : tensor.shape)
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements))
      throw InputError(file, "/" + name + "/shape", "expected extents of a tensor");
  if (begin < 0 || end < begin || end > std::ssize(data) || elements > std::ssize(data) ||
      (end - begin) != elements * 4)
    throw InputError(file, "/" + name + "/data_offsets",
                     "expected the place of as many values as the shape says, within the file");
  tensor.values.resize(static_cast<std::size_t>(elements));
  if (elements > 0)
    std::memcpy(tensor.values.data(), data.data() + begin, static_cast<std::size_t>(end - begin));
  return tensor;
}

Metadata read_metadata(const std::string& file, const Json& entry) {
  try {
    return entry.get<Metadata>();
  } catch (const Json::exception&) {
    throw InputError(file, "/__metadata__", "expected texts by name");
  }
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                       const Metadata& metadata) {
  const std::string header = header_of(tensors, metadata);
  const std::uint64_t length = header.size();
  std::string contents(length_bytes, '\0');
  std::memcpy(contents.data(), &length, length_bytes);
  contents += header;
  for (const NamedTensor& tensor : tensors)
    contents.append(reinterpret_cast<const char*>(tensor.values.data()),
                    tensor.values.size() * sizeof(float));
  write_file_atomically(path, contents);
}

std::vector<NamedTensor> read_safetensors(const std::filesystem::path& path) {
  return read_safetensors_file(path).tensors;
}

SafetensorsFile read_safetensors_file(const std::filesystem::path& path) {
  const std::string file = path.string();
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw InputError(file, "", "can not be opened");
  const std::string contents{std::istreambuf_iterator<char>(stream), {}};
  std::uint64_t length = 0;
  if (contents.size() >= length_bytes) std::memcpy(&length, contents.data(), length_bytes);
  if (contents.size() < length_bytes || length > contents.size() - length_bytes)
    throw InputError(file, "", "truncated: no safetensors header");
  const std::string_view all = contents;
  const Json header = Json::parse(all.substr(length_bytes, length), nullptr, false);
  if (!header.is_object())
    throw InputError(file, "", "expected a safetensors header: a JSON object");
  SafetensorsFile read;
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__")
      read.tensors.push_back(read_tensor(file, name, entry, all.substr(length_bytes + length)));
    else
      read.metadata = read_metadata(file, entry);
  }
  return read;
}

}  // namespace stratplan
