// stratplan predict: predicted time and memory of a plan, by layer.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/input_option.hpp"
#include "cli/options.hpp"
#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
#include "model/plan/plan.hpp"
#include "report/input_report.hpp"
#include "report/prediction.hpp"
#include "report/ranges.hpp"

namespace stratplan {
namespace {

struct PredictOptions {
  std::string plan;
  std::string machine;
  std::string software;
  bool ideal = false;
  std::string input;
  bool json = false;
};

Json layer_to_json(const Layer& layer, const Decomposition& decomposition, const LayerTimes& times,
                   const Range& range, const KernelCount& kernels) {
  return {{"name", layer.name},
          {"decomposition", decomposition.text()},
          {"predicted_seconds", times.total().value},
          {"predicted_seconds_range", to_json(range)},
          {"compute_seconds", times.compute.value},
          {"exchange_seconds", times.exchange.value},
          {"collective_seconds", times.collective.value},
          {"kernels", kernels.all},
          {"unmeasured_kernels", kernels.all - kernels.measured}};
}

Json to_json(const PlanAndNetwork& planned, const PlanPrediction& prediction,
             const std::optional<InputFindings>& input) {
  Json layers = Json::array();
  for (LayerIndex i = 0; i < planned.network.size(); ++i) {
    if (planned.network.layer(i).is_data()) continue;
    const auto index = static_cast<std::size_t>(i);
    layers.push_back(layer_to_json(planned.network.layer(i), planned.plan.layers[index],
                                   prediction.layers[index], prediction.layer_ranges[index],
                                   prediction.layer_kernels[index]));
  }
  Json document = {{"name", planned.plan.name},
                   {"ranks", planned.plan.ranks},
                   {"software", planned.plan.software}};
  put_prediction(document, prediction.whole);
  document.update({{"memory", memory_to_json(prediction.memory)},
                   {"memory_reserve_bytes", prediction.reserve.value},
                   {"fit", name_of(prediction.fit())},
                   {"kernels", prediction.kernels.all},
                   {"unmeasured_kernels", prediction.kernels.all - prediction.kernels.measured},
                   {"layers", layers}});
  if (input) document["input"] = to_json(*input);
  return document;
}

Table layer_table(const PlanAndNetwork& planned, const PlanPrediction& prediction) {
  using enum Table::Align;
  Table table{
      {{"layer", Left}, {"decomposition", Left}, {"ms"}, {"compute"}, {"exchange"}, {"collective"}},
      {}};
  const bool mixed =
      prediction.kernels.measured > 0 && prediction.kernels.measured < prediction.kernels.all;
  if (mixed) table.columns.push_back({"kernels", Left});
  for (LayerIndex i = 0; i < planned.network.size(); ++i) {
    if (planned.network.layer(i).is_data()) continue;
    const auto index = static_cast<std::size_t>(i);
    const LayerTimes& times = prediction.layers[index];
    table.rows.push_back({planned.network.layer(i).name, planned.plan.layers[index].text(),
                          with_range(times.total(), prediction.layer_ranges[index]),
                          milliseconds(times.compute), milliseconds(times.exchange),
                          milliseconds(times.collective)});
    if (mixed) table.rows.back().push_back(kernels_text(prediction.layer_kernels[index]));
  }
  return table;
}

constexpr const char* layers_legend =
    R"(Milliseconds, the mean over the ranks. Messages count in full, even beside kernels.
compute: kernels and loads, with what loads wait for samples. exchange: halos and redistributions.
collective: sums of gradients, statistics and partial results.
)";

void predict(const PredictOptions& options) {
  PlanAndNetwork planned = read_plan(options.plan);
  MachineProfile machine = read_machine_aloud(options.machine, planned.plan, options.software);
  if (options.ideal) machine = with_ideal_scaling(std::move(machine));
  set_input(machine, options.input, planned.plan, options.plan);
  const PlanPrediction prediction = predict_plan(planned.plan, planned.network, machine);
  const std::optional<InputFindings> input =
      input_findings(prediction.programs, machine, prediction.whole.step);
  if (options.json) {
    fmt::print("{}\n", to_json(planned, prediction, input).dump());
    return;
  }
  fmt::print("{}{}\n", to_text(layer_table(planned, prediction)), layers_legend);
  fmt::print("step    {} predicted, {}; {}, batch {}, run by {}\n",
             step_text(prediction.whole, " ms"), tier_text(prediction.whole),
             counted(planned.plan.ranks, "rank"), planned.network.batch, planned.plan.software);
  fmt::print("input   {}\nkernels {}\n", input_text(input), kernels_text(prediction.kernels));
  fmt::print("memory  {} on the rank that needs most{}\n{}", memory_text(prediction.whole),
             fit_text(prediction.fit(), prediction.reserve),
             to_text(memory_table(prediction.memory, prediction.reserve)));
}

}  // namespace

void add_predict(CLI::App& program, const CommandLine&) {
  auto options = std::make_shared<PredictOptions>();
  CLI::App* command = program.add_subcommand(
      "predict", "Predict time and memory of a plan, by layer; measures nothing");
  command->add_option("PLAN", options->plan, "plan.json")->required();
  add_plan_machine(*command, options->machine);
  add_software(*command, options->software, true);
  add_ideal(*command, options->ideal);
  add_input(*command, options->input);
  add_json(*command, options->json);
  command->footer(
      "Examples:\n  stratplan predict plan.json\n  stratplan predict plan.json -m lassen --json");
  command->callback([options] { predict(*options); });
}

}  // namespace stratplan
