#pragma once
// Programs that this one starts, and the signals that ask it to stop meanwhile. Linux.
#include <array>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

namespace stratplan {

/// A child process to be started. No shell is involved.
struct ProcessStart {
  std::string program;               ///< path of its file
  std::vector<std::string> command;  ///< its arguments, its name first
  /// "NAME=value" each; nothing: this process's.
  std::optional<std::vector<std::string>> environment{};
  int standard_output = -1;       ///< descriptor; -1: this process's
  std::vector<int> kept_open{};   ///< descriptors that it has, too, though they close on exec
  int with_its_parent = SIGTERM;  ///< the signal that it gets when this process is gone
};

/// Its process id. Throws EnvironmentError, with the system's reason, if it cannot be executed.
int start_process(const ProcessStart& start);

/// The status (wait(2)) of a child that has ended; nothing while it runs.
std::optional<int> look_for_end(int process);
/// The same once it has ended.
int wait_for_end(int process);

/// Notes which signal last asked this process to stop, instead of obeying it, while this lives.
/// One at a time.
class StopSignals {
 public:
  /// SIGINT and SIGTERM, and SIGUSR1 where that asks for a checkpoint.
  explicit StopSignals(bool with_checkpoints);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The last one; 0: none.
  static int seen();
  /// How many there were: each is passed on, the second of a kind, too.
  static int count();
  /// Whether a terminal sent it, which sends it to the children, too.
  static bool from_terminal();

 private:
  static constexpr std::array<int, 3> signals{SIGINT, SIGTERM, SIGUSR1};
  std::array<struct sigaction, 3> before_{};
  std::size_t count_;
};

/// Path of this very program. Throws EnvironmentError where /proc is missing.
std::string own_executable();
/// Where a program lies on $PATH.
std::optional<std::string> find_on_path(const std::string& program);

}  // namespace stratplan
