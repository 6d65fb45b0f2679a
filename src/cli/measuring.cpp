#include "cli/measuring.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "cli/console.hpp"
#include "cli/job.hpp"
#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "planner/launcher.hpp"
#include "planner/prediction.hpp"
#include "profile/pace.hpp"
#include "runtime/backend.hpp"
#include "runtime/comm/processes.hpp"

namespace stratplan {
namespace {

/// The turn of this process to measure, until it goes. Two at once would disturb each other, and
/// the profile that is written last would
/// lack what the other has measured since it was read. Where the file system knows no locks there
/// are no turns.
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

/// Measures on ranks that launch() starts, for one call of a command.
class Measuring {
 public:
  Measuring(int ranks, const std::string& backend)
      : ranks_(ranks),
        backend_(backend),
        device_(make_backend(backend, threads_per_rank)->device()) {}

  /// Whether anything was missing.
  bool measure_missing(const Network& network, const std::vector<const Plan*>& plans) {
    const MachineProfile machine = known();
    ProfileRequest request = missing(programs_of(network, plans), machine);
    if (request.empty()) return false;
    if (!request.kernels.empty() && !pace_) find_pace(network, *plans.front());
    request.pace = pace_.value_or(1);
    measure(request, local_machine_path(ranks_));
    const MachineProfile now = known();
    for (const Kernel& kernel : request.kernels)
      SP_ASSERT(now.kernels.contains(kernel.key()), "{} was asked for, but not measured",
                kernel.key());
    return true;
  }

  /// Measures a few kernels of the plan again.
  std::optional<Drift> find_pace(const Network& network, const Plan& plan) {
    const auto drift = measure_drift(programs_of(network, {&plan}), known(), threads_per_rank,
                                     [this](const ProfileRequest& request) {
                                       const auto file = scratch_file("pace");
                                       measure(request, file);
                                       MachineProfile now = read_machine(file.string());
                                       std::filesystem::remove(file);
                                       return now;
                                     });
    pace_ = drift && drift->even ? drift->ratio : 1;
    return drift;
  }

 private:
  static constexpr int threads_per_rank = 1;

  static std::filesystem::path scratch_file(const std::string& name) {
    return cache_folder() / fmt::format("{}-{}.json", name, getpid());
  }

  /// Plans on fewer ranks are measured beside the others too: their kernels share one profile.
  std::vector<Program> programs_of(const Network& network,
                                   const std::vector<const Plan*>& plans) const {
    std::vector<Program> programs;
    for (const Plan* plan : plans) {
      for (Program& program : stratplan::programs_of(*plan, network)) {
        program.ranks = ranks_;
        programs.push_back(std::move(program));
      }
    }
    return programs;
  }

  /// The local profile as far as this backend measured it.
  MachineProfile known() const {
    MachineProfile machine = read_machine("local", ranks_, threads_per_rank);
    const auto measured_with = [&](const char* what) {
      return machine.provenance.is_object() ? machine.provenance.value(what, "") : "";
    };
    if (measured_with("backend") != describe_backend(backend_) ||
        (device_ && measured_with("device") != device_->name))
      machine.measured_ranks = 0;
    forget_other_ways(machine, ranks_ == 1                             ? ""
                               : uses_mpirun(ranks_, mpi_part().built) ? mpi_part().description
                                                                       : "sockets");
    return machine;
  }

  /// Leaves the local profile, with what was measured in it, in `output`.
  void measure(const ProfileRequest& request, const std::filesystem::path& output) const {
    const MeasuringTurn turn;
    const auto file = scratch_file("request");
    write_file_atomically(file, to_json(request).dump());
    const LaunchResult result = launch(
        {ranks_,
         threads_per_rank,
         {"profile", "--request", file.string(), "-o", output.string(), "--backend", backend_},
         {},
         false,
         mpi_part().built});
    std::filesystem::remove(file);
    if (result.exit_code != 0) throw JobFailed{result.exit_code};
  }

  int ranks_;
  std::string backend_;
  std::optional<DeviceInfo> device_;
  std::optional<double> pace_;  ///< of the machine, relative to the profile; nobody has looked yet
};

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
  auto measuring = std::make_shared<Measuring>(ranks, backend);
  return {
      [progress](const std::string& text) { progress->phase(text); },
      [measuring](const Network& network, const std::vector<const Plan*>& plans) {
        return measuring->measure_missing(network, plans);
      },
      [progress, measuring](const Network& network, const Plan& plan) {
        progress->phase("checking that the machine still has the pace at which it was measured");
        return measuring->find_pace(network, plan);
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
