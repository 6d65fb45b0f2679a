#include "runtime/comm/processes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>
#include <thread>

#include "model/base/error.hpp"
#include "runtime/comm/socket.hpp"

namespace stratplan {
namespace {

constexpr const char* rank_variable = "STRATPLAN_RANK";
constexpr const char* sockets_variable = "STRATPLAN_SOCKETS";
constexpr std::chrono::seconds patience{2};  ///< between asking a rank to end and ending it
constexpr std::chrono::milliseconds look_interval{10};

volatile std::sig_atomic_t signal_seen = 0;
void note_signal(int signal) { signal_seen = signal; }

/// Notes what asks the job to stop, without restarting the call that it interrupts.
class SignalNotes {
 public:
  SignalNotes() {
    signal_seen = 0;
    struct sigaction action {};
    action.sa_handler = note_signal;
    sigemptyset(&action.sa_mask);
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &action, &before_[i]);
  }
  ~SignalNotes() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
  }
  SignalNotes(const SignalNotes&) = delete;
  SignalNotes& operator=(const SignalNotes&) = delete;

 private:
  static constexpr std::array<int, 3> signals{SIGINT, SIGTERM, SIGUSR1};
  std::array<struct sigaction, 3> before_{};
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

/// This process's, with what makes a rank of its copy.
std::vector<std::string> environment_of(int rank, const std::vector<int>& sockets, int threads) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with("OMP_NUM_THREADS=") && !text.starts_with("STRATPLAN_RANK=") &&
        !text.starts_with("STRATPLAN_SOCKETS="))
      result.emplace_back(text);
  }
  result.push_back(fmt::format("OMP_NUM_THREADS={}", threads));
  result.push_back(fmt::format("{}={}", rank_variable, rank));
  result.push_back(fmt::format("{}={}", sockets_variable, fmt::join(sockets, ",")));
  return result;
}

/// Runs in the child between fork and exec: only calls that are safe there. A rank whose launcher
/// is killed goes with it, even one that is stopped.
[[noreturn]] void become(const char* program, char** command, char** environment,
                         const std::vector<int>& sockets) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int socket : sockets)
    if (socket >= 0) fcntl(socket, F_SETFD, 0);
  execve(program, command, environment);
  _exit(static_cast<int>(ExitCode::Environment));
}

/// Sockets that are closed when this goes.
struct Mesh {
  std::vector<std::vector<int>> sockets;
  ~Mesh() {
    for (const auto& of_rank : sockets)
      for (const int socket : of_rank)
        if (socket >= 0) ::close(socket);
  }
};

/// The copies that still run.
class Children {
 public:
  ~Children() { end_all(); }
  void start(const std::vector<std::string>& command, const std::vector<std::string>& environment,
             const std::vector<int>& sockets) {
    const auto arguments = pointers(command), variables = pointers(environment);
    const pid_t child = fork();
    if (child == 0)
      become("/proc/self/exe", const_cast<char**>(arguments.data()),
             const_cast<char**>(variables.data()), sockets);
    if (child < 0)
      throw EnvironmentError(
          fmt::format("cannot start rank {}: {}", children_.size(), std::strerror(errno)));
    children_.push_back(child);
  }

  /// One that has ended and its status; rank -1 if none has.
  std::pair<int, int> look() {
    int status = 0;
    const pid_t child = waitpid(-1, &status, WNOHANG);
    const auto place = std::find(children_.begin(), children_.end(), child);
    if (child <= 0 || place == children_.end()) return {-1, 0};
    *place = 0;
    return {static_cast<int>(place - children_.begin()), status};
  }
  bool any() const {
    return std::any_of(children_.begin(), children_.end(), [](pid_t child) { return child > 0; });
  }
  void signal(int number) const {
    for (const pid_t child : children_)
      if (child > 0) kill(child, number);
  }
  /// Asks them to end, and ends those that do not. Asked more than once, for one that trains takes the first time for a request to checkpoint.
  void end_all() {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (any() && std::chrono::steady_clock::now() < deadline) {
      signal(SIGTERM);
      for (pid_t& child : children_)
        if (child > 0 && waitpid(child, nullptr, WNOHANG) != 0) child = 0;
      std::this_thread::sleep_for(any() ? look_interval : std::chrono::milliseconds(0));
    }
    signal(SIGKILL);
    for (pid_t& child : children_)
      if (child > 0) waitpid(child, nullptr, 0);
    children_.clear();
  }

 private:
  std::vector<pid_t> children_;  ///< by rank; 0: has ended
};

ProcessesEnd end_of(int rank, int status) {
  constexpr int failed = static_cast<int>(ExitCode::Communication);
  if (WIFSIGNALED(status)) return {failed, false, WTERMSIG(status), rank};
  return {documented(WEXITSTATUS(status)) ? WEXITSTATUS(status) : failed, false, 0, rank};
}

/// A rank that lost another may be seen to end before the one that was killed: looks for that one a moment longer.
ProcessesEnd find_cause(Children& children, const ProcessesEnd& seen) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (children.any() && std::chrono::steady_clock::now() < deadline) {
    const auto [rank, status] = children.look();
    if (rank >= 0 && WIFSIGNALED(status)) return end_of(rank, status);
    if (rank < 0) std::this_thread::sleep_for(look_interval);
  }
  return seen;
}

/// Waits for all, or the first failure.
ProcessesEnd supervise(Children& children, const std::function<bool()>& hangs) {
  ProcessesEnd end;
  for (int passed_on = 0; children.any();) {
    if (signal_seen != passed_on) children.signal(passed_on = signal_seen);
    const auto [rank, status] = children.look();
    if (rank >= 0 && status != 0) {
      end = end_of(rank, status);
      if (signal_seen != 0 && end.killed_by != 0) return {128 + signal_seen, true, 0, -1};
      if (end.exit_code == static_cast<int>(ExitCode::Communication))
        return end.killed_by ? end : find_cause(children, end);
      if (end.exit_code != static_cast<int>(ExitCode::Checkpointed))
        break;  // those that checkpoint do so together
    } else if (rank < 0) {
      if (hangs && hangs()) return {static_cast<int>(ExitCode::Communication), false, 0, -1};
      std::this_thread::sleep_for(look_interval);
    }
  }
  return end;
}

}  // namespace

ProcessesEnd run_processes(int ranks, int threads_per_rank,
                           const std::vector<std::string>& arguments,
                           const std::function<bool()>& hangs) {
  std::vector<std::string> command{"stratplan"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const SignalNotes notes;
  Children children;
  {
    const Mesh mesh{connect_all(ranks)};
    for (int rank = 0; rank < ranks; ++rank) {
      const auto& sockets = mesh.sockets[static_cast<std::size_t>(rank)];
      children.start(command, environment_of(rank, sockets, threads_per_rank), sockets);
    }
  }
  return supervise(children, hangs);
}

bool launched_by_processes() { return std::getenv(rank_variable) && std::getenv(sockets_variable); }

std::unique_ptr<Communicator> make_process_communicator() {
  std::vector<int> sockets;
  std::istringstream list(std::getenv(sockets_variable));
  for (std::string socket; std::getline(list, socket, ',');)
    sockets.push_back(std::atoi(socket.c_str()));
  return make_socket_communicator(std::atoi(std::getenv(rank_variable)), sockets);
}

}  // namespace stratplan
