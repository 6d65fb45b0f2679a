// stratplan plan: finds the recommended plan for a machine, or prices a plan that the user
// prescribes. Measures nothing.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <stdexcept>
#include <utility>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/execution_options.hpp"
#include "cli/input_option.hpp"
#include "cli/options.hpp"
#include "cli/provenance.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
#include "model/cost/transports.hpp"
#include "planner/overlap.hpp"
#include "planner/planner.hpp"
#include "planner/prediction.hpp"
#include "report/choice.hpp"
#include "report/input_report.hpp"
#include "report/layers.hpp"
#include "report/memory_report.hpp"
#include "report/prediction.hpp"
#include "report/ranges.hpp"
#include "report/statistics_report.hpp"
#include "tuner/adopted.hpp"

namespace stratplan {
namespace {

struct PlanOptions {
  NetworkOptions network;
  ExecutionOptions execution;
  int ranks = 0;
  std::string machine = "local";
  std::string software = "stratplan";
  bool ideal = false;
  std::string input;
  std::string memory;
  std::string uniform;
  std::string strategy;
  std::string output;
  std::string time_limit;
  bool pareto = false;
  bool json = false;
};

Decomposition parse_decomposition(const std::string& text) {
  try {
    Decomposition parsed = Decomposition::parse(text);
    if (parsed.ranks != Ranks())
      throw std::invalid_argument(fmt::format(
          "\"{}\" lists ranks; leave the list out, because a plan uses all its ranks", text));
    return parsed;
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("--uniform: {}", error.what()));
  }
}

/// Returns the plan that gives each layer the decomposition of --uniform, or the nearest legal one.
/// Throws InfeasibleError if every layer would only repeat its work although --uniform splits it.
/// Also throws InfeasibleError if the plan needs more memory than --memory.
Plan uniform(const PlanOptions& options, const PlanningOptions& planning, const Network& network,
             const MachineProfile& machine) {
  const Decomposition wanted = parse_decomposition(options.uniform);
  if (wanted.grid.ranks() > options.ranks)
    throw UsageError(fmt::format("--uniform {} needs {} ranks, but --ranks says {}",
                                 options.uniform, wanted.grid.ranks(), options.ranks));
  Plan plan = uniform_plan(network, wanted);
  check_wish(plan, network, options.uniform);
  plan.network_source = options.network.source;
  plan.overrides = options.network.overrides();
  plan.overrides.batch = network.batch;
  plan.ranks_offered = options.ranks;
  plan.machine_name = machine.full_name();
  plan.machine_fingerprint = machine.fingerprint();
  plan.software = machine.software.name;
  if (!can_run(machine.software, wanted.grid))
    throw InfeasibleError(
        fmt::format("{} cannot run --uniform {}", machine.software.name, options.uniform));
  plan.execution = planning.execution;
  const std::optional<Bytes> limit = planning.memory_limit;
  plan.prediction = choose_execution(plan, network, machine, limit);
  if (limit && plan.prediction->memory > *limit)
    throw InfeasibleError(fmt::format("{} needs {} per rank, more than --memory {}", plan.name,
                                      readable(plan.prediction->memory), options.memory));
  return plan;
}

bool has_name(const Considered& considered, const std::string& name) {
  return considered.name == name || std::find(considered.aliases.begin(), considered.aliases.end(),
                                              name) != considered.aliases.end();
}

/// Returns the baseline of this name; null if the network has none.
const Considered* find_baseline(const std::string& name, const PlanningResult& result) {
  const auto found = std::ranges::find_if(
      result.baselines, [&](const Considered& considered) { return has_name(considered, name); });
  return found == result.baselines.end() ? nullptr : &*found;
}

Plan baseline(const std::string& name, const PlanningResult& result) {
  const Considered* found = find_baseline(name, result);
  if (!found)
    throw InfeasibleError(fmt::format("strategy {} gives no plan for this network", name));
  if (!found->usable()) throw InfeasibleError(fmt::format("{}: {}", name, found->infeasible));
  return *found->plan;
}

Json layers_to_json(const Plan& plan, const Network& network) {
  Json layers = Json::array();
  for (LayerIndex i = 0; i < network.size(); ++i)
    if (!network.layer(i).is_data())
      layers.push_back({{"name", network.layer(i).name},
                        {"decomposition", plan.layers[static_cast<std::size_t>(i)].text()}});
  return layers;
}

/// `recommended`: the plan whose step the considered plan's is compared with.
Json considered_to_json(const Considered& considered, const Prediction& recommended) {
  Json document = {{"name", considered.name}};
  if (!considered.aliases.empty()) document["aliases"] = considered.aliases;
  if (considered.plan && considered.plan->prediction) {
    const Prediction& prediction = *considered.plan->prediction;
    put_prediction(document, prediction);
    if (considered.usable()) {
      document["against_recommended"] = prediction.step / recommended.step;
      put_range(document, "against_recommended", ratio_range(prediction, recommended));
    } else {
      document.erase("predicted_step_seconds");
      document.erase("predicted_step_seconds_range");
    }
  }
  if (!considered.infeasible.empty()) document["infeasible"] = considered.infeasible;
  return document;
}

/// Facts about a plan that the summary prints besides the prediction.
struct Findings {
  Bytes memory_limit{};  ///< per rank: --memory, or else the device's memory; 0: unknown
  Bytes reserve{};       ///< the part of the limit on which no plan should count
  KernelCount kernels;
  std::optional<SharedStatistics> statistics;
  std::optional<InputFindings> input;

