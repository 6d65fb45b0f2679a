// stratplan profile: measures the kernels and links of this machine that a network's plans need, or
// the links of a cluster. With --request or --links, this process is one of the measuring ranks.
#include "profile/profile.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/execution_options.hpp"
#include "cli/options.hpp"
#include "cli/provenance.hpp"
#include "job/rank.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/system/this_machine.hpp"
#include "model/machine/software.hpp"
#include "profile/cluster_profile.hpp"
#include "profile/job_script.hpp"
#include "session/rank_device.hpp"
#include "session/training.hpp"
#include "tuner/measuring.hpp"

namespace stratplan {
namespace {

struct ProfileOptions {
  NetworkOptions network;
  int ranks = 0;
  std::string backend = default_backend();
  PrecisionOptions precision;
  std::string software = Software().name;  ///< whose kernels are measured
  std::string name;  ///< the machine's name in `output`; empty: this machine's own
  std::string request;
  std::string output;
  bool links = false;
  std::string largest = "4MiB";
  BatchJob job;
  std::string batch_system;
  bool json = false;
};

/// Returns the provenance of a profile, which records whether ranks shared a device. If they did,
/// the profile says little about links between devices.
Provenance provenance_of(const RankDevice& device, const CommandLine& command_line) {
  Json provenance = make_provenance(command_line).json();
  if (device.shared()) provenance["shared_devices"] = true;
  provenance["between_hosts"] = transport_between_hosts();
  return Provenance(provenance);
}

/// Runs one rank of the measuring job that plan_and_measure() starts.
void measure(const ProfileOptions& options, const CommandLine& command_line,
             Communicator& communicator) {
  const ProfileRequest request =
      request_from_json(read_json_file(options.request), options.request);
  Console console;
  RankDevice device({.backend = options.backend}, request.threads_per_rank, communicator, {},
                    console);
  const Team team(communicator, device.transports(groups_to_measure(request, communicator.rank())));
  const bool links = request.largest_message.value > 0 || !request.collectives.empty();
  console.phase(
      fmt::format("measuring {} kernels{}", request.kernels.size(),
                  links ? fmt::format(" and the links between {} ranks", request.ranks) : ""));
  const auto progress = [&](std::size_t done, std::size_t total, const std::string& what) {
    console.update(fmt::format("{} of {}, {}", done, total, what));
  };
  MachineProfile base = read_machine("local", request.ranks, request.threads_per_rank);
  base.name = this_machine();
  forget_other_transports(base, transport_between_hosts());
  const MachineProfile machine = run_profile(request, device.backend(), team, base,
                                             provenance_of(device, command_line), progress);
  if (communicator.rank() == 0) write_document(options.output, "machine", to_json(machine));
  communicator.barrier();
}

Json to_json(const MachineProfile& machine, const std::string& file) {
  return {{"machine", machine.name},
          {"file", file},
          {"ranks", machine.measured_ranks},
          {"kernels", machine.kernels.size()},
          {"collectives", machine.collectives.size()}};
}

/// Plans and measures the network in turns, as autotune does before it runs any plan.
void profile_network(const ProfileOptions& options) {
  const Network network = options.network.read();
  check_cache();
  check_output(options.output);
  PlanningOptions planning;
  planning.overrides = options.network.overrides();
  planning.execution.precision = options.precision.precision();
  planning.execution = as_run_by(read_software(options.software), planning.execution,
                                 options.precision.gradient_sums.has_value());
  planning.free.micro_batches = false;
  Console console;
  Measuring measuring(options.ranks, options.backend, console);
  MachineProfile machine =
      plan_and_measure(network, options.network.source, planning, measuring, {}, console).machine;
  if (!options.name.empty()) machine.name = options.name;
  const std::string file =
      options.output.empty() ? local_machine_path(options.ranks).string() : options.output;
  if (!options.output.empty())
    write_document(options.output, "machine", stratplan::to_json(machine));
  if (options.json) {
    fmt::print("{}\n", to_json(machine, file).dump());
  } else {
    fmt::print("{}: {} kernels, {} collectives, measured with {} ranks at once\n{}\n", machine.name,
               machine.kernels.size(), machine.collectives.size(), machine.measured_ranks, file);
  }
}

/// Runs one rank of the job that measures a cluster's links.
void measure_links(const ProfileOptions& options, const CommandLine& command_line,
                   Communicator& communicator) {
  Console console;
  console.phase(fmt::format("measuring the links between {} ranks", communicator.size()));
  MachineProfile base = read_machine("local");
  base.name = this_machine();
  const ClusterLayout layout{communicator.size(), options.job.ranks_per_node};
  RankDevice device({.backend = options.backend}, 1, communicator, {}, console);
  const Team team(communicator, device.transports(groups_to_measure(layout, communicator.rank())));
  const MachineProfile machine = profile_cluster(
      layout, parse_bytes(options.largest), device.backend(), team, base,
      provenance_of(device, command_line), [&](const std::string& what) { console.update(what); });
  if (communicator.rank() == 0) {
    write_document(options.output, "machine", to_json(machine));
    if (options.json) fmt::print("{}\n", to_json(machine, options.output).dump());
  }
  communicator.barrier();
}

void write_job(const ProfileOptions& options, const CommandLine& command_line) {
  BatchJob job = options.job;
  job.system = options.batch_system == "slurm" ? BatchSystem::Slurm
               : options.batch_system == "lsf" ? BatchSystem::Lsf
                                               : BatchSystem::Flux;
  job.program = command_line.front();
  if (!options.output.empty()) job.output = options.output;
  if (is_cuda(options.backend)) job.backend = options.backend;
  fmt::print("{}", job_script(job));
}

void profile(const ProfileOptions& options, const CommandLine& command_line) {
  if (!options.batch_system.empty()) return write_job(options, command_line);
  if (options.links) {
    if (!launched_as_rank())
      throw UsageError(
          "--links needs ranks: call it as mpirun -n P stratplan profile --links, or run the "
          "script that --job prints");
    if (options.output.empty()) throw UsageError("--links needs --output");
    return run_as_rank([&](Communicator& communicator, const FlightRecorder&) {
      measure_links(options, command_line, communicator);
    });
  }
  if (!options.request.empty()) {
    if (options.output.empty()) throw UsageError("--request needs --output");
    const auto as_rank = [&](Communicator& communicator, const FlightRecorder&) {
      measure(options, command_line, communicator);
    };
    return launched_as_rank() ? run_as_rank(as_rank) : run_alone(as_rank);
  }
  if (launched_as_rank())
    throw UsageError("profile starts its ranks itself: call it without mpirun, with --ranks");
  if (options.network.source.empty() || options.ranks < 1)
    throw UsageError("profile needs NETWORK and --ranks; see stratplan profile --help");
  profile_network(options);
}

}  // namespace

void add_profile(CLI::App& program, const CommandLine& command_line) {
  auto options = std::make_shared<ProfileOptions>();
  CLI::App* command = program.add_subcommand(
      "profile", "Measure the kernels and links of this machine that a network's plans need");
  options->network.add(*command)->required(false);
  add_ranks(*command, options->ranks, false);
  command
      ->add_option("--backend", options->backend,
                   "backend to measure: cpu, reference, cuda or cuda:tf32")
      ->capture_default_str();
  options->precision.add(*command);
  add_software(*command, options->software, false);
  command->add_option("--name", options->name,
                      "name of the machine in --output; default: its model and number of cores");
  command
      ->add_option("--request", options->request,
                   "file that lists what to measure; the launching process writes it for its ranks")
      ->group("");
  command->add_option("-o,--output", options->output,
                      "also write the machine profile to this file");
  add_json(*command, options->json);
  command
      ->add_option(
          "--job", options->batch_system,
          "print the script of a batch job that measures a cluster's links, for slurm, lsf "
          "or flux; nothing is measured now")
      ->check(CLI::IsMember({"slurm", "lsf", "flux"}));
  command->add_option("--nodes", options->job.nodes, "with --job: number of nodes")
      ->check(positive())
      ->capture_default_str();
  command
      ->add_option("--ranks-per-node", options->job.ranks_per_node,
                   "with --job: ranks on each node; with --links: this many consecutive ranks form "
                   "a node")
      ->check(positive())
      ->capture_default_str();
  command
      ->add_option("--minutes", options->job.minutes,
                   "with --job: time limit of the job in minutes")
      ->check(positive())
      ->capture_default_str();
  command->add_flag("--links", options->links,
                    "measure messages within and across nodes, and collectives, and write the "
                    "machine profile to --output; only under mpirun or srun");
  command
      ->add_option("--largest", options->largest,
                   "with --links: the most data that a rank sends in one measured operation")
      ->capture_default_str();
  command->footer(
      "Examples:\n  stratplan profile resnet50 -n 2 -b 8\n  stratplan profile my_network.json -n 4 "
      "-b 16 -o machine.json\n"
      "  stratplan profile resnet50 -n 1 -b 128 --backend cuda --precision bf16 --name my_gpu -o "
      "my_gpu.json\n"
      "  stratplan profile --job slurm --nodes 8 --ranks-per-node 4 -o cluster.json > profile.sh\n"
      "  mpirun -n 4 stratplan profile --links --ranks-per-node 2 -o links.json");
  command->callback([options, &command_line] { profile(*options, command_line); });
}

}  // namespace stratplan
