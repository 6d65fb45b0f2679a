#pragma once
// The project's sources as text, for the tests of the project's rules.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace stratplan::style {

struct SourceFile {
  std::string path;  ///< from the project's root, "src/model/plan/plan.hpp"
  std::vector<std::string> lines;
};

inline SourceFile read_source(const std::filesystem::path& path) {
  SourceFile file{path.generic_string(), {}};
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);) {
    file.lines.push_back(line);
  }
  return file;
}

/// Returns all files below `folder` with one of these extensions, sorted by path. `folder` is
/// relative to the project's root, which must be the working folder.
inline std::vector<SourceFile> sources_below(const std::string& folder,
                                             const std::vector<std::string>& extensions) {
  std::vector<SourceFile> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() &&
        std::ranges::find(extensions, entry.path().extension().string()) != extensions.end()) {
      files.push_back(read_source(entry.path()));
    }
  }
  std::ranges::sort(files, {}, &SourceFile::path);
  return files;
}

}  // namespace stratplan::style
