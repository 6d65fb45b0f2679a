#include "tuner/measuring.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "job/launcher.hpp"
#include "job/rank.hpp"
#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/system/cpu_time.hpp"
#include "planner/prediction.hpp"
#include "profile/drift.hpp"
#include "runtime/comm/mpi.hpp"
#include "runtime/comm/processes.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/deciding.hpp"

namespace stratplan {
namespace {

/// A lock in the cache folder that only one measuring process holds at a time. Two processes that
/// measure at once would disturb each other. The profile that is written last would also lack the
/// other process's measurements. On a file system without locks, no process waits.
class MeasuringTurn {
 public:
  explicit MeasuringTurn(Log& log)
      : lock_(::open((cache_folder() / "measuring.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC,
                     0666)) {
    if (::flock(lock_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
    log.note("waiting until another stratplan process has measured this machine");
    ::flock(lock_, LOCK_EX);
  }
  ~MeasuringTurn() { ::close(lock_); }
  MeasuringTurn(const MeasuringTurn&) = delete;
  MeasuringTurn& operator=(const MeasuringTurn&) = delete;

 private:
  int lock_;
};

constexpr int threads_per_rank = 1;

/// Most turns of planning and measuring. The turns end by themselves, because each turn measures
/// something new, so only a defect could reach this number.
constexpr int most_turns = 12;

/// Rates that no device of today exceeds, so that estimated times remain lower bounds (NVIDIA, B200
/// data sheet: 80 TFLOPS in fp32, 1.1 PFLOPS in TF32, 2.25 PFLOPS in 16 bits, 8 TB/s; Winograd's
/// algorithm more than doubles the fp32 rate). `memory`: the device's own, since the first plans
/// must fit into it.
DeviceRates fastest_device(Bytes memory) {
  DeviceRates device{2e14, 8e12, {1e-6}, memory};
  device.math_flops_per_s[static_cast<std::size_t>(Math::Tf32)] = 1.1e15;
  for (const Math math : {Math::Fp16, Math::Bf16})
    device.math_flops_per_s[static_cast<std::size_t>(math)] = 2.25e15;
  return device;
}

std::filesystem::path scratch_file(const std::string& name) {
  return cache_folder() / fmt::format("{}-{}.json", name, getpid());
}

}  // namespace

std::string transport_between_hosts() {
  if (!launched_as_rank()) return {};
  return launched_by_processes() ? "sockets" : mpi_part().description;
}

void forget_other_transports(MachineProfile& machine, const std::string& transport) {
  const std::string known = machine.provenance.text("between_hosts");
  if (!known.empty() && known != transport) machine.measured_ranks = 0;
}

Measuring::Measuring(int ranks, const std::string& backend, Log& log)
    : log_(log),
      ranks_(ranks),
      backend_(backend),
      device_(make_backend(backend, threads_per_rank)->device()),
      workspace_(workspace_here(backend, threads_per_rank)) {}

bool Measuring::measure_missing(const Network& network, const std::vector<const Plan*>& plans) {
  ProfileRequest request = missing(programs_of(network, plans), known());
  if (request.empty()) return false;
  if (!request.kernels.empty() && !drift_) find_drift(network, *plans.front());
  add(std::move(request));
  return true;
}

bool Measuring::look_quickly(const Network& network, const std::vector<const Plan*>& plans) {
  const MachineProfile machine = known();
  const std::vector<Program> programs = programs_of(network, plans);
  ProfileRequest request = missing(programs, machine);
  request.kernels = representatives(programs, request.kernels, machine);
  if (request.empty()) return false;
  if (!drift_) find_drift(network, *plans.front());
  add(std::move(request));
  return true;
}

std::vector<Kernel> Measuring::missing_kernels(const Network& network,
                                               const std::vector<const Plan*>& plans) const {
  return missing(programs_of(network, plans), known()).kernels;
}

Seconds Measuring::measure(const std::vector<Kernel>& kernels) {
  const Seconds start = steady_time();
  add(request_of(kernels));
  return steady_time() - start;
}

/// Measures what `request` lists, and adds it to the local profile.
void Measuring::add(ProfileRequest request) {
  request.drift = drift_.value_or(1);
  measure(request, local_machine_path(ranks_));
  const MachineProfile now = known();
  for (const Kernel& kernel : request.kernels)
    SP_ASSERT(now.kernels.contains(kernel.key()), "the kernel {} was requested, but not measured",
              kernel.key());
}

ProfileRequest Measuring::request_of(std::vector<Kernel> kernels) const {
  ProfileRequest request;
  request.ranks = ranks_;
  request.threads_per_rank = threads_per_rank;
  request.kernels = std::move(kernels);
  return request;
}

/// Measures what `request` lists. Returns the local profile with it, and leaves the file as it is.
MachineProfile Measuring::measure_aside(const ProfileRequest& request) {
  const auto file = scratch_file("aside");
  measure(request, file);
  MachineProfile now = read_machine(file.string());
  std::filesystem::remove(file);
  return now;
}

std::optional<Drift> Measuring::remembered(const std::optional<Drift>& drift) {
  drift_ = drift && drift->even ? drift->ratio : 1;
  return drift;
}

std::optional<Drift> Measuring::find_drift(const Network& network, const Plan& plan) {
  return remembered(
      measure_drift(programs_of(network, {&plan}), known(), threads_per_rank,
                    [this](const ProfileRequest& request) { return measure_aside(request); }));
}

std::optional<Drift> Measuring::refresh(const Network& network, const Plan& plan) {
  constexpr double share = 0.95;
  constexpr std::size_t most = 60;
  const MachineProfile machine = known();
  const auto representatives =
      representative_kernels(programs_of(network, {&plan}), machine, share, most);
  if (representatives.empty()) return std::nullopt;
  std::vector<Kernel> kernels;
  for (const RepresentativeKernel& each : representatives) kernels.push_back(each.kernel);
  MachineProfile now = measure_aside(request_of(kernels));
  const std::optional<Drift> drift = remembered(drift_of(representatives, machine, now));
  for (const Kernel& kernel : kernels) now.kernels.at(kernel.key()).drift = *drift_;
  write_document(local_machine_path(ranks_, threads_per_rank), "machine", to_json(now));
  return drift;
}

void Measuring::refresh_links(const Network& network, const Plan& plan) {
  MachineProfile machine = known();
  machine.collectives.clear();
  machine.one_way = machine.both_ways = {};
  ProfileRequest request = missing(programs_of(network, {&plan}), machine);
  request.kernels.clear();
  if (!request.empty()) add(std::move(request));
}

/// Returns the programs of all plans, as programs of a job of ranks_ ranks. Plans on fewer ranks
/// are also measured with all ranks busy, because all kernels share one profile.
std::vector<Program> Measuring::programs_of(const Network& network,
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

MachineProfile Measuring::known() const {
  MachineProfile machine = read_machine("local", ranks_, threads_per_rank);
  if (machine.provenance.text("backend") != describe_backend(backend_) ||
      (device_ && machine.provenance.text("device") != device_->name)) {
    machine = estimate_local_machine();
    if (device_) machine.device = fastest_device(device_->memory);
  }
  forget_other_transports(machine, ranks_ == 1           ? ""
                                   : uses_mpirun(ranks_) ? mpi_part().description
                                                         : "sockets");
  return machine;
}

/// Measures what `request` lists, on ranks that launch() starts. Rank 0 writes the local profile
/// with the new measurements added to `output`.
void Measuring::measure(const ProfileRequest& request, const std::filesystem::path& output) {
  const MeasuringTurn turn(log_);
  const auto file = scratch_file("request");
  write_file_atomically(file, to_json(request).dump());
  const LaunchResult result =
      launch({ranks_,
              threads_per_rank,
              {"profile", "--request", file.string(), "-o", output.string(), "--backend", backend_},
              {}});
  std::filesystem::remove(file);
  interrupted_ = interrupted_ || result.interrupted;
  if (result.exit_code != 0) throw JobFailed{result.exit_code};
}

PlannedOnMeasurements plan_and_measure(const Network& network, const std::string& source,
                                       const PlanningOptions& options, Measuring& measuring,
                                       const std::optional<Drift>& drift, Log& log) {
  SP_ASSERT(options.execution.threads_per_rank == threads_per_rank, "{} threads per rank",
            options.execution.threads_per_rank);
  for (int turn = 1;; ++turn) {
    log.phase(
        fmt::format("planning {} for {} ranks (turn {})", network.name, measuring.ranks(), turn));
    MachineProfile machine = measuring.known();
    machine.unmeasured_workspace = measuring.workspace();
    machine.drift = drift;
    // An optimistic estimate never hides a plan that is worth measuring.
    machine.speeds = {};
    machine.borrowed = {};
    PlanningResult planning = plan(network, source, measuring.ranks(), machine, options);
    if (turn == most_turns || !measuring.measure_missing(network, plans_to_measure(planning)))
      return {std::move(machine), std::move(planning)};
  }
}

std::function<Bytes(const Kernel&)> workspace_here(const std::string& backend, int threads) {
  const std::shared_ptr<Backend> asked = make_backend(backend, threads);
  return [asked, refuses = backend == "cpu"](const Kernel& kernel) {
    try {
      return asked->prepare(kernel)->workspace();
    } catch (const EnvironmentError&) {
      if (!refuses) throw;
      return Bytes{0};  // a kernel of mixed precision, which will have to run with another backend
    }
  };
}

}  // namespace stratplan
