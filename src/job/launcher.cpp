#include "job/launcher.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include "job/stop_request.hpp"
#include "model/base/error.hpp"
#include "model/base/system/cpu_time.hpp"
#include "model/base/system/process.hpp"
#include "model/base/system/process_tree.hpp"
#include "runtime/comm/mpi.hpp"
#include "runtime/watch/flight_recorder.hpp"

namespace stratplan {
namespace {

/// Environment variable of ranks that launch() started.
constexpr const char* supervised_variable = "STRATPLAN_SUPERVISED";

constexpr std::chrono::milliseconds launcher_interval{20};
/// Longest time that mpirun gets to end its ranks after a request.
constexpr std::chrono::seconds launcher_patience{5};

/// Adopts the processes that a job leaves behind, and kills them on destruction. mpirun does not
/// wait for ranks that it has ended, and an mpirun that is killed ends no rank.
class Orphans {
 public:
  Orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }
  Orphans(const Orphans&) = delete;
  Orphans& operator=(const Orphans&) = delete;
  ~Orphans() {
    const auto deadline = std::chrono::steady_clock::now() + launcher_patience;
    while (end_all() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(launcher_interval);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
  }

 private:
  /// Kills the adopted processes. Returns whether there were any.
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

bool under_mpirun(const Launch& launch) { return launch.mpi && uses_mpirun(launch.ranks); }

/// Ends the job and returns the status of `child`. mpirun, even a stopped one, is asked to end its
/// ranks, and is killed after launcher_patience. Any other child is killed at once, and ranks die
/// with that parent.
int end(int child, const Launch& launch) {
  kill(child, under_mpirun(launch) ? SIGTERM : SIGKILL);
  kill(child, SIGCONT);
  const auto deadline = std::chrono::steady_clock::now() + launcher_patience;
  while (std::chrono::steady_clock::now() < deadline) {
    if (const auto status = look_for_end(child)) return *status;
    std::this_thread::sleep_for(launcher_interval);
  }
  kill(child, SIGKILL);
  return wait_for_end(child);
}

/// Passes the last signal on to the job. A job that makes checkpoints gets SIGUSR1, which mpirun
/// passes on to its ranks. SIGTERM would make mpirun end them. In other jobs, a Ctrl-C is not
/// passed on, because the terminal sends it to the job too. A SIGINT from another process reaches
/// only the launcher, so it is passed on.
void pass_on(int child, bool makes_checkpoints) {
  const bool interrupt = StopSignals::seen() == SIGINT, typed = StopSignals::from_terminal();
  if (makes_checkpoints) {
    if (interrupt) answer_interrupt(typed);
    kill(child, SIGUSR1);
  } else if (!interrupt || !typed) {
    kill(child, StopSignals::seen());
  }
}

/// Removes the session folder of an mpirun that has ended. mpirun leaves the folder behind if a
/// signal kills mpirun, or if two signals end it at once. Open MPI 4 names the folder
/// ompi.HOST.USER/pid.PROCESS, where HOST may lack its domain. Other hosts may share the folder of
/// temporary files, so that only this host's name and this user's number are safe.
void remove_session_folder(int mpirun) {
  std::error_code ignored;
  const auto all = std::filesystem::temp_directory_path(ignored);
  const std::string host = host_name();
  for (const std::string& name : {host, host.substr(0, host.find('.'))})
    std::filesystem::remove_all(
        all / fmt::format("ompi.{}.{}", name, geteuid()) / fmt::format("pid.{}", mpirun), ignored);
}

/// Waits for the job's end. Returns the status of `child`; nothing if the job hung and was ended.
std::optional<int> wait_for(int child, const Launch& launch) {
  for (int passed_on = 0;;) {
    if (const auto status = look_for_end(child)) return status;
    if (launch.makes_checkpoints && StopSignals::interrupts() > 1) return end(child, launch);
    if (passed_on != StopSignals::count()) {
      passed_on = StopSignals::count();
      pass_on(child, launch.makes_checkpoints);
    }
    if (launch.hangs && launch.hangs()) {
      end(child, launch);
      return {};
    }
    std::this_thread::sleep_for(launcher_interval);
  }
}

/// Fills in `result` from the job's status. Throws CommunicationError if mpirun or `stratplan
/// ranks` was killed, rather than one of its ranks.
void interpret(std::optional<int> status, const Launch& launch, LaunchResult& result) {
  result.interrupted = StopSignals::seen() != 0;
  result.exit_code = static_cast<int>(ExitCode::Communication);
  if (!status) return;
  const int code = WIFSIGNALED(*status) ? 128 + WTERMSIG(*status) : WEXITSTATUS(*status);
  const bool obeyed =
      code == static_cast<int>(ExitCode::Checkpointed) || (launch.makes_checkpoints && code == 0);
  if (result.interrupted && !obeyed)
    result.exit_code = 128 + StopSignals::seen();
  else if (WIFSIGNALED(*status) && launch.ranks > 1)
    throw CommunicationError(fmt::format("{} was killed by signal {} ({})",
                                         under_mpirun(launch) ? "mpirun" : "stratplan ranks",
                                         WTERMSIG(*status), strsignal(WTERMSIG(*status))));
  else if (code > 128)
    result.killed_by = code - 128;
  else if (documented(code))
    result.exit_code = code;
}

}  // namespace

bool supervised() { return std::getenv(supervised_variable) != nullptr; }

bool uses_mpirun(int ranks) { return ranks > 1 && built_with_open_mpi() && find_on_path("mpirun"); }

std::vector<std::string> launch_command(const Launch& launch) {
  std::vector<std::string> command;
  const bool mpirun = under_mpirun(launch);
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

  const CpuReading before = read_cpu();
  LaunchResult result;
  try {
    const StopSignals signals(launch.makes_checkpoints);
    int child = 0;
    std::optional<int> status;
    {
      const Orphans orphans;
      child = start_process({.program = command.front(),
                             .command = command,
                             .standard_output = output,
                             .blocks_interrupts = launch.makes_checkpoints});
      status = wait_for(child, launch);
    }
    if (under_mpirun(launch)) remove_session_folder(child);
    interpret(status, launch, result);
  } catch (...) {
    if (output >= 0) close(output);
    throw;
  }
  if (output >= 0) close(output);

  const CpuReading after = read_cpu();
  result.wall = after.wall - before.wall;
  result.foreign_load =
      foreign_share(before, after, after.children - before.children, online_cores());
  return result;
}

}  // namespace stratplan