  Fit fit(Bytes memory) const { return fit_of(memory, memory_limit, reserve); }
};

Findings findings_on(const Plan& plan, const Network& network, const MachineProfile& machine,
                     const std::optional<Bytes>& memory_limit) {
  std::vector<Program> programs = modelled_programs(plan, network);
  const KernelCount kernels = count_kernels(programs, machine);
  const Bytes limit = memory_limit.value_or(machine.device.memory);
  const auto input = input_findings(programs, machine, plan.prediction->step);
  return {limit, reserve(machine, limit), kernels,
          shared_statistics(std::move(programs), network, machine), input};
}

Json to_json(const Plan& plan, const Network& network, const Findings& findings,
             const PlanningResult* result) {
  Json document = {{"name", plan.name},
                   {"ranks", plan.ranks},
                   {"ranks_offered", plan.ranks_offered},
                   {"batch", network.batch},
                   {"machine", plan.machine_name},
                   {"software", plan.software}};
  put_prediction(document, *plan.prediction);
  document.update({{"memory_reserve_bytes", findings.reserve.value},
                   {"fit", name_of(findings.fit(plan.prediction->memory))},
                   {"kernels", findings.kernels.all},
                   {"unmeasured_kernels", findings.kernels.all - findings.kernels.measured},
                   {"micro_batches", network.training.micro_batches},
                   {"sharding", plan.execution.sharding},
                   {"recompute", plan.execution.recompute},
                   {"adjustments", plan.adjustments},
                   {"layers", layers_to_json(plan, network)}});
  if (findings.input) document["input"] = to_json(*findings.input);
  if (findings.statistics) document["shared_statistics"] = to_json(*findings.statistics);
  if (!result) return document;
  Json baselines = Json::array();
  for (const Considered& considered : result->baselines)
    baselines.push_back(considered_to_json(considered, *plan.prediction));
  document["optimal"] = result->optimal;
  document["objective_seconds"] = result->objective.value;
  document["gap"] = result->gap;
  document["candidates"] = result->candidates;
  document["search_seconds"] = result->search_seconds.value;
  document["chosen"] = result->chosen;
  document["reranking"] = result->reranking;
  document["fastest_step_seconds"] = result->fastest_step.value;
  document["tie"] = result->tie ? Json(result->tie->plans) : Json::array();
  document["baselines"] = baselines;
  if (result->without_limit) document["to_fit"] = limit_to_json(*result);
  if (!result->front.empty()) document["pareto"] = front_to_json(*result);
  return document;
}

Table baseline_table(const Plan& plan, const PlanningResult& result) {
  using enum Table::Align;
  Table table{{{"plan", Left},
               {"predicted ms"},
               {"memory"},
               {"against recommended"},
               {"tier", Left},
               {"remark", Left}},
              {}};
  table.rows.push_back({"recommended", step_text(*plan.prediction), memory_text(*plan.prediction),
                        "", tier_text(*plan.prediction), "= " + result.chosen});
  for (const Considered& considered : result.baselines) {
    std::string remark = considered.infeasible;
    for (const auto& alias : considered.aliases)
      remark += (remark.empty() ? "also " : ", also ") + alias;
    const Prediction* known =
        considered.plan && considered.plan->prediction ? &*considered.plan->prediction : nullptr;
    table.rows.push_back({considered.name, known ? step_text(*known) : "-",
                          known ? memory_text(*known) : "-",
                          considered.usable() ? with_range(known->step / plan.prediction->step,
                                                           ratio_range(*known, *plan.prediction))
                                              : "-",
                          known ? tier_text(*known) : "-", remark});
  }
  return table;
}

void print_summary(const Plan& plan, const Network& network, const Findings& findings) {
  fmt::print(
      "step       {} (simulated, {}), {} samples/s\nsoftware   {}\nmemory     {}{} per rank{}\n",
      step_text(*plan.prediction, " ms"), tier_text(*plan.prediction),
      four_digits(static_cast<double>(network.batch) / plan.prediction->step.value), plan.software,
      memory_text(*plan.prediction),
      findings.memory_limit.value > 0 ? ", of " + readable(findings.memory_limit) : "",
      fit_text(findings.fit(plan.prediction->memory), findings.reserve));
  fmt::print("kernels    {}\n", kernels_text(findings.kernels));
  if (findings.input) fmt::print("input      {}\n", input_text(findings.input));
  if (findings.statistics)
    fmt::print("statistics of batch normalization are summed over ranks: {}\n{}\n",
               statistics_text(*findings.statistics), statistics_remedy);
}

void print(const Plan& plan, const Network& network, const Findings& findings,
           const PlanningResult* result, const MachineProfile& machine) {
  fmt::print("{}: {} for batch {} on {} of {} of {}\n\n{}\n", plan.name, network.name,
             network.batch, plan.ranks, counted(plan.ranks_offered, "rank"), plan.machine_name,
             to_text(decomposition_table(network, plan.layers)));
  for (const auto& adjustment : plan.adjustments) fmt::print("adjusted {}\n", adjustment);
  if (!plan.adjustments.empty()) fmt::print("\n");
  if (const std::string overlap = overlap_text(plan.execution, network, plan.layers);
      !overlap.empty())
    fmt::print("{}\n\n", overlap);
  for (const auto& [transfer, transports] : plan.execution.transports.transfers)
    fmt::print("{} go by {}\n", transfer, to_text(transports));
  if (!plan.execution.transports.transfers.empty()) fmt::print("\n");
  if (network.training.micro_batches > 1)
    fmt::print("{} micro-batches of {}\n\n", network.training.micro_batches,
               counted(network.micro_batch(), "sample"));
  if (const std::string memory = memory_text(plan.execution); !memory.empty())
    fmt::print("{}\n\n", memory);
  if (!result) return print_summary(plan, network, findings);
  fmt::print("{}\n", to_text(baseline_table(plan, *result)));
  fmt::print("{} of {} considered\nobjective  {}\n",
             counted(static_cast<std::int64_t>(result->candidates), "decomposition"),
             counted(static_cast<std::int64_t>(result->blocks), "block"), objective_text(*result));
  print_summary(plan, network, findings);
  fmt::print("{}", tie_text(*result, machine));
  if (!result->reranking.empty()) fmt::print("{}\n", result->reranking);
  if (const std::string limit = limit_text(*result); !limit.empty()) fmt::print("{}\n", limit);
  if (!result->front.empty())
    fmt::print(
        "\ntime against memory: no plan tried needs less time and less memory than a plan of this "
        "table\n\n{}",
        to_text(front_table(*result)));
}

/// If autotune measured another plan of this machine as faster, that plan is recommended.
void prefer_adopted(PlanningResult& result, const PlanOptions& options, const Network& network,
                    const MachineProfile& machine) {
  if (options.machine != "local" || !options.strategy.empty() || !options.memory.empty()) return;
  std::optional<Adopted> adopted = adopted_for(network, options.ranks);
  const Plan& recommended = result.recommended;
  if (!adopted || adopted->plan.layers == recommended.layers ||
      adopted->plan.software != recommended.software ||
      adopted->plan.execution.precision != recommended.execution.precision)
    return;
  adopted->plan.name = "recommended";
  adopted->plan.prediction = predict(adopted->plan, network, machine);
  result.reranking = fmt::format(
      "autotune measured \"{}\" at {} ms per step, and \"{}\", which is recommended otherwise, at "
      "{} ms",
      adopted->name, milliseconds(adopted->measured), result.chosen,
      milliseconds(adopted->recommended));
  result.recommended = std::move(adopted->plan);
  result.chosen = adopted->name + ", as measured";
  result.tie.reset();
}

void make_plan(const PlanOptions& options, const CommandLine& command_line) {
  PlanningOptions planning{.overrides = options.network.overrides(),
                           .memory_limit = {},
                           .execution = {},
                           .limits = {},
                           .free = {}};
  if (!options.memory.empty()) planning.memory_limit = parse_bytes(options.memory);
  if (!options.time_limit.empty()) planning.time_limit = parse_duration(options.time_limit);
  if (!options.uniform.empty())
    parse_decomposition(options.uniform);  // reports a usage error before any other error
  const Network network = options.network.read(true);
  const Software software = read_software(options.software);
  planning.execution = as_run_by(software, options.execution.execution(network),
                                 options.execution.precision.gradient_sums.has_value());
  check_saving(software, planning.execution);
  planning.free = free_under(software, options.execution.free(options.network.optimizer));
  planning.front = options.pareto;
  if (!planning.time_limit)
    planning.on_search = [said = false](Seconds taken) mutable {
      constexpr Seconds long_wait{10};
      if (taken > long_wait && !std::exchange(said, true))
        note(
            "the search still narrows the gap; --time-limit 30s would end it with the best plan "
            "so far and the gap reached");
    };
  MachineProfile machine =
      read_machine_aloud(options.machine, options.ranks, planning.execution, software);
  if (options.ideal) machine = with_ideal_scaling(std::move(machine));
  set_input(machine, options.input);
  check_output(options.output);

  Plan chosen;
  std::optional<PlanningResult> result;
  if (!options.uniform.empty()) {
    chosen = uniform(options, planning, network, machine);
  } else {
    result = plan(network, options.network.source, options.ranks, machine, planning);
    const Considered* named = find_baseline(options.strategy, *result);
    if (!options.strategy.empty() && result->reserve.value > 0 && !(named && named->usable())) {
      planning.counts_on_reserve = true;
      result = plan(network, options.network.source, options.ranks, machine, planning);
    }
    prefer_adopted(*result, options, network, machine);
    chosen = options.strategy.empty() ? result->recommended : baseline(options.strategy, *result);
  }
  if (machine.input) chosen.input = options.input;
  const PlanningResult* shown = options.strategy.empty() && result ? &*result : nullptr;
  const Network planned = network_of(chosen, network);
  if (!options.output.empty())
    write_document(options.output, "plan", to_json(chosen, planned, make_provenance(command_line)));
  const Findings findings = findings_on(chosen, planned, machine, planning.memory_limit);
  if (machine.measured_ranks > 0 && findings.kernels.measured < findings.kernels.all)
    note(
        fmt::format("the times of {} of the plan's {} kernels are estimates; to measure them, run "
                    "stratplan profile or autotune",
                    findings.kernels.all - findings.kernels.measured, findings.kernels.all));
  if (findings.memory_limit > machine.device.memory && machine.device.memory.value > 0)
    note(fmt::format("--memory allows {}, but the device has only {}",
                     readable(findings.memory_limit), readable(machine.device.memory)));
  if (options.json) {
    fmt::print("{}\n", to_json(chosen, planned, findings, shown).dump());
  } else {
    print(chosen, planned, findings, shown, machine);
  }
}

constexpr const char* plan_footer = R"(Examples:
  stratplan plan resnet50 -n 2 -b 8 -o plan.json
  stratplan plan mesh2k -m lassen -n 1024 -b 128 --json
  stratplan plan hepcnn -n 4 -b 2 --uniform "H2 W2" -o tiles.json
  stratplan plan resnet50 -n 8 -b 32 --strategy one-weird-trick
  stratplan plan resnet50 -n 2 -b 64 --memory 8GiB --recompute all --sharding 2
  stratplan plan mesh2k -m lassen -n 1024 -b 32768   # chooses micro-batches, sharding and
                                                     # recomputation, so that the plan fits
  stratplan plan resnet50 -m lassen -n 16 -b 2048 --pareto)";

}  // namespace

