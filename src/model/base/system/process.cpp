#include "model/base/system/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "model/base/error.hpp"

namespace stratplan {
namespace {

volatile std::sig_atomic_t signal_seen = 0;
volatile std::sig_atomic_t signals_seen = 0;
volatile std::sig_atomic_t interrupts_seen = 0;
volatile std::sig_atomic_t terminal_sent_it = 0;

void note_signal(int signal, siginfo_t* information, void*) {
  signal_seen = signal;
  signals_seen = signals_seen + 1;
  if (signal == SIGINT) interrupts_seen = interrupts_seen + 1;
  terminal_sent_it = information->si_code == SI_KERNEL;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

/// Executes the command. Runs in the child between fork and exec, so it makes only calls that are
/// safe there.
[[noreturn]] void become(const ProcessStart& start, char* const* command, char* const* environment,
                         int failure_pipe) {
  prctl(PR_SET_PDEATHSIG, start.with_its_parent);
  if (start.blocks_interrupts) {
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, nullptr);
  }
  if (start.standard_output >= 0) dup2(start.standard_output, STDOUT_FILENO);
  for (const int descriptor : start.kept_open) fcntl(descriptor, F_SETFD, 0);
  execve(start.program.c_str(), command, environment);
  const int reason = errno;
  [[maybe_unused]] const auto written = write(failure_pipe, &reason, sizeof reason);
  _exit(static_cast<int>(ExitCode::Environment));
}

[[noreturn]] void cannot_start(const ProcessStart& start, int reason) {
  throw EnvironmentError(fmt::format("cannot start {}: {}", start.program, std::strerror(reason)));
}

}  // namespace

int start_process(const ProcessStart& start) {
  const auto command = pointers(start.command);
  const auto variables = start.environment ? pointers(*start.environment) : std::vector<char*>();
  std::array<int, 2> failure_pipe{};  // a successful exec closes it, a failed one writes errno
  if (pipe2(failure_pipe.data(), O_CLOEXEC) != 0) cannot_start(start, errno);
  const pid_t child = fork();
  if (child == 0)
    become(start, command.data(), start.environment ? variables.data() : environ, failure_pipe[1]);
  int reason = errno;
  close(failure_pipe[1]);
  ssize_t got = 0;
  if (child > 0) do
      got = read(failure_pipe[0], &reason, sizeof reason);
    while (got < 0 && errno == EINTR);
  close(failure_pipe[0]);
  if (child < 0) cannot_start(start, reason);
  if (got == sizeof reason) {
    wait_for_end(child);
    cannot_start(start, reason);
  }
  return child;
}

std::optional<int> look_for_end(int process) {
  int status = 0;
  return waitpid(process, &status, WNOHANG) == process ? std::optional(status) : std::nullopt;
}

int wait_for_end(int process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

StopSignals::StopSignals(bool with_checkpoints) : count_(with_checkpoints ? 3 : 2) {
  signal_seen = 0;
  signals_seen = 0;
  interrupts_seen = 0;
  terminal_sent_it = 0;
  struct sigaction action {};
  action.sa_sigaction = note_signal;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < count_; ++i) sigaction(signals[i], &action, &before_[i]);
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < count_; ++i) sigaction(signals[i], &before_[i], nullptr);
}

int StopSignals::seen() { return signal_seen; }
int StopSignals::count() { return signals_seen; }
int StopSignals::interrupts() { return interrupts_seen; }
bool StopSignals::from_terminal() { return terminal_sent_it != 0; }

std::string own_executable() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) throw EnvironmentError("cannot find this program's own file in /proc");
  return path.string();
}

std::string own_build() {
  const std::filesystem::path program = own_executable();
  return std::to_string(std::filesystem::file_size(program)) + " " +
         std::to_string(std::filesystem::last_write_time(program).time_since_epoch().count());
}

std::optional<std::string> find_on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + program;
    if (access(candidate.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(candidate))
      return candidate;
  }
  return {};
}

}  // namespace stratplan
