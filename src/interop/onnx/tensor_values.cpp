#include "interop/onnx/tensor_values.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>

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

template <class Stored, class To, class Convert>
std::vector<To> unpack(const std::string& raw, Convert convert) {
  std::vector<To> values(raw.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, raw.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = convert(stored);
  }
  return values;
}

template <class Stored>
Values unpack_integers(const std::string& raw) {
  return unpack<Stored, std::int64_t>(
      raw, [](Stored stored) { return static_cast<std::int64_t>(stored); });
}

Values unpack(int type, const std::string& raw) {
  switch (type) {
    case TensorProto::FLOAT: return unpack<float, float>(raw, [](float stored) { return stored; });
    case TensorProto::DOUBLE:
      return unpack<double, float>(raw, [](double stored) { return static_cast<float>(stored); });
    case TensorProto::FLOAT16: return unpack<std::uint16_t, float>(raw, from_half);
    case TensorProto::BFLOAT16: return unpack<std::uint16_t, float>(raw, from_bfloat);
    case TensorProto::INT64: return unpack_integers<std::int64_t>(raw);
    case TensorProto::UINT64: return unpack_integers<std::uint64_t>(raw);
    case TensorProto::INT32: return unpack_integers<std::int32_t>(raw);
    case TensorProto::UINT32: return unpack_integers<std::uint32_t>(raw);
    case TensorProto::INT16: return unpack_integers<std::int16_t>(raw);
    case TensorProto::UINT16: return unpack_integers<std::uint16_t>(raw);
    case TensorProto::INT8: return unpack_integers<std::int8_t>(raw);
    default: return unpack_integers<std::uint8_t>(raw);
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

/// A file descriptor that is closed on destruction.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

std::string read_external(const TensorProto& tensor, std::int64_t bytes,
                          const std::string& model_file) {
  const External external = external_of(tensor, model_file);
  const fs::path path = contained(external.location, tensor.name(), model_file);
  const auto fail = [&](const std::string& what) {
    throw InputError(path.string(), "",
                     fmt::format("external data of tensor {}: {}", tensor.name(), what));
  };
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  struct stat status {};
  if (file.number < 0 || ::fstat(file.number, &status) != 0) fail(std::strerror(errno));
  if (!S_ISREG(status.st_mode) || status.st_nlink != 1)
    fail("expected a regular file without other hard links");
  if (external.length >= 0 && external.length != bytes)
    fail(fmt::format("expected {} bytes for the tensor's shape, found a length of {}", bytes,
                     external.length));
  if (external.offset > status.st_size || bytes > status.st_size - external.offset)
    fail(fmt::format("expected {} bytes from byte {}, but the file has {}", bytes, external.offset,
                     static_cast<std::int64_t>(status.st_size)));
  std::string raw(static_cast<std::size_t>(bytes), '\0');
  for (std::int64_t done = 0; done < bytes;) {
    const auto got = ::pread(file.number, raw.data() + done, static_cast<std::size_t>(bytes - done),
                             external.offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail("the file can not be read to its end");
    done += got;
  }
  return raw;
}

}  // namespace

namespace {

Constant checked_constant(const TensorProto& tensor, const std::string& model_file, Constants& all,
                          const std::string& name) {
  const Extents extents(tensor.dims().begin(), tensor.dims().end());
  const ElementType type = type_of(tensor);
  const std::int64_t elements = elements_of(extents);
  if (tensor.data_location() == TensorProto::EXTERNAL)
    return all.stored(
        extents, type.integral,
        [&tensor, model_file, bytes = elements * type.bytes] {
          return unpack(tensor.data_type(), read_external(tensor, bytes, model_file));
        },
        name);
  const bool raw = tensor.has_raw_data();
  const std::int64_t found = raw ? std::ssize(tensor.raw_data()) / type.bytes : listed(tensor);
  need(
      found == elements && (!raw || std::ssize(tensor.raw_data()) % type.bytes == 0),
      fmt::format("expected one value for each element, found {} values for {} elements of type {}",
                  found, elements, type.name));
  return all.stored(
      extents, type.integral,
      [&tensor, raw] {
        return raw ? unpack(tensor.data_type(), tensor.raw_data()) : listed_values(tensor);
      },
      name);
}

}  // namespace

Constant constant_of(const TensorProto& tensor, const std::string& model_file, Constants& all,
                     const std::string& name) {
  try {
    return checked_constant(tensor, model_file, all, name);
  } catch (const Inexpressible& why) {
    throw Inexpressible{fmt::format("tensor {}: {}", tensor.name(), why.reason)};
  }
}

}  // namespace stratplan::interop
