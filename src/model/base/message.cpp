#include "model/base/message.hpp"

#include <unistd.h>

#include <cerrno>

namespace stratplan {

int write_all(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written >= 0)
      text.remove_prefix(static_cast<std::size_t>(written));
    else if (errno != EINTR)
      return errno;
  }
  return 0;
}

void write_message(std::string_view text) noexcept { write_all(STDERR_FILENO, text); }

}  // namespace stratplan
