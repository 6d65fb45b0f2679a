#include "planner/launcher.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "model/base/error.hpp"
#include "model/base/process_tree.hpp"

namespace stratplan {
namespace {

volatile std::sig_atomic_t child_process = 0;
volatile std::sig_atomic_t signal_seen = 0;
volatile std::sig_atomic_t stops_by_checkpoint = 0;

/// Tells the ranks whose child they are.
constexpr const char* supervised_variable = "STRATPLAN_SUPERVISED";

constexpr std::chrono::milliseconds look_interval{20};
constexpr std::chrono::seconds patience{5};  ///< with mpirun that was asked to end its ranks

/// A terminal's Ctrl-C reaches the job by itself (SI_KERNEL); what one process sends to this one has to be passed on.
void pass_on(int signal, siginfo_t* information, void*) {
  signal_seen = signal;
  // mpirun ends its ranks on SIGTERM, but hands SIGUSR1 on to them.
  if (stops_by_checkpoint && signal == SIGTERM) signal = SIGUSR1;
  if (child_process > 0 && (signal != SIGINT || information->si_code != SI_KERNEL))
    kill(child_process, signal);
}

/// Passes SIGINT and SIGTERM, or what stands for a wish to stop, on to the child while it lives.
class SignalForwarding {
 public:
  explicit SignalForwarding(bool makes_checkpoints) : count_(makes_checkpoints ? 3 : 2) {
    signal_seen = 0;
    stops_by_checkpoint = makes_checkpoints;
    struct sigaction action {};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    for (std::size_t i = 0; i < count_; ++i) sigaction(signals[i], &action, &before_[i]);
  }
  ~SignalForwarding() {
    child_process = 0;
    for (std::size_t i = 0; i < count_; ++i) sigaction(signals[i], &before_[i], nullptr);
  }
  SignalForwarding(const SignalForwarding&) = delete;
  SignalForwarding& operator=(const SignalForwarding&) = delete;

 private:
  static constexpr std::array<int, 3> signals{SIGINT, SIGTERM, SIGUSR1};
  std::array<struct sigaction, 3> before_{};
  std::size_t count_;
};

/// Core-seconds that all processes together have used since the machine started; nothing where /proc is missing.
std::optional<double> machine_busy_seconds() {
  std::ifstream stat("/proc/stat");
  std::string label;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, interrupt = 0, soft_interrupt = 0;
  if (!(stat >> label >> user >> nice >> system >> idle >> wait >> interrupt >> soft_interrupt))
    return {};
  return (user + nice + system + interrupt + soft_interrupt) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

double children_seconds() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Runs in the child between fork and exec: only calls that are safe there.
[[noreturn]] void become(const std::vector<char*>& command, int output, int failure_pipe) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (output >= 0) dup2(output, STDOUT_FILENO);
  execv(command.front(), command.data());
  const int reason = errno;
  [[maybe_unused]] const auto written = write(failure_pipe, &reason, sizeof reason);
  _exit(127);
}

/// Starts `command`; throws EnvironmentError if it cannot be executed.
pid_t start(const std::vector<std::string>& command, int output) {
  std::vector<char*> pointers;
  for (const std::string& argument : command)
    pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  std::array<int, 2> failure_pipe{};
  if (pipe2(failure_pipe.data(), O_CLOEXEC) != 0)
    throw EnvironmentError(
        fmt::format("cannot start {}: {}", command.front(), std::strerror(errno)));
  const pid_t child = fork();
  if (child == 0) become(pointers, output, failure_pipe[1]);
  const int fork_error = errno;
  close(failure_pipe[1]);
  int reason = 0;
  const auto got = child > 0 ? read(failure_pipe[0], &reason, sizeof reason) : 0;
  close(failure_pipe[0]);
  if (child < 0)
    throw EnvironmentError(
        fmt::format("cannot start {}: {}", command.front(), std::strerror(fork_error)));
  if (got == sizeof reason) {
    waitpid(child, nullptr, 0);
    throw EnvironmentError(
        fmt::format("cannot start {}: {}", command.front(), std::strerror(reason)));
  }
  return child;
}

/// Adopts the processes that a job's own leave behind, and ends them when this goes: mpirun does
/// not wait for ranks that it has ended, and one that is killed ends none.
class Orphans {
 public:
  Orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }
  Orphans(const Orphans&) = delete;
  Orphans& operator=(const Orphans&) = delete;
  ~Orphans() {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (end_all() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(look_interval);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
  }

 private:
  /// Whether there were any.
  bool end_all() const {
    bool any = false;
    for (const ProcessState& process : descendants_of(getpid())) {
      if (before_.contains(process.process)) continue;
      any = true;
      kill(process.process, SIGKILL);
      waitpid(process.process, nullptr, WNOHANG);
    }
    return any;
  }

  std::set<int> before_ = [] {
    std::set<int> processes;
    for (const ProcessState& process : descendants_of(getpid())) processes.insert(process.process);
    return processes;
  }();
};

/// Whether it has ended, as `status` says.
bool ended(pid_t child, int& status, int options) {
  pid_t got = 0;
  do got = waitpid(child, &status, options);
  while (got < 0 && errno == EINTR);
  return got != 0;
}

/// Has mpirun, even one that is stopped, end its ranks, or ends it.
int end(pid_t child) {
  int status = 0;
  kill(child, SIGTERM);
  kill(child, SIGCONT);
  for (const auto deadline = std::chrono::steady_clock::now() + patience;
       std::chrono::steady_clock::now() < deadline;) {
    if (ended(child, status, WNOHANG)) return status;
    std::this_thread::sleep_for(look_interval);
  }
  kill(child, SIGKILL);
  ended(child, status, 0);
  return status;
}

/// Waits for the job's end; returns nothing if it hung and was ended.
std::optional<int> wait_for(pid_t child, const std::function<bool()>& hangs) {
  int status = 0;
  while (!ended(child, status, hangs ? WNOHANG : 0)) {
    if (hangs()) {
      end(child);
      return {};
    }
    std::this_thread::sleep_for(look_interval);
  }
  return status;
}

/// What the job's end means. Throws CommunicationError if it was not a rank but what starts them that was killed.
void interpret(std::optional<int> status, const Launch& launch, LaunchResult& result) {
  result.interrupted = signal_seen != 0;
  result.exit_code = static_cast<int>(ExitCode::Communication);
  if (!status) return;
  const int code = WIFSIGNALED(*status) ? 128 + WTERMSIG(*status) : WEXITSTATUS(*status);
  const bool obeyed =
      code == static_cast<int>(ExitCode::Checkpointed) || (stops_by_checkpoint && code == 0);
  if (result.interrupted && !obeyed)
    result.exit_code = 128 + signal_seen;
  else if (WIFSIGNALED(*status) && launch.ranks > 1)
    throw CommunicationError(
        fmt::format("{} was killed by signal {} ({})",
                    uses_mpirun(launch.ranks, launch.mpi) ? "mpirun" : "stratplan ranks",
                    WTERMSIG(*status), strsignal(WTERMSIG(*status))));
  else if (code > 128)
    result.killed_by = code - 128;
  else if (documented(code))
    result.exit_code = code;
}

}  // namespace

bool supervised() { return std::getenv(supervised_variable) != nullptr; }

std::string own_executable() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) throw EnvironmentError("cannot find this program's own file in /proc");
  return path.string();
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

