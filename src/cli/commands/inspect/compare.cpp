// stratplan compare: predicted against measured times, by layer and by kind of op.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/input_option.hpp"
#include "cli/options.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/system/this_machine.hpp"
#include "model/plan/plan.hpp"
#include "model/plan/timings.hpp"
#include "report/comparison.hpp"
#include "report/loss_curve.hpp"
#include "report/prediction.hpp"
#include "report/ranges.hpp"

namespace stratplan {
namespace {

struct CompareOptions {
  std::string plan;
  std::string timings;
  std::string machine = "local";
  std::string input;
  bool json = false;
};

/// Throws InputError if the timings were measured on another machine. An estimated profile is named
/// "local", so its name cannot be compared.
void check_machine(const CompareOptions& options, const Timings& timings,
                   const MachineProfile& machine) {
  if (timings.machine_name != machine.name && machine.name != "local")
    throw InputError(options.timings, "/machine/name",
                     fmt::format("measured on the machine {}, but the prediction is for {}; "
                                 "--machine chooses another machine",
                                 timings.machine_name, machine.name));
}

Json times_to_json(const LayerTimes& times) {
  return {{"seconds", times.total().value},
          {"compute_seconds", times.compute.value},
          {"exchange_seconds", times.exchange.value},
          {"collective_seconds", times.collective.value}};
}

Json to_json(const Comparison& comparison, const PlanAndNetwork& planned) {
  Json layers = Json::array();
  for (LayerIndex i = 0; i < planned.network.size(); ++i) {
    const auto index = static_cast<std::size_t>(i);
    if (planned.network.layer(i).is_data()) continue;
    Json predicted = times_to_json(comparison.predicted[index]);
    put_range(predicted, "seconds", comparison.ranges[index]);
    layers.push_back({{"name", planned.network.layer(i).name},
                      {"predicted", predicted},
                      {"measured", times_to_json(comparison.measured[index])}});
  }
  Json document = {{"name", planned.plan.name}};
  put_prediction(document, comparison.whole);
  document.update({{"measured_step_seconds", comparison.measured_step.value},
                   {"error", relative_error(comparison.whole.step, comparison.measured_step)},
                   {"within_range",
                    is_within(comparison.measured_step.value, comparison.whole.certainty->step)},
                   {"predicted", times_to_json(sum(comparison.predicted))},
                   {"measured", times_to_json(sum(comparison.measured))},
                   {"layers", layers}});
  return document;
}

/// The bytes of the last level of caches that each rank has of its own, if the plan ran on
/// processors of this machine; otherwise 0.
Bytes cache_per_rank(const MachineProfile& machine, int ranks) {
  if (machine.on_gpus() || machine.name != this_machine()) return {};
  return {last_level_cache().value / machine.ranks_per_node(ranks)};
}

void print_kinds(const KindDifferences& differences) {
  if (differences.compared == 0) {
    fmt::print("\nno op of this plan was profiled, so none is compared with its profile\n");
    return;
  }
  if (differences.kinds.empty())
    fmt::print("\nevery kind of op takes as long as in the profile, within what both vary\n");
  else
    fmt::print("\nkinds of ops whose time differs from the profile's by more than both vary\n\n{}",
               to_text(kind_difference_table(differences)));
  if (differences.unprofiled > 0)
    fmt::print("{} of {} ops were not profiled\n", differences.unprofiled,
               differences.unprofiled + differences.compared);
}

void compare_and_print(const CompareOptions& options) {
  PlanAndNetwork planned = read_plan(options.plan);
  const Timings timings = read_timings(options.timings);
  MachineProfile machine = read_machine_aloud(options.machine, planned.plan, Software().name);
  // A run without data files reads nothing.
  if (!options.input.empty() || !timings.data.empty())
    set_input(machine, options.input, planned.plan, options.plan);
  check_match(timings, options.timings, planned, options.plan);
  check_machine(options, timings, machine);
  const Comparison comparison = compare(planned, timings, machine, options.timings,
                                        cache_per_rank(machine, planned.plan.ranks));
  if (options.json) {
    fmt::print("{}\n", to_json(comparison, planned).dump());
    return;
  }
  fmt::print("{}\n{}the prediction rests on: {}\n\nfarthest off\n\n{}",
             to_text(layer_comparison(planned.network, comparison)),
             to_text(kind_table(comparison)), tier_text(comparison.whole),
             to_text(worst_layers(planned.network, comparison, 5)));
  print_kinds(comparison.kinds);
  if (!timings.timing.losses.empty()) fmt::print("\n{}", loss_summary(timings.timing.losses));
}

}  // namespace

void add_compare(CLI::App& program, const CommandLine&) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command = program.add_subcommand(
      "compare", "Predicted against measured times: by layer, by kind of op, in total");
  command->add_option("PLAN", options->plan, "plan.json")->required();
  command->add_option("TIMINGS", options->timings, "timings.json of a run of that plan")
      ->required();
  add_machine(*command, options->machine);
  add_input(*command, options->input);
  add_json(*command, options->json);
  command->footer(
      "Examples:\n  stratplan run plan.json -o timings.json && stratplan compare plan.json "
      "timings.json");
  command->callback([options] { compare_and_print(*options); });
}

}  // namespace stratplan
