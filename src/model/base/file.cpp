// Writing files whole or not at all, and where the program's own files lie.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "build_info.hpp"
#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/base/json.hpp"

namespace stratplan {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_write(const fs::path& path, int error) {
  throw EnvironmentError(
      fmt::format("{}: cannot be written: {}", path.string(), std::strerror(error)));
}

/// A new file beside the one to be written. It is gone when this goes, unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& target) : target_(target) {
    for (int attempt = 0; attempt == 0 || (descriptor_ < 0 && errno == EEXIST && attempt < 100);
         ++attempt) {
      name_ = fmt::format("{}.{}.{}.tmp", target.string(), ::getpid(), attempt);
      descriptor_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (descriptor_ < 0) {
      cannot_write(target_, errno);
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    close_descriptor();
    if (!renamed_) {
      ::unlink(name_.c_str());
    }
  }

  void write(const std::string& contents) {
    for (std::size_t done = 0; done < contents.size();) {
      const ssize_t written = ::write(descriptor_, contents.data() + done, contents.size() - done);
      if (written < 0 && errno != EINTR) {
        cannot_write(target_, errno);
      }
      done += written < 0 ? 0 : static_cast<std::size_t>(written);
    }
    if (::fsync(descriptor_) != 0 || close_descriptor() != 0) {
      cannot_write(target_, errno);
    }
  }

  void rename_to_target() {
    if (::rename(name_.c_str(), target_.c_str()) != 0) {
      cannot_write(target_, errno);
    }
    renamed_ = true;
  }

 private:
  int close_descriptor() {
    const int result = descriptor_ < 0 ? 0 : ::close(descriptor_);
    descriptor_ = -1;
    return result;
  }

  fs::path target_;
  std::string name_;
  int descriptor_ = -1;
  bool renamed_ = false;
};

/// Makes the rename itself durable. Some file systems cannot do that for a folder; the file's contents are safe either way.
void synchronize_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    ::fsync(descriptor);
    ::close(descriptor);
  }
}

/// An environment variable that is set to something.
const char* setting(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace

void write_file_atomically(const fs::path& path, const std::string& contents) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    cannot_write(path, error.value());
  }
  if (fs::is_directory(path, error)) {
    cannot_write(path, EISDIR);
  }
  TemporaryFile file(path);
  file.write(contents);
  file.rename_to_target();
  synchronize_folder(folder);
}

void write_document(const fs::path& path, const std::string& kind, const Json& document) {
  const std::string text = document.dump(1) + "\n";
  try {
    validate_json(Json::parse(text), kind,
                  path.string());  // as a reader will see it: NaN would be null
  } catch (const InputError& error) {
    SP_ASSERT(false, "a document that this program wrote: {}", error.what());
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
      fmt::format("the folder of shipped {} is in none of {}; set STRATPLAN_DATA_DIR to the folder "
                  "that holds it",
                  name, tried));
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
      "no folder for cached measurements: set STRATPLAN_CACHE_DIR, XDG_CACHE_HOME or HOME");
}

}  // namespace stratplan