int usable_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  std::set<std::string> cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &allowed)) continue;
    std::ifstream siblings(
        fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", i));
    std::string hardware_threads;
    cores.insert(std::getline(siblings, hardware_threads) ? hardware_threads : std::to_string(i));
  }
  return std::max(1, static_cast<int>(cores.size()));
}

bool uses_mpirun(int ranks, bool mpi) { return ranks > 1 && mpi && find_on_path("mpirun"); }

std::vector<std::string> launch_command(const Launch& launch) {
  std::vector<std::string> command;
  const bool mpirun = uses_mpirun(launch.ranks, launch.mpi);
  if (mpirun) {
    command = {*find_on_path("mpirun"), "-q", "-n", std::to_string(launch.ranks)};
    if (geteuid() == 0) command.push_back("--allow-run-as-root");
    if (launch.ranks * launch.threads_per_rank > usable_cores()) {
      command.insert(command.end(), {"--oversubscribe", "--bind-to", "none"});
    } else if (launch.threads_per_rank > 1) {
      command.insert(command.end(), {"--map-by", fmt::format("slot:PE={}", launch.threads_per_rank),
                                     "--bind-to", "core"});
    } else {
      command.insert(command.end(), {"--bind-to", "core"});
    }
  }
  command.push_back(own_executable());
  if (launch.ranks > 1 && !mpirun)
    command.insert(command.end(), {"ranks", "-n", std::to_string(launch.ranks), "--threads",
                                   std::to_string(launch.threads_per_rank), "--"});
  command.insert(command.end(), launch.arguments.begin(), launch.arguments.end());
  return command;
}

LaunchResult launch(const Launch& launch) {
  const auto command = launch_command(launch);
  setenv(supervised_variable, "1", 1);
  setenv("OMPI_MCA_opal_signal", "", 0);  // else Open MPI prints the stack of a rank that crashes
  setenv("OMP_NUM_THREADS", std::to_string(launch.threads_per_rank).c_str(), 1);
  int output = -1;
  if (launch.standard_output) {
    output = open(launch.standard_output->c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (output < 0)
      throw EnvironmentError(fmt::format("cannot write {}: {}", launch.standard_output->string(),
                                         std::strerror(errno)));
  }

  const auto busy_before = machine_busy_seconds();
  const double own_before = children_seconds();
  const auto begin = std::chrono::steady_clock::now();
  LaunchResult result;
  try {
    const SignalForwarding forwarding(launch.makes_checkpoints);
    const Orphans orphans;
    const pid_t child = start(command, output);
    child_process = child;
    interpret(wait_for(child, launch.hangs), launch, result);
  } catch (...) {
    if (output >= 0) close(output);
    throw;
  }
  if (output >= 0) close(output);

  result.wall = {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
  const auto busy_after = machine_busy_seconds();
  if (busy_before && busy_after && result.wall.value > 0) {
    const double foreign = (*busy_after - *busy_before) - (children_seconds() - own_before);
    result.foreign_load = std::max(
        0.0, foreign / (result.wall.value * static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN))));
  }
  return result;
}

}  // namespace stratplan
