// stratplan bottleneck: where the time of a plan's step goes, and what would shorten it.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "model/base/json/json.hpp"
#include "report/bottleneck.hpp"

namespace stratplan {
namespace {

struct BottleneckOptions {
  std::string plan;
  std::string machine = "local";
  std::string output;
  bool json = false;
};

constexpr const char* bottleneck_legend =
    R"(Milliseconds, the mean over the ranks. Messages count only while no kernel runs beside them.
imbalance: how much longer the rank with most work takes than the mean; the other ranks wait for it.
)";

void find_and_print(const BottleneckOptions& options) {
  check_output(options.output);
  const auto [plan, network] = read_plan(options.plan);
  const MachineProfile machine = read_machine_aloud(options.machine, plan.ranks, plan.execution);
  const Bottlenecks found = find_bottlenecks(plan, network, machine);
  Json document = {{"name", plan.name}, {"ranks", plan.ranks}, {"machine", machine.name}};
  document.update(to_json(network, found));
  if (!options.output.empty()) write_file_atomically(options.output, document.dump(1) + "\n");
  if (options.json) {
    fmt::print("{}\n", document.dump());
    return;
  }
  fmt::print("{}\n{}\n{}\n\n{}", to_text(bottleneck_table(network, found)), bottleneck_legend,
             memory_size_text(found), to_text(remedy_table(found)));
}

}  // namespace

void add_bottleneck(CLI::App& program, const CommandLine&) {
  auto options = std::make_shared<BottleneckOptions>();
  CLI::App* command = program.add_subcommand(
      "bottleneck", "Where the time of a plan's step goes, by layer, and what would shorten it");
  command->add_option("PLAN", options->plan, "plan.json")->required();
  add_machine(*command, options->machine);
  command->add_option("-o,--output", options->output, "also write the JSON to this file");
  add_json(*command, options->json);
  command->footer(
      "Examples:\n  stratplan bottleneck plan.json\n  stratplan bottleneck plan.json -m lassen "
      "--json");
  command->callback([options] { find_and_print(*options); });
}

}  // namespace stratplan
