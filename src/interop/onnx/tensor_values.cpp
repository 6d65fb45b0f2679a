#include "interop/onnx/tensor_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <filesystem>

#include "interop/onnx/wire.hpp"
#include "model/base/error.hpp"

namespace stratplan::interop {
namespace {

namespace fs = std::filesystem;
using onnx::TensorProto;

static_assert(std::endian::native == std::endian::little,
              "values are copied from the file without a change of byte order");

struct ElementType {
  bool integral;
  std::int64_t bytes;
  const char* name;
};

ElementType type_of(const TensorProto& tensor) {
  switch (tensor.data_type()) {
    case TensorProto::FLOAT: return {false, 4, "float"};
    case TensorProto::DOUBLE: return {false, 8, "double"};
    case TensorProto::FLOAT16: return {false, 2, "float16"};
    case TensorProto::BFLOAT16: return {false, 2, "bfloat16"};
    case TensorProto::INT64: return {true, 8, "int64"};
    case TensorProto::UINT64: return {true, 8, "uint64"};
    case TensorProto::INT32: return {true, 4, "int32"};
    case TensorProto::UINT32: return {true, 4, "uint32"};
    case TensorProto::INT16: return {true, 2, "int16"};
    case TensorProto::UINT16: return {true, 2, "uint16"};
    case TensorProto::INT8: return {true, 1, "int8"};
    case TensorProto::UINT8: return {true, 1, "uint8"};
    case TensorProto::BOOL: return {true, 1, "bool"};
    default:
      const std::string& name = TensorProto::DataType_Name(tensor.data_type());
      throw Inexpressible{fmt::format("expected numbers, found the element type {}",
                                      name.empty() ? std::to_string(tensor.data_type()) : name)};
  }
}

float from_half(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits >> 15) << 31,
                      exponent = bits >> 10 & 31u, fraction = bits & 1023u;
  if (exponent == 0) {  // zero and subnormal numbers
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wider = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | wider << 23 | fraction << 13);
}

float from_bfloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Values of a tensor as they lie in a file.
struct StoredValues {
  const FileBytes& file;
  std::int64_t offset, elements;
};

/// Reads and converts the values, a part at a time.
template <class Stored, class To, class Convert>
std::vector<To> unpack(const StoredValues& stored, Convert convert) {
  constexpr std::int64_t most = 1 << 16;
  std::vector<To> values;
  values.reserve(static_cast<std::size_t>(stored.elements));
  std::vector<Stored> part;
  for (std::int64_t done = 0; done < stored.elements; done += std::ssize(part)) {
    part.resize(static_cast<std::size_t>(std::min(most, stored.elements - done)));
    constexpr std::int64_t bytes = sizeof(Stored);
    stored.file.read(stored.offset + done * bytes, std::ssize(part) * bytes, part.data());
    for (const Stored value : part) values.push_back(convert(value));
  }
  return values;
}

std::vector<float> unpack_floats(const StoredValues& stored) {
  std::vector<float> values(static_cast<std::size_t>(stored.elements));
  stored.file.read(stored.offset, stored.elements * 4, values.data());
  return values;
}

template <class Stored>
Values unpack_integers(const StoredValues& from) {
  return unpack<Stored, std::int64_t>(
      from, [](Stored stored) { return static_cast<std::int64_t>(stored); });
}

Values unpack(int type, const StoredValues& from) {
  switch (type) {
    case TensorProto::FLOAT: return unpack_floats(from);
    case TensorProto::DOUBLE:
      return unpack<double, float>(from, [](double stored) { return static_cast<float>(stored); });
    case TensorProto::FLOAT16: return unpack<std::uint16_t, float>(from, from_half);
    case TensorProto::BFLOAT16: return unpack<std::uint16_t, float>(from, from_bfloat);
    case TensorProto::INT64: return unpack_integers<std::int64_t>(from);
    case TensorProto::UINT64: return unpack_integers<std::uint64_t>(from);
    case TensorProto::INT32: return unpack_integers<std::int32_t>(from);
    case TensorProto::UINT32: return unpack_integers<std::uint32_t>(from);
    case TensorProto::INT16: return unpack_integers<std::int16_t>(from);
    case TensorProto::UINT16: return unpack_integers<std::uint16_t>(from);
    case TensorProto::INT8: return unpack_integers<std::int8_t>(from);
    default: return unpack_integers<std::uint8_t>(from);
  }
}

/// Returns the number of values in the list field that holds the tensor's values if it has no raw
/// bytes.
std::int64_t listed(const TensorProto& tensor) {
  switch (tensor.data_type()) {
    case TensorProto::FLOAT: return tensor.float_data_size();
    case TensorProto::DOUBLE: return tensor.double_data_size();
    case TensorProto::INT64: return tensor.int64_data_size();
    case TensorProto::UINT64:
    case TensorProto::UINT32: return tensor.uint64_data_size();
    default: return tensor.int32_data_size();
  }
}

template <class To, class List, class Convert>
std::vector<To> list(const List& from, Convert convert) {
  std::vector<To> values;
  values.reserve(static_cast<std::size_t>(from.size()));
  for (const auto value : from) values.push_back(convert(value));
  return values;
}

Values listed_values(const TensorProto& tensor) {
  const auto integer = [](auto value) { return static_cast<std::int64_t>(value); };
  const auto number = [](auto value) { return static_cast<float>(value); };
  switch (tensor.data_type()) {
    case TensorProto::FLOAT: return list<float>(tensor.float_data(), number);
    case TensorProto::DOUBLE: return list<float>(tensor.double_data(), number);
    case TensorProto::FLOAT16:
      return list<float>(tensor.int32_data(), [](std::int32_t bits) {
        return from_half(static_cast<std::uint16_t>(bits));
      });
    case TensorProto::BFLOAT16:
      return list<float>(tensor.int32_data(), [](std::int32_t bits) {
        return from_bfloat(static_cast<std::uint16_t>(bits));
      });
    case TensorProto::INT64: return list<std::int64_t>(tensor.int64_data(), integer);
    case TensorProto::UINT64:
    case TensorProto::UINT32: return list<std::int64_t>(tensor.uint64_data(), integer);
    default: return list<std::int64_t>(tensor.int32_data(), integer);
  }
}

// ---------------------------------------------------------------- external data

/// The file and the range of bytes that hold a tensor's values, from its external_data entries.
/// A length of -1: not given.
struct External {
  std::string location;
  std::int64_t offset = 0, length = -1;
};

External external_of(const TensorProto& tensor, const std::string& model_file) {
  External external;
  const auto number = [&](const std::string& key, const std::string& text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 0)
      throw InputError(
          model_file, "",
          fmt::format("tensor {}: expected a whole number as the {} of its external data, found {}",
                      tensor.name(), key, text));
    return value;
  };
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") external.location = entry.value();
    if (entry.key() == "offset") external.offset = number("offset", entry.value());
    if (entry.key() == "length") external.length = number("length", entry.value());
  }
  return external;
}

