// stratplan bottleneck: where the time of a plan's step goes, and what would shorten it.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/input_option.hpp"
#include "cli/options.hpp"
#include "model/base/json/json.hpp"
#include "report/bottleneck.hpp"
#include "report/ranges.hpp"

namespace stratplan {
namespace {

struct BottleneckOptions {
  std::string plan;
  std::string machine;
  std::string software;
  std::string input;
  std::string output;
  bool per_layer = false;
  bool json = false;
};

constexpr std::size_t heaviest = 10;  ///< layers that are printed without --per-layer

constexpr const char* bottleneck_legend =
    R"(Milliseconds, the mean over the ranks. Messages count only while no kernel runs beside them.
imbalance: how much longer the rank with most work takes than the mean; the other ranks wait for it.
)";

void find_and_print(const BottleneckOptions& options) {
  check_output(options.output);
  auto [plan, network] = read_plan(options.plan);
  MachineProfile machine = read_machine_aloud(options.machine, plan, options.software);
  set_input(machine, options.input, plan, options.plan);
  const Bottlenecks found = find_bottlenecks(plan, network, machine);
  Json document = {{"name", plan.name}, {"ranks", plan.ranks}, {"machine", machine.name}};
  document.update(to_json(network, found));
  if (!options.output.empty()) write_file_atomically(options.output, document.dump(1) + "\n");
  if (options.json) {
    fmt::print("{}\n", document.dump());
    return;
  }
  fmt::print("{}\nstep: {} ({})\n{}\ninput: {}\n\n", to_text(step_table(found)),
             step_text(found.prediction, " ms"), tier_text(found.prediction), bound_text(found),
             input_text(found.input));
  fmt::print("{}\n{}\n\n", to_text(remedy_table(found)), memory_size_text(found));
  const Table all = bottleneck_table(network, found);
  if (options.per_layer || all.rows.size() <= heaviest)
    fmt::print("{}\n", to_text(all));
  else
    fmt::print("the {} heaviest of {} layers; --per-layer prints all\n\n{}\n", heaviest,
               all.rows.size(), to_text(bottleneck_table(network, found, heaviest)));
  fmt::print("{}", bottleneck_legend);
}

}  // namespace

void add_bottleneck(CLI::App& program, const CommandLine&) {
  auto options = std::make_shared<BottleneckOptions>();
  CLI::App* command = program.add_subcommand(
      "bottleneck", "Where the time of a plan's step goes, by layer, and what would shorten it");
  command->add_option("PLAN", options->plan, "plan.json")->required();
  add_plan_machine(*command, options->machine);
  add_software(*command, options->software, true);
  add_input(*command, options->input);
  command->add_flag("--per-layer", options->per_layer,
                    "print every layer, in the network's order, instead of the heaviest");
  command->add_option("-o,--output", options->output, "also write the JSON to this file");
  add_json(*command, options->json);
  command->footer(
      "Examples:\n  stratplan bottleneck plan.json\n  stratplan bottleneck plan.json -m lassen "
      "--json");
  command->callback([options] { find_and_print(*options); });
}

}  // namespace stratplan
