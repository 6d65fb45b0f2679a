#pragma once
// A file that is read for as long as a training lasts, and must not change meanwhile.
#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace stratplan {

/// The open file is watched, by its size and its time of modification. Writing, truncating and
/// `touch`, which nobody can tell from writing, are changes. Reading is none, nor are other rights,
/// links or names: a file that was renamed, removed or replaced is read on as it was opened.
class InputFile {
 public:
  /// Opens a file for reading. Throws InputError: it is missing, or no regular file.
  explicit InputFile(const std::string& path);
  /// A file that somebody else has opened, and will close after this has gone.
  InputFile(const std::string& path, int descriptor);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  int descriptor() const { return descriptor_; }
  /// In bytes, at opening.
  std::int64_t size() const { return opened_.st_size; }
  /// Called behind each read, which then gave what the file held at opening. Throws InputError with
  /// the bytes that the file had and has.
  void check_unchanged() const;

 private:
  struct stat look() const;

  std::string path_;
  int descriptor_;
  bool owned_;
  struct stat opened_ {};
};

}  // namespace stratplan
