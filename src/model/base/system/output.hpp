#pragma once
// The one way to write an output. What lies at a path decides what writing there means:
//
//   nothing, or a regular file         the new file is gathered beside it and then takes its place
//   whole
//   a symbolic link                    the same with its target, which may be missing; the link
//   stays
//   a character device, a FIFO         the bytes go through it; a FIFO that nobody reads is refused
//   a descriptor of this process       the bytes go through it (/dev/stdout, /dev/fd/5)
//   a folder, a block device, a socket refused
//
// Folders above an output are never made: a slip of the pen must not make trees.
#include <filesystem>
#include <string>

namespace stratplan {

/// An output on its way to `path`. All members throw EnvironmentError, "PATH: cannot be written:
/// REASON".
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// Without complete() a regular file stays as it was, and nothing else is left behind.
  ~OutputFile();

  /// Appends. Behind complete() too: readers of the file see it grow.
  void write(const void* data, std::size_t bytes);
  /// Makes what was written durable and puts it in its place.
  void complete();
  /// The file that takes the place of `path`, for libraries that open files by name. Throws where
  /// bytes go through.
  const std::string& gathered_in() const;

 private:
  void open();
  void open_beside();

  std::filesystem::path path_;  ///< as it was asked for
  std::filesystem::path end_;   ///< of all links
  std::string temporary_;       ///< beside `end_`; empty: bytes go through, or the file is in place
  int descriptor_ = -1;
};

/// Whether an output could be written there now, told before long work. Throws EnvironmentError.
/// FIFOs and devices are not opened:
/// a reader would take that for the end.
void check_writable(const std::filesystem::path& path);

/// An OutputFile of these contents.
void write_file_atomically(const std::filesystem::path& path, const std::string& contents);

/// Makes a folder that a user named, if there is none. The folder above it must exist. Throws
/// EnvironmentError.
void make_folder(const std::filesystem::path& folder);
/// Makes a folder and all above it: for places that this program chose itself. Throws
/// EnvironmentError.
void make_folders(const std::filesystem::path& folder);

/// A name out of a document as the name of a file: 1 to 100 ASCII letters, digits and "._+-", the
/// first neither a dot nor a dash. Names
/// of this kind stay. In others what is not allowed becomes a dash or goes, and a fingerprint of
/// the name ends the result, so that
/// two names hardly ever share a file.
std::string file_name_of(const std::string& name);

}  // namespace stratplan
