#include "cli/measuring.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>

#include "cli/console.hpp"
#include "cli/job.hpp"
#include "model/base/error.hpp"
#include "planner/launcher.hpp"
#include "planner/prediction.hpp"
#include "profile/pace.hpp"
#include "runtime/backend.hpp"
#include "runtime/comm/processes.hpp"

namespace stratplan {
namespace {

/// Plans on fewer ranks are measured in the company of the others too, as their kernels keep one profile.
std::vector<Program> all_programs(const Network& network, const std::vector<const Plan*>& plans,
                                  int ranks) {
  std::vector<Program> programs;
  for (const Plan* plan : plans) {
    for (Program& program : programs_of(*plan, network)) {
      program.ranks = ranks;
      programs.push_back(std::move(program));
    }
  }
  return programs;
}

/// The local profile as far as this backend measured it.
MachineProfile known_machine(int ranks, const std::string& backend) {
  MachineProfile machine = read_machine("local", ranks);
  const std::string measured_with =
      machine.provenance.is_object() ? machine.provenance.value("backend", "") : "";
  if (measured_with != describe_backend(backend)) machine.measured_ranks = 0;
  forget_other_ways(machine, ranks == 1                             ? ""
                             : uses_mpirun(ranks, mpi_part().built) ? mpi_part().description
                                                                    : "sockets");
  return machine;
}

/// The turn of this process to measure, until it goes. Two at once would disturb each other, and the profile that is written last would
/// lack what the other has measured since it was read. Where the file system knows no locks there are no turns.
class MeasuringTurn {
 public:
  MeasuringTurn()
      : lock_(::open((cache_folder() / "measuring.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC,
                     0666)) {
    if (::flock(lock_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    note("another stratplan measures this machine: waiting for its end");
    ::flock(lock_, LOCK_EX);
  }
  ~MeasuringTurn() { ::close(lock_); }
  MeasuringTurn(const MeasuringTurn&) = delete;
  MeasuringTurn& operator=(const MeasuringTurn&) = delete;

 private:
  int lock_;
};

/// Measures into the local profile. Returns whether there was anything to do.
bool measure(const ProfileRequest& request, int ranks, const std::string& backend) {
  if (request.empty()) return false;
  const MeasuringTurn turn;
  const auto file = cache_folder() / ("request-" + std::to_string(getpid()) + ".json");
  write_file_atomically(file, to_json(request).dump());
  const LaunchResult result = launch({ranks,
                                      1,
                                      {"profile", "--request", file.string(), "-o",
                                       local_machine_path(ranks).string(), "--backend", backend},
                                      {},
                                      false,
                                      mpi_part().built});
  std::filesystem::remove(file);
  if (result.exit_code != 0) throw JobFailed{result.exit_code};
  return true;
}

/// Measures the first plan's heaviest kernels once more; if they tell that the machine's pace has changed, all others that the plans need too.
bool check_pace(const Network& network, const std::vector<const Plan*>& plans, int ranks,
                const std::string& backend) {
  const MachineProfile before = known_machine(ranks, backend);
  const std::vector<Program> programs = all_programs(network, plans, ranks);
  ProfileRequest telling;
  telling.ranks = ranks;
  telling.kernels =
      heaviest_kernels(all_programs(network, {plans.front()}, ranks), before, telling_share);
  if (!measure(telling, ranks, backend)) return false;
  MachineProfile now = known_machine(ranks, backend);
  const double change = pace(telling.kernels, before, now) - 1;
  if (std::abs(change) <= tolerated_change_of_pace) return true;
  note(fmt::format(
      "kernels take {:.0f} % {} than when they were measured: measuring all of them again",
      100 * std::abs(change), change > 0 ? "longer" : "less"));
  std::map<std::string, Measurement> fresh;
  for (const Kernel& kernel : telling.kernels) fresh[kernel.key()] = now.kernels.at(kernel.key());
  now.kernels = std::move(fresh);
  measure(missing(programs, now), ranks, backend);
  return true;
}

}  // namespace

std::string way_between_hosts() {
  if (!launched_as_rank()) return {};
  return launched_by_processes() ? "sockets" : mpi_part().description;
}

void forget_other_ways(MachineProfile& machine, const std::string& way) {
  const std::string known =
      machine.provenance.is_object() ? machine.provenance.value("between_hosts", way) : way;
  if (known != way) machine.measured_ranks = 0;
}

AutotuneHooks make_hooks(int ranks, const std::string& backend) {
  auto progress = std::make_shared<ProgressLine>();
  return {
      [progress](const std::string& text) { progress->phase(text); },
      [ranks, backend](const Network& network, const std::vector<const Plan*>& plans) {
        return measure(missing(all_programs(network, plans, ranks), known_machine(ranks, backend)),
                       ranks, backend);
      },
      [progress, ranks, backend](const Network& network, const std::vector<const Plan*>& plans) {
        progress->phase("checking that the machine still has the pace at which it was measured");
        return check_pace(network, plans, ranks, backend);
      },
      workspace_here(backend, 1), mpi_part().built};
}

std::function<Bytes(const Kernel&)> workspace_here(const std::string& backend, int threads) {
  const std::shared_ptr<Backend> asked = make_backend(backend, threads);
  return [asked, refuses = backend == "cpu"](const Kernel& kernel) {
    try {
      return asked->prepare(kernel)->workspace();
    } catch (const EnvironmentError&) {
      if (!refuses) throw;
      return Bytes{0};  // of mixed precision, which will have to run with another backend
    }
  };
}

}  // namespace stratplan
