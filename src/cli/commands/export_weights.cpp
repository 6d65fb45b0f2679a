// stratplan export-weights: the trained model of a checkpoint as the model's owner would load it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <filesystem>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/options.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
#include "report/table.hpp"
#include "runtime/io/export_weights.hpp"

namespace stratplan {
namespace {

struct ExportOptions {
  std::string checkpoint, output;
  bool json = false;
};

std::int64_t numbers_in(const ExportedWeights& weights) {
  std::int64_t numbers = 0;
  for (const NamedTensor& tensor : weights.tensors) numbers += std::ssize(tensor.values);
  return numbers;
}

void print(const ExportOptions& options, const ExportedWeights& weights) {
  if (options.json) {
    Json tensors = Json::array();
    for (const NamedTensor& tensor : weights.tensors)
      tensors.push_back({{"name", tensor.name}, {"shape", tensor.shape}});
    const Json printed{{"checkpoint", weights.checkpoint.string()},
                       {"network", weights.network},
                       {"step", weights.step},
                       {"output", options.output},
                       {"tensors", tensors},
                       {"notes", weights.notes}};
    fmt::print("{}\n", printed.dump(-1, ' ', false, Json::error_handler_t::replace));
    return;
  }
  const std::string text = fmt::format("{} after step {}: {}, {}", weights.network, weights.step,
                                       counted(std::ssize(weights.tensors), "tensor"),
                                       counted(numbers_in(weights), "number"));
  if (!options.output.empty()) return fmt::print("{}: {}\n", options.output, text);
  Table table{{{"tensor", Table::Align::Left}, {"shape", Table::Align::Left}}, {}};
  for (const NamedTensor& tensor : weights.tensors)
    table.rows.push_back({tensor.name, fmt::format("{}", fmt::join(tensor.shape, "x"))});
  fmt::print("{}\n\n{}\n-o model.safetensors writes them\n", text, to_text(table));
}

void export_checkpoint(const ExportOptions& options) {
  if (options.output == "-")
    throw UsageError("--output - is not possible: a safetensors file needs a name");
  check_output(options.output);
  const ExportedWeights weights = export_weights(options.checkpoint);
  std::error_code ignored;
  if (!options.output.empty() &&
      std::filesystem::equivalent(options.output, weights.checkpoint, ignored))
    throw UsageError(
        fmt::format("--output {} is the checkpoint itself, from which training could "
                    "then no longer continue; name another file",
                    options.output));
  for (const std::string& each : weights.notes) note(each);
  // Some readers of safetensors files ask for this key.
  if (!options.output.empty())
    write_safetensors(options.output, weights.tensors, {{"format", "pt"}});
  print(options, weights);
}

constexpr const char* export_footer =
    R"(Names, shapes and order are those of the imported model. Running statistics, frozen tensors
and buffers are included. PyTorch loads the file:
  model.load_state_dict(safetensors.torch.load_file("model.safetensors"), strict=True)
Examples:
  stratplan export-weights state
  stratplan export-weights state -o model.safetensors
  stratplan export-weights state/step-00000100.safetensors -o model.safetensors)";

}  // namespace

void add_export_weights(CLI::App& program, const CommandLine&) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = program.add_subcommand(
      "export-weights",
      "Write the model of a checkpoint to a safetensors file, under the model's own names");
  command
      ->add_option("CHECKPOINT", options->checkpoint,
                   "a checkpoint, or a folder of checkpoints, whose newest whole one is taken")
      ->required();
  command->add_option("-o,--output", options->output,
                      "write the tensors to this safetensors file; without it they are listed");
  add_json(*command, options->json);
  command->footer(export_footer);
  command->callback([options] { export_checkpoint(*options); });
}

}  // namespace stratplan
