#pragma once
// A file whose bytes are read on request. Models have gigabytes of weights, so the import copies
// only those that it needs, one tensor at a time.
#include <cstdint>
#include <string>

namespace stratplan::interop {

class FileBytes {
 public:
  /// Opens a regular file. Throws InputError if there is none.
  explicit FileBytes(const std::string& file);
  /// Opens a file beside a model. It must be regular, without symbolic or other hard links. Throws
  /// InputError, with `what` in front of the reason.
  FileBytes(const std::string& file, const std::string& what);
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  const std::string& file() const { return file_; }
  std::int64_t size() const { return size_; }
  /// Reads bytes, which must lie within size(). Throws InputError if the file has become shorter.
  void read(std::int64_t offset, std::int64_t bytes, void* to) const;

 private:
  std::string file_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace stratplan::interop
