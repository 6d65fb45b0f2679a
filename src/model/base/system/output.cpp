#include "model/base/system/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/message.hpp"

namespace stratplan {
namespace {

namespace fs = std::filesystem;

constexpr int most_links = 40;  ///< Linux's limit for symbolic links in one path
constexpr std::size_t longest_name = 100;

[[noreturn]] void cannot_write(const fs::path& path, const std::string& reason) {
  throw EnvironmentError(fmt::format("{}: cannot be written: {}", path.string(), reason));
}

[[noreturn]] void cannot_write(const fs::path& path, int error) {
  cannot_write(path, std::strerror(error));
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// Returns the descriptor of this process that `path` stands for, if it stands for one. For
/// example, /dev/stdout is a link to /proc/self/fd/1.
std::optional<int> own_descriptor(const fs::path& path) {
  std::error_code ignored;
  if (fs::canonical(folder_of(path), ignored) != fmt::format("/proc/{}/fd", ::getpid())) {
    return {};
  }
  const std::string name = path.filename().string();
  int descriptor = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), descriptor);
  return error == std::errc{} && end == name.data() + name.size() ? std::optional(descriptor)
                                                                  : std::nullopt;
}

/// How bytes get to an output: through a new file beside it, through the device or FIFO itself, or
/// through a descriptor of this process.
enum class Way { Beside, Through, Descriptor };

/// The end of a path's symbolic links, and how bytes get there.
struct Destination {
  fs::path end;
  Way way = Way::Beside;
};

Destination destination_of(const fs::path& path) {
  if (path.native().find('\0') != std::string::npos) {
    cannot_write(path.c_str(), "the name contains a NUL character");
  }
  fs::path at = path;
  std::error_code ignored;
  for (int links = 0; links <= most_links; ++links) {
    if (own_descriptor(at)) {
      return {at, Way::Descriptor};
    }
    struct stat status {};
    if (::lstat(at.c_str(), &status) != 0) {
      if (errno != ENOENT) {
        cannot_write(path, errno);
      }
      return {at};
    }
    switch (status.st_mode & S_IFMT) {
      case S_IFREG: return {at};
      case S_IFCHR:
      case S_IFIFO: return {at, Way::Through};
      case S_IFLNK: at = at.parent_path() / fs::read_symlink(at, ignored); break;
      case S_IFDIR: cannot_write(path, EISDIR);
      case S_IFBLK: cannot_write(path, "Is a block device");
      default: cannot_write(path, "Is a socket");
    }
  }
  cannot_write(path, ELOOP);
}

/// Makes a rename in the folder durable. Failures are ignored: some file systems cannot synchronize
/// a folder, and the contents of the renamed file are safe anyway.
void synchronize_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    ::fsync(descriptor);
    ::close(descriptor);
  }
}

/// Opens a device or FIFO without waiting for a FIFO's reader, which may never come. Writes then
/// wait for the reader as usual.
int open_through(const fs::path& end) {
  const int descriptor = ::open(end.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (descriptor >= 0) {
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  }
  return descriptor;
}

bool allowed_in_names(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '+' || c == '-';
}

/// Whether the first character of a file name is allowed. A dot would hide the file or lead out of
/// the folder. A dash would turn the name into an option of commands.
bool allowed_first(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.front() != '-';
}

}  // namespace

OutputFile::OutputFile(const fs::path& path) : path_(path) {
  const Destination destination = destination_of(path);
  end_ = destination.end;
  switch (destination.way) {
    case Way::Beside: open_beside(); break;
    case Way::Through: descriptor_ = open_through(end_); break;
    case Way::Descriptor: descriptor_ = ::fcntl(*own_descriptor(end_), F_DUPFD_CLOEXEC, 0); break;
  }
  if (descriptor_ >= 0) {
    return;
  }
  if (destination.way == Way::Through && errno == ENXIO) {
    cannot_write(path_, "no process reads from it");
  }
  if (destination.way == Way::Beside && errno == ENOENT) {
    cannot_write(path_, fmt::format("there is no folder {}", folder_of(end_).string()));
  }
  cannot_write(path_, errno);
}

OutputFile::~OutputFile() {
  ::close(descriptor_);
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
  }
}

/// Creates the temporary file. With O_EXCL, open() neither follows a link at that path nor opens a
/// file of another process.
void OutputFile::open_beside() {
  for (int attempt = 0; attempt == 0 || (descriptor_ < 0 && errno == EEXIST && attempt < 100);
       ++attempt) {
    temporary_ = fmt::format("{}.{}.{}.tmp", end_.string(), ::getpid(), attempt);
    descriptor_ =
        ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  }
}

void OutputFile::write(const void* data, std::size_t bytes) {
  if (const int error = write_all(descriptor_, {static_cast<const char*>(data), bytes}); error != 0)
    cannot_write(path_, error);
}

void OutputFile::complete() {
  if (temporary_.empty()) {
    return;
  }
  if (::fsync(descriptor_) != 0 || ::rename(temporary_.c_str(), end_.c_str()) != 0) {
    cannot_write(path_, errno);
  }
  temporary_.clear();
  synchronize_folder(folder_of(end_));
}

const std::string& OutputFile::gathered_in() const {
  if (temporary_.empty()) {
    cannot_write(path_, "this format needs a regular file");
  }
  return temporary_;
}

void check_writable(const fs::path& path) {
  const Destination destination = destination_of(path);
  if (destination.way != Way::Through) {
    const OutputFile probe(path);
  } else if (::access(destination.end.c_str(), W_OK) != 0) {
    cannot_write(path, errno);
  }
}

void write_file_atomically(const fs::path& path, const std::string& contents) {
  OutputFile file(path);
  file.write(contents.data(), contents.size());
  file.complete();
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directory(folder, error);
  if (error == std::errc::no_such_file_or_directory) {
    cannot_write(folder, fmt::format("there is no folder {}", folder_of(folder).string()));
  }
  if (error) {
    cannot_write(folder, error == std::errc::file_exists ? "Not a directory" : error.message());
  }
}

void make_folders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    cannot_write(folder, error.message());
  }
}

std::string file_name_of(const std::string& name) {
  const bool good = std::ranges::all_of(name, allowed_in_names) && allowed_first(name);
  if (good && name.size() <= longest_name) {
    return name;
  }
  std::string letters = name;
  std::ranges::replace_if(
      letters, [](char c) { return !allowed_in_names(c); }, '-');
  letters.erase(0, letters.find_first_not_of(".-"));
  if (letters.empty()) {
    letters = "unnamed";
  }
  const std::string ending = "-" + fingerprint_of(name).substr(0, 8);
  return letters.substr(0, longest_name - ending.size()) + ending;
}

}  // namespace stratplan
