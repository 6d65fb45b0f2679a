// Writes documents that satisfy their schemas, and finds the program's own folders.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>

#include "build_info.hpp"
#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/system/regular_file.hpp"

namespace stratplan {
namespace {

namespace fs = std::filesystem;

/// Returns the value of an environment variable, or nullptr if it is unset or empty.
const char* setting(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace

void write_document(const fs::path& path, const std::string& kind, const Json& document) {
  const std::string text = document.dump(1) + "\n";
  try {
    validate_json(Json::parse(text), kind,
                  path.string());  // checks the text and not the document, because NaN becomes null
  } catch (const InputError& error) {
    SP_ASSERT(false, "the written document violates its schema: {}", error.what());
  }
  write_file_atomically(path, text);
}

fs::path data_folder(const std::string& name) {
  std::vector<fs::path> places;
  if (const char* chosen = setting("STRATPLAN_DATA_DIR")) {
    places.emplace_back(chosen);
  }
  places.emplace_back(build_info::source_dir);
  places.emplace_back(build_info::install_data_dir);
  std::string tried;
  for (const fs::path& place : places) {
    std::error_code ignored;
    if (fs::is_directory(place / name, ignored)) {
      return place / name;
    }
    tried += (tried.empty() ? "" : ", ") + (place / name).string();
  }
  throw EnvironmentError(
      fmt::format("the folder of shipped {} was not found at {}; set STRATPLAN_DATA_DIR to the "
                  "parent of this folder",
                  name, tried));
}

std::vector<std::string> shipped_files(const std::string& name) {
  std::vector<std::string> names;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(data_folder(name)))
      if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  } catch (const EnvironmentError&) {
  } catch (const fs::filesystem_error&) {
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path cache_folder() {
  if (const char* chosen = setting("STRATPLAN_CACHE_DIR")) {
    return chosen;
  }
  if (const char* cache = setting("XDG_CACHE_HOME")) {
    return fs::path(cache) / "stratplan";
  }
  if (const char* home = setting("HOME")) {
    return fs::path(home) / ".cache" / "stratplan";
  }
  throw EnvironmentError(
      "there is no folder for cached measurements; set STRATPLAN_CACHE_DIR, XDG_CACHE_HOME or "
      "HOME");
}

std::string read_text(const std::string& path) {
  if (path == "-") {
    static const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
    return input;
  }
  expect_regular_file(path);
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  std::string contents{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.good() && !stream.eof()) {
    throw InputError(path, "",
                     fmt::format("cannot be read: {}", std::strerror(errno == 0 ? EIO : errno)));
  }
  return contents;
}

}  // namespace stratplan