/// Returns the file that `location` names. Throws InputError unless the file lies below the model's
/// folder.
fs::path contained(const std::string& location, const std::string& tensor,
                   const std::string& model_file) {
  const auto refuse = [&](const char* why) {
    throw InputError(
        model_file, "",
        fmt::format(
            "tensor {}: expected external data in a file below the model's folder, found {} ({})",
            tensor, location, why));
  };
  const fs::path relative = location;
  if (location.empty() || relative.is_absolute()) refuse("not a relative path");
  for (const fs::path& part : relative)
    if (part == "..") refuse("it leads upwards");
  std::error_code error;
  const fs::path folder = fs::canonical(fs::absolute(model_file).parent_path(), error);
  fs::path file = fs::canonical(folder / relative, error);
  if (error) refuse("no such file");
  const auto [end, ignored] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  if (end != folder.end()) refuse("a link leads out of the folder");
  return file;
}

Values read_external(const TensorProto& tensor, const ElementType& type, std::int64_t elements,
                     const std::string& model_file, std::int64_t first, std::int64_t count) {
  const External external = external_of(tensor, model_file);
  const fs::path path = contained(external.location, tensor.name(), model_file);
  const std::string what = fmt::format("external data of tensor {}", tensor.name());
  const FileBytes file(path.string(), what);
  const std::int64_t bytes = elements * type.bytes;
  const auto fail = [&](const std::string& why) {
    throw InputError(path.string(), "", what + ": " + why);
  };
  if (external.length >= 0 && external.length != bytes)
    fail(fmt::format("expected {} bytes for the tensor's shape, found a length of {}", bytes,
                     external.length));
  if (external.offset > file.size() || bytes > file.size() - external.offset)
    fail(fmt::format("expected {} bytes from byte {}, but the file has {}", bytes, external.offset,
                     file.size()));
  return unpack(tensor.data_type(), {file, external.offset + first * type.bytes, count});
}

Constant checked_constant(const TensorProto& tensor, const FileBytes& file, Constants& all,
                          const std::string& name) {
  const Extents extents(tensor.dims().begin(), tensor.dims().end());
  const ElementType type = type_of(tensor);
  const std::int64_t elements = elements_of(extents);
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    const PartReader read = [&tensor, &file, type, elements](std::int64_t first,
                                                             std::int64_t count) {
      return read_external(tensor, type, elements, file.file(), first, count);
    };
    return all.stored(extents, type.integral, read, name);
  }
  const bool is_raw = tensor.has_raw_data();
  const Range raw = is_raw ? located(tensor.raw_data()) : Range{};
  const std::int64_t found = is_raw ? raw.bytes / type.bytes : listed(tensor);
  need(
      found == elements && raw.bytes % type.bytes == 0,
      fmt::format("expected one value for each element, found {} values for {} elements of type {}",
                  found, elements, type.name));
  if (!is_raw)
    return all.stored(
        extents, type.integral, [&tensor] { return listed_values(tensor); }, name);
  const PartReader read = [&tensor, &file, type, raw](std::int64_t first, std::int64_t count) {
    return unpack(tensor.data_type(), {file, raw.offset + first * type.bytes, count});
  };
  return all.stored(extents, type.integral, read, name);
}

}  // namespace

Constant constant_of(const TensorProto& tensor, const FileBytes& file, Constants& all,
                     const std::string& name) {
  try {
    return checked_constant(tensor, file, all, name);
  } catch (const Inexpressible& why) {
    throw Inexpressible{fmt::format("tensor {}: {}", tensor.name(), why.reason)};
  }
}

}  // namespace stratplan::interop
