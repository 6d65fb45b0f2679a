#pragma once
// The functions declared here write all outputs. What they do depends on what lies at the path:
//
//   nothing, or a regular file          a new file is written in the same folder and moved to the
//                                       path when it is complete
//   a symbolic link                     the link's target, which may be missing, is written as if
//                                       it were the path; the link stays
//   a character device, a FIFO          bytes go straight to it; a FIFO without a reader is refused
//   a descriptor of this process        bytes go straight to it (/dev/stdout, /dev/fd/5)
//   a folder, a block device, a socket  refused
//
// Folders above an output are never made, so a typing error in a path creates no folders.
#include <filesystem>
#include <string>

namespace stratplan {

/// An output that is being written. All members throw EnvironmentError with "PATH: cannot be
/// written: REASON".
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// If complete() was not called, a regular file at the path stays as it was, and the temporary
  /// file is removed.
  ~OutputFile();

  /// Appends bytes. After complete(), writes still append, and readers see the file grow.
  void write(const void* data, std::size_t bytes);
  /// Makes the written bytes durable and moves the temporary file to its path.
  void complete();
  /// Returns the name of the temporary file, for libraries that open files by name. Throws if there
  /// is no temporary file, because bytes go straight to a device, FIFO or descriptor.
  const std::string& gathered_in() const;

 private:
  void open_beside();

  std::filesystem::path path_;  ///< as the caller named it
  std::filesystem::path end_;   ///< the end of all symbolic links
  std::string temporary_;       ///< path of the temporary file; empty if there is none (any more)
  int descriptor_ = -1;
};

/// Checks before long work that an output could be written now. Throws EnvironmentError if not.
/// Does not open FIFOs and devices: a FIFO's reader would take the close for the end of the data.
void check_writable(const std::filesystem::path& path);

/// Writes a whole output with these contents, as OutputFile does.
void write_file_atomically(const std::filesystem::path& path, const std::string& contents);

/// Makes a folder that a user named, unless it exists. The folder above must exist. Throws
/// EnvironmentError.
void make_folder(const std::filesystem::path& folder);
/// Makes a folder and all folders above it. Meant for paths that the program itself chose. Throws
/// EnvironmentError.
void make_folders(const std::filesystem::path& folder);

/// Returns a file name for a name from a document: 1 to 100 ASCII letters, digits and "._+-",
/// beginning with neither a dot nor a dash. Names that satisfy this stay unchanged. In other names,
/// forbidden characters are replaced by dashes or dropped, and a fingerprint of the name is
/// appended, so that two names hardly ever share a file.
std::string file_name_of(const std::string& name);

}  // namespace stratplan