void add_plan(CLI::App& program, const CommandLine& command_line) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command =
      program.add_subcommand("plan", "Recommend a decomposition for each layer; measures nothing");
  options->network.add(*command);
  add_ranks(*command, options->ranks, true);
  add_machine(*command, options->machine);
  add_software(*command, options->software, false);
  add_ideal(*command, options->ideal);
  add_input(*command, options->input);
  add_memory(*command, options->memory);
  options->execution.add(*command);
  auto* uniform = command->add_option("--uniform", options->uniform,
                                      "plan with one decomposition for all layers, for example "
                                      "\"H2 W2\"; a layer that cannot be split like that gets the "
                                      "nearest legal decomposition");
  auto* strategy =
      command
          ->add_option("--strategy", options->strategy,
                       "plan by a well-known rule instead of a search: sample, lbann or "
                       "one-weird-trick")
          ->check(CLI::IsMember({"sample", "lbann", "one-weird-trick"}))
          ->excludes(uniform);
  command
      ->add_flag("--pareto", options->pareto,
                 "also print the fastest plan for each amount of memory, over layouts, "
                 "micro-batches, sharding and recomputation")
      ->excludes(uniform)
      ->excludes(strategy);
  command->add_option("--time-limit", options->time_limit,
                      "time for a search over many ranks, for example 10s; then the best plan so "
                      "far is the answer, with the gap reached. Default: no limit");
  command->add_option("-o,--output", options->output, "write plan.json to this file");
  add_json(*command, options->json);
  command->footer(plan_footer);
  command->callback([options, &command_line] { make_plan(*options, command_line); });
}

}  // namespace stratplan
