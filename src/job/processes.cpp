#include "job/processes.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string_view>
#include <thread>

#include "job/stop_request.hpp"
#include "model/base/error.hpp"
#include "model/base/system/process.hpp"
#include "model/base/text.hpp"
#include "runtime/comm/processes.hpp"
#include "runtime/comm/socket.hpp"

namespace stratplan {
namespace {

constexpr std::chrono::seconds rank_patience{2};  ///< time a rank gets to end before it is killed
constexpr std::chrono::milliseconds rank_interval{10};

/// Returns this process's environment, with the variables that make a copy of this program a rank.
std::vector<std::string> environment_of(int rank, const std::vector<int>& sockets, int threads) {
  std::vector<std::string> own = rank_environment(rank, sockets);
  own.push_back(fmt::format("OMP_NUM_THREADS={}", threads));
  std::vector<std::string> all = own;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry, name = text.substr(0, text.find('=') + 1);
    const auto same_name = [&](const std::string& ours) { return ours.starts_with(name); };
    if (std::ranges::none_of(own, same_name)) all.emplace_back(text);
  }
  return all;
}

/// The sockets of all ranks; closed on destruction.
struct Mesh {
  std::vector<std::vector<int>> sockets;
  ~Mesh() {
    for (const auto& of_rank : sockets)
      for (const int socket : of_rank)
        if (socket >= 0) ::close(socket);
  }
};

/// The copies of this program. Copies that still run are ended on destruction.
class Children {
 public:
  ~Children() { end_all(); }
  /// Starts the next rank. If this process is killed, even a stopped rank is killed with it.
  void start(const std::vector<std::string>& command, std::vector<std::string> environment,
             std::vector<int> sockets, bool makes_checkpoints) {
    std::erase(sockets, -1);
    children_.push_back(start_process({.program = "/proc/self/exe",
                                       .command = command,
                                       .environment = std::move(environment),
                                       .kept_open = std::move(sockets),
                                       .with_its_parent = SIGKILL,
                                       .blocks_interrupts = makes_checkpoints}));
  }

  /// Returns a rank that has ended, and its status; rank -1 if none has.
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
  /// Asks the ranks to end, and kills ranks that do not end within rank_patience. Asks repeatedly,
  /// because a rank in training takes the first SIGTERM as a request for a checkpoint.
  void end_all() {
    const auto deadline = std::chrono::steady_clock::now() + rank_patience;
    while (any() && std::chrono::steady_clock::now() < deadline) {
      signal(SIGTERM);
      for (pid_t& child : children_)
        if (child > 0 && waitpid(child, nullptr, WNOHANG) != 0) child = 0;
      std::this_thread::sleep_for(any() ? rank_interval : std::chrono::milliseconds(0));
    }
    signal(SIGKILL);
    for (pid_t& child : children_)
      if (child > 0) waitpid(child, nullptr, 0);
    children_.clear();
  }

 private:
  std::vector<pid_t> children_;  ///< process ids by rank; 0: the rank has ended
};

ProcessesEnd end_of(int rank, int status) {
  constexpr int failed = static_cast<int>(ExitCode::Communication);
  if (WIFSIGNALED(status)) return {failed, false, WTERMSIG(status), rank};
  return {documented(WEXITSTATUS(status)) ? WEXITSTATUS(status) : failed, false, 0, rank};
}

/// Waits briefly for the end of a rank that was killed. A rank that fails because it lost the
/// killed rank may be seen to end first. Returns `seen` if no killed rank is found.
ProcessesEnd find_cause(Children& children, const ProcessesEnd& seen) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (children.any() && std::chrono::steady_clock::now() < deadline) {
    const auto [rank, status] = children.look();
    if (rank >= 0 && WIFSIGNALED(status)) return end_of(rank, status);
    if (rank < 0) std::this_thread::sleep_for(rank_interval);
  }
  return seen;
}

/// Passes the last signal on to the ranks. SIGUSR1 asks them for a checkpoint.
void pass_on(const Children& children, bool makes_checkpoints) {
  if (!makes_checkpoints) return children.signal(StopSignals::seen());
  if (StopSignals::interrupts() > 1) return children.signal(SIGKILL);
  if (StopSignals::seen() == SIGINT) answer_interrupt(StopSignals::from_terminal());
  children.signal(SIGUSR1);
}

/// Waits for all ranks, or for the first failure.
ProcessesEnd supervise(Children& children, const std::function<bool()>& hangs,
                       bool makes_checkpoints) {
  ProcessesEnd end;
  for (int passed_on = 0; children.any();) {
    if (passed_on != StopSignals::count()) {
      passed_on = StopSignals::count();
      pass_on(children, makes_checkpoints);
    }
    const auto [rank, status] = children.look();
    if (rank >= 0 && status != 0) {
      end = end_of(rank, status);
      if (StopSignals::seen() != 0 && end.killed_by != 0)
        return {128 + StopSignals::seen(), true, 0, -1};
      if (end.exit_code == static_cast<int>(ExitCode::Communication))
        return end.killed_by ? end : find_cause(children, end);
      if (end.exit_code != static_cast<int>(ExitCode::Checkpointed))
        break;  // after a checkpoint all ranks end by themselves
    } else if (rank < 0) {
      if (hangs && hangs()) return {static_cast<int>(ExitCode::Communication), false, 0, -1};
      std::this_thread::sleep_for(rank_interval);
    }
  }
  return end;
}

}  // namespace

ProcessesEnd run_processes(int ranks, int threads_per_rank,
                           const std::vector<std::string>& arguments,
                           const std::function<bool()>& hangs, bool makes_checkpoints) {
  std::vector<std::string> command{"stratplan"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const StopSignals signals(true);
  Children children;
  {
    const Mesh mesh{connect_all(ranks)};
    for (int rank = 0; rank < ranks; ++rank) {
      const auto& sockets = mesh.sockets[static_cast<std::size_t>(rank)];
      children.start(command, environment_of(rank, sockets, threads_per_rank), sockets,
                     makes_checkpoints);
    }
  }
  return supervise(children, hangs, makes_checkpoints);
}

}  // namespace stratplan
