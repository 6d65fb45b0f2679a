#include "model/base/system/regular_file.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "model/base/error.hpp"

namespace stratplan {
namespace {

/// Returns a noun for a file type other than a regular file. Returns nullptr for a regular file or
/// an unknown type.
const char* other_kind(std::filesystem::file_type type) {
  using Type = std::filesystem::file_type;
  switch (type) {
    case Type::directory: return "a folder";
    case Type::fifo: return "a pipe";
    case Type::socket: return "a socket";
    case Type::character:
    case Type::block: return "a device";
    default: return nullptr;
  }
}

}  // namespace

void expect_regular_file(const std::string& path) {
  std::error_code ignored;
  if (const char* kind = other_kind(std::filesystem::status(path, ignored).type()))
    throw InputError(path, "", fmt::format("expected a file, but this is {}", kind));
}

}  // namespace stratplan
