#pragma once
// An input file that stays open during a whole training, and must not change meanwhile.
#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace stratplan {

/// Changes are detected by size and modification time. Writing and truncating are changes, and so
/// is `touch`, which looks like writing. Reading is no change, and neither are new permissions,
/// links or names. After the file is renamed, removed or replaced at its path, the opened file is
/// still read.
class InputFile {
 public:
  /// Opens a file for reading. Throws InputError if it is missing or not a regular file.
  explicit InputFile(const std::string& path);
  /// Watches a file that the caller has opened; the caller closes it after this object's end.
  InputFile(const std::string& path, int descriptor);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  int descriptor() const { return descriptor_; }
  /// Size in bytes when the file was opened.
  std::int64_t size() const { return opened_.st_size; }
  /// Called after each read. If this call returns, the file was the same at the read as when it was
  /// opened. Throws InputError with the sizes then and now, or with the time of modification.
  void check_unchanged() const;

 private:
  struct stat look() const;

  std::string path_;
  int descriptor_;
  bool owned_;
  struct stat opened_ {};
};

}  // namespace stratplan
