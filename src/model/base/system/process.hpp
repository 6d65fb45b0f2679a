#pragma once
// Child processes, and the signals that ask this process to stop. For Linux.
#include <array>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

namespace stratplan {

/// A child process to be started. No shell is involved.
struct ProcessStart {
  std::string program;               ///< path of the executable file
  std::vector<std::string> command;  ///< arguments, beginning with the program's name
  /// Entries "NAME=value". Without a value, the child inherits the environment of this process.
  std::optional<std::vector<std::string>> environment{};
  int standard_output = -1;       ///< descriptor; -1 for this process's standard output
  std::vector<int> kept_open{};   ///< close-on-exec descriptors that the child keeps nevertheless
  int with_its_parent = SIGTERM;  ///< the signal that the child gets when this process ends
  /// Whether SIGINT is blocked in the child. A terminal sends SIGINT to child processes too.
  bool blocks_interrupts = false;
};

/// Starts the child and returns its process id. Throws EnvironmentError, with the system's reason,
/// if the program cannot be executed.
int start_process(const ProcessStart& start);

/// Returns the status (wait(2)) of a child that has ended, or nothing while it runs.
std::optional<int> look_for_end(int process);
/// Waits until a child has ended, and returns its status (wait(2)).
int wait_for_end(int process);

/// While an object of this class lives, signals that ask this process to stop are recorded instead
/// of obeyed. Only one object may live at a time.
class StopSignals {
 public:
  /// Records SIGINT and SIGTERM. With checkpoints, also records SIGUSR1, which asks for a
  /// checkpoint.
  explicit StopSignals(bool with_checkpoints);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The last signal that arrived, or 0 if none has arrived.
  static int seen();
  /// The number of signals so far, so that a caller passes on repeated signals too.
  static int count();
  /// The number of SIGINT signals so far.
  static int interrupts();
  /// Whether a terminal sent the last signal. A terminal sends signals to child processes too.
  static bool from_terminal();

 private:
  static constexpr std::array<int, 3> signals{SIGINT, SIGTERM, SIGUSR1};
  std::array<struct sigaction, 3> before_{};
  std::size_t count_;
};

/// Returns the path of the running program. Throws EnvironmentError if /proc is missing.
std::string own_executable();
/// Returns size and time of that file, which differ if the program was built again.
std::string own_build();
/// Returns the path of a program on $PATH, or nothing if there is none.
std::optional<std::string> find_on_path(const std::string& program);

}  // namespace stratplan
