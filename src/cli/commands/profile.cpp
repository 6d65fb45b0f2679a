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
#include "planner/baselines.hpp"
#include "planner/prediction.hpp"
#include "profile/cluster_profile.hpp"
#include "profile/job_script.hpp"
#include "session/rank_device.hpp"
#include "session/training.hpp"
#include "tuner/deciding.hpp"
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
  int cluster_nodes = 0;  ///< 0: those that are measured
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

/// The kernels of each family in which the network's baselines spend most time on these ranks.
std::vector<Kernel> leading_kernels(const ProfileOptions& options, int ranks,
                                    const MachineProfile& machine) {
  const Network network = options.network.read();
  Execution execution;
  execution.precision = options.precision.precision();
  std::vector<Program> programs;
  for (const Baseline& baseline :
       baselines(network, ranks, machine, execution, [](const Plan&) { return true; }))
    if (baseline.plan)
      programs.emplace_back(programs_of(*baseline.plan, network).front()).ranks = ranks;
  return representatives(programs, missing(programs, machine).kernels, machine);
}

/// Refuses a number of nodes for a layout whose outermost level is not that of nodes.
void check_nodes(const ProfileOptions& options, const ClusterLayout& layout) {
  if (options.cluster_nodes > 0 && layout.nodes() < 2)
    throw UsageError("--cluster-nodes needs links between at least 2 nodes");
}

/// About how long the job takes, and what that is in node hours.
std::string cost_of_job(Seconds seconds, int nodes) {
  return fmt::format("about {} on {}, {:.2g} node hours", duration(seconds), counted(nodes, "node"),
                     nodes * seconds.value / 3600);
}

/// Runs one rank of the job that measures a cluster's links, and a network's kernels if one is
/// given.
void measure_links(const ProfileOptions& options, const CommandLine& command_line,
                   Communicator& communicator) {
  Console console;
  const ClusterLayout layout{communicator.size(), options.job.ranks_per_node};
  check_nodes(options, layout);
  const Bytes largest = parse_bytes(options.largest);
  const bool kernels_too = !options.network.source.empty();
  console.phase(fmt::format("measuring the links between {}: {}{}",
                            counted(communicator.size(), "rank"),
                            cost_of_job(expected_time(layout, largest), layout.nodes()),
                            kernels_too ? "; then kernels" : ""));
  MachineProfile base = read_machine("local");
  base.name = options.name.empty() ? this_machine() : options.name;
  RankDevice device({.backend = options.backend}, 1, communicator, {}, console);
  const Team team(communicator, device.transports(groups_to_measure(layout, communicator.rank())));
  MachineProfile machine = profile_cluster(layout, largest, device.backend(), team, base,
                                           provenance_of(device, command_line),
                                           [&](const std::string& what) { console.update(what); });
  if (kernels_too) {
    const std::vector<Kernel> kernels = leading_kernels(options, layout.ranks, machine);
    console.phase(fmt::format("measuring {}: {}", counted(std::ssize(kernels), "kernel"),
                              cost_of_job(expected_time(kernels.size()), layout.nodes())));
    add_speeds(machine, kernels, device.backend(), team,
               [&](std::size_t done, std::size_t total, const std::string& what) {
                 console.update(fmt::format("{} of {}, {}", done, total, what));
               });
  }
  if (options.cluster_nodes > 0) machine.levels.front().ranks = options.cluster_nodes;
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
  const ClusterLayout layout{job.nodes * job.ranks_per_node, job.ranks_per_node};
  check_nodes(options, layout);
  const bool kernels_too = !options.network.source.empty();
  if (kernels_too) {
    options.network.read();  // the job must not be the first to find it wrong
    job.arguments = options.network.words();
    job.arguments.insert(job.arguments.end(), {"--precision", options.precision.activations});
  }
  const auto pass_on = [&](const char* option, const std::string& value) {
    job.arguments.insert(job.arguments.end(), {option, value});
  };
  if (options.cluster_nodes > 0) pass_on("--cluster-nodes", std::to_string(options.cluster_nodes));
  if (options.largest != ProfileOptions().largest) pass_on("--largest", options.largest);
  if (!options.name.empty()) pass_on("--name", options.name);
  const Seconds limit{60.0 * job.minutes};
  Console().note(
      fmt::format("the links take {}{}; the job's limit of {} allows {:.2g} node hours",
                  cost_of_job(expected_time(layout, parse_bytes(options.largest)), job.nodes),
                  kernels_too ? ", and the network's kernels about as much" : "", duration(limit),
                  job.nodes * limit.value / 3600));
  fmt::print("{}", job_script(job));
}

/// Refuses options that would change nothing.
void check_use(const CLI::App& command) {
  const auto given = [&](const char* option) { return command.count(option) > 0; };
  const bool job = given("--job"), links = job || given("--links");
  for (const char* option : {"--nodes", "--minutes"})
    if (given(option) && !job) throw UsageError(fmt::format("{} goes with --job", option));
  for (const char* option : {"--ranks-per-node", "--cluster-nodes", "--largest"})
    if (given(option) && !links)
      throw UsageError(fmt::format("{} goes with --job or --links", option));
  for (const char* option : {"--ranks", "--software"})
    if (given(option) && links)
      throw UsageError(fmt::format("{} does not go with --job or --links", option));
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
          "print the script of a batch job that measures a cluster's links (and kernels of "
          "NETWORK), "
          "for slurm, lsf or flux, and say how many node hours it takes; nothing is measured now")
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
      ->add_option(
          "--cluster-nodes", options->cluster_nodes,
          "with --job and --links: nodes that the whole cluster has, so that plans may use "
          "more of them than were measured; default: the measured ones")
      ->check(positive());
  command
      ->add_option("--minutes", options->job.minutes,
                   "with --job: time limit of the job in minutes")
      ->check(positive())
      ->capture_default_str();
  command->add_flag(
      "--links", options->links,
      "measure messages within and across nodes, collectives and, if NETWORK is given, a "
      "few kernels of each family, and write the machine profile to --output; only "
      "under mpirun or srun");
  command
      ->add_option("--largest", options->largest,
                   "with --job and --links: the most data that a rank sends in one measured "
                   "operation")
      ->capture_default_str();
  command->footer(
      "Examples:\n  stratplan profile resnet50 -n 2 -b 8\n  stratplan profile my_network.json -n 4 "
      "-b 16 -o machine.json\n"
      "  stratplan profile resnet50 -n 1 -b 128 --backend cuda --precision bf16 --name my_gpu -o "
      "my_gpu.json\n"
      "  stratplan profile --job slurm --nodes 8 --ranks-per-node 4 -o cluster.json > profile.sh\n"
      "  stratplan profile resnet50 -b 1024 --job slurm --nodes 2 --ranks-per-node 4 "
      "--cluster-nodes 128 -o cluster.json > profile.sh\n"
      "  mpirun -n 4 stratplan profile --links --ranks-per-node 2 -o links.json");
  command->callback([options, command, &command_line] {
    check_use(*command);
    profile(*options, command_line);
  });
}

}  // namespace stratplan
