#include "model/base/system/standard_streams.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "model/base/error.hpp"

namespace stratplan {
namespace {

/// A handler that does nothing, so that the failed call returns an error. Unlike SIG_IGN, a handler
/// is not inherited by programs that this process starts.
void turn_into_error(int) {}

}  // namespace

void prepare_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() returns the lowest free number, which is the closed descriptor. If /dev/null cannot be
    // opened, there is no place for a message either.
    if (::fcntl(descriptor, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != descriptor)
      ::_exit(static_cast<int>(ExitCode::Environment));
  }
  std::signal(SIGPIPE, turn_into_error);
  std::signal(SIGXFSZ, turn_into_error);
}

void flush_standard_output() {
  errno = EIO;  // reported if an earlier write failed and nothing is left to flush
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw EnvironmentError(standard_output_failure(errno));
}

std::string standard_output_failure(int error) {
  if (error == EPIPE) end_for_lack_of_readers();
  return fmt::format("standard output: cannot be written: {}", std::strerror(error));
}

void end_for_lack_of_readers() {
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
}

}  // namespace stratplan
