// stratplan explain: why each layer of a plan is split as it is. Shows the costs of the layer's
// decomposition and of the next best ones.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/suggestion.hpp"
#include "model/base/text.hpp"
#include "report/explanation.hpp"

namespace stratplan {
namespace {

struct ExplainOptions {
  std::string plan;
  std::string layer;
  std::string machine;
  std::string software;
  int others = 5;
  std::string output;
  bool json = false;
};

LayerIndex layer_called(const std::string& name, const Network& network) {
  const auto found = network.find(name);
  if (found && !network.layer(*found).is_data()) return *found;
  std::vector<std::string> known;
  for (const Layer& layer : network.layers)
    if (!layer.is_data()) known.push_back(layer.name);
  throw UsageError(fmt::format("{} {} \"{}\"{}", network.name,
                               found ? "has no alternatives for its input" : "has no layer", name,
                               suggestion(name, known)));
}

constexpr const char* explain_legend =
    R"(Milliseconds of one step if kernels hide no communication; all other layers stay as planned.
sums: collectives that kernels wait for (partial sums, statistics). reduction: sums of gradients.
halo: exchanges between layers that are split alike. redistribution: exchanges between other layers.
halo and redistribution include packing. An exchange counts at each of the two blocks that it
connects, so rows do not add up to the step. A next best decomposition with a change below zero
costs less here, but kernels would hide less of its communication. Behind an all-reduce, the ranks
repeat the work of the rest of a block; stratplan plan prints those layers as R.
)";

void print(const PlanAndNetwork& planned, const std::vector<BlockExplanation>& blocks, bool one) {
  if (one) {
    const BlockExplanation& block = blocks.front();
    fmt::print("{}: {} over {}; the table shows the chosen one and {} of {} others\n\n{}\n",
               layers_text(planned.network, block.block),
               counted(static_cast<std::int64_t>(block.candidates), "legal decomposition"),
               counted(planned.plan.ranks, "rank"), block.others.size(),
               std::max(block.candidates, std::size_t{1}) - 1, to_text(alternatives_table(block)));
  } else {
    fmt::print("{}\n", to_text(explanation_table(planned.network, blocks)));
  }
  fmt::print("{}", explain_legend);
}

void explain_and_print(const ExplainOptions& options) {
  check_output(options.output);
  PlanAndNetwork planned = read_plan(options.plan);
  auto& [plan, network] = planned;
  const MachineProfile machine = read_machine_aloud(options.machine, plan, options.software);
  const auto others = static_cast<std::size_t>(options.others);
  const std::vector<BlockExplanation> blocks =
      options.layer.empty()
          ? explain(plan, network, machine, others)
          : std::vector{explain_layer(plan, network, machine, layer_called(options.layer, network),
                                      others)};
  Json document = {{"name", plan.name},
                   {"ranks", plan.ranks},
                   {"machine", machine.name},
                   {"blocks", Json::array()}};
  for (const BlockExplanation& block : blocks)
    document["blocks"].push_back(to_json(network, block));
  if (!options.output.empty()) write_file_atomically(options.output, document.dump(1) + "\n");
  if (options.json) {
    fmt::print("{}\n", document.dump());
  } else {
    print(planned, blocks, !options.layer.empty());
  }
}

}  // namespace

void add_explain(CLI::App& program, const CommandLine&) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = program.add_subcommand("explain",
                                             "Why each layer is split as it is: the costs of its "
                                             "decomposition and of the next best ones");
  command->add_option("PLAN", options->plan, "plan.json")->required();
  command->add_option("LAYER", options->layer,
                      "explain only this layer, and simulate each of its next best decompositions");
  add_plan_machine(*command, options->machine);
  add_software(*command, options->software, true);
  command->add_option("--others", options->others, "number of next best decompositions to show")
      ->check(positive())
      ->capture_default_str();
  command->add_option("-o,--output", options->output, "also write the JSON to this file");
  add_json(*command, options->json);
  command->footer(
      "Examples:\n  stratplan explain plan.json\n  stratplan explain plan.json conv5 -m lassen "
      "--others 10\n  stratplan explain plan.json --json -o "
      "why.json");
  command->callback([options] { explain_and_print(*options); });
}

}  // namespace stratplan
