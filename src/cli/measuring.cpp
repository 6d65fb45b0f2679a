#include "cli/measuring.hpp"

#include <unistd.h>

#include "cli/console.hpp"
#include "cli/job.hpp"
#include "model/base/error.hpp"
#include "planner/launcher.hpp"
#include "planner/prediction.hpp"
#include "profile/profile_request.hpp"

namespace stratplan {
namespace {

/// Plans on fewer ranks are measured in the company of the others too, as their kernels keep one profile.
std::vector<Program> all_programs(const Network& network, const std::vector<const Plan*>& plans, int ranks) {
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
  const std::string measured_with = machine.provenance.is_object() ? machine.provenance.value("backend", "") : "";
  if (measured_with != backend && !measured_with.starts_with(backend + ",")) machine.measured_ranks = 0;
  return machine;
}

bool measure_missing(const Network& network, const std::vector<const Plan*>& plans, int ranks, const std::string& backend) {
  const ProfileRequest request = missing(all_programs(network, plans, ranks), known_machine(ranks, backend));
  if (request.empty()) return false;
  const auto file = cache_folder() / ("request-" + std::to_string(getpid()) + ".json");
  write_file_atomically(file, to_json(request).dump());
  const LaunchResult result = launch({ranks, 1, {"profile", "--request", file.string(), "-o", local_machine_path(ranks).string(), "--backend", backend}, {}});
  std::filesystem::remove(file);
  if (result.exit_code != 0) throw JobFailed{result.exit_code};
  return true;
}

}  // namespace

AutotuneHooks make_hooks(int ranks, const std::string& backend) {
  auto progress = std::make_shared<ProgressLine>();
  return {[progress](const std::string& text) { progress->phase(text); },
          [ranks, backend](const Network& network, const std::vector<const Plan*>& plans) { return measure_missing(network, plans, ranks, backend); }};
}

}  // namespace stratplan
