// stratplan diff: the differences between two plans, and the predicted change of time and memory.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/input_option.hpp"
#include "cli/options.hpp"
#include "model/base/json/json.hpp"
#include "report/difference.hpp"

namespace stratplan {
namespace {

struct DiffOptions {
  std::string a, b;
  std::string machine = "local";
  std::string input;
  bool per_layer = false;
  std::string output;
  bool json = false;
};

void print(const DiffOptions& options, const Difference& difference, const PlanSide& a,
           const PlanSide& b) {
  if (!difference.settings.empty())
    fmt::print("{}\n", to_text(settings_table(difference, options.a, options.b)));
  const std::vector<LayerDifference> layers =
      options.per_layer ? difference.layers : fold_neighbours(difference.layers);
  if (layers.empty()) {
    fmt::print("all layers have the same decompositions\n\n");
  } else {
    fmt::print("{}\n", to_text(layers_table(layers, options.a, options.b)));
  }
  fmt::print("{}", to_text(totals_table(a, b, options.a, options.b)));
}

void compare_and_print(const DiffOptions& options) {
  check_output(options.output);
  PlanAndNetwork first = read_plan(options.a), second = read_plan(options.b);
  // Measurements of this machine are those with the most ranks, for both plans.
  const int ranks = std::max(first.plan.ranks, second.plan.ranks);
  MachineProfile machine_a = read_machine_aloud(options.machine, ranks, first.plan.execution,
                                                software_of(first.plan)),
                 machine_b = read_machine_for(options.machine, ranks, first.plan.execution,
                                              software_of(second.plan));
  set_input(machine_a, options.input, first.plan, options.a);
  set_input(machine_b, options.input, second.plan, options.b);
  const PlanSide a = side_of(first, machine_a), b = side_of(second, machine_b);
  const Difference difference = compare_plans(a, b);
  const Json document = to_json(difference, a, b);
  if (!options.output.empty()) write_file_atomically(options.output, document.dump(1) + "\n");
  if (options.json) {
    fmt::print("{}\n", document.dump());
  } else {
    print(options, difference, a, b);
  }
}

}  // namespace

void add_diff(CLI::App& program, const CommandLine&) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* command = program.add_subcommand(
      "diff", "Where two plans differ: settings, layers, predicted time and memory");
  command->add_option("A", options->a, "plan.json")->required();
  command->add_option("B", options->b, "another plan.json")->required();
  add_machine(*command, options->machine);
  add_input(*command, options->input);
  command->add_flag("--per-layer", options->per_layer,
                    "print every layer on a line of its own, also layers that are split alike");
  command->add_option("-o,--output", options->output, "also write the JSON to this file");
  add_json(*command, options->json);
  command->footer(
      "Examples:\n  stratplan diff sample.json best.json -m lassen\n  stratplan diff a.json b.json "
      "--per-layer --json");
  command->callback([options] { compare_and_print(*options); });
}

}  // namespace stratplan
