// stratplan import: converts an ONNX model to network.json, and its weights to a safetensors file.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/loss_option.hpp"
#include "cli/options.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
#include "model/network/onnx.hpp"
#include "report/import_report.hpp"
#include "runtime/io/safetensors.hpp"

namespace stratplan {
namespace {

struct ImportOptions {
  std::string model;
  std::int64_t batch = 0;
  std::string input_size;
  std::vector<std::string> losses;
  std::string statistics = "all";
  std::vector<std::string> element_wise, constant, trainable, frozen;
  std::string weights;
  std::string output;
  bool verbose = false;
  bool json = false;
  bool operators = false;
};

ImportRequest request_of(const ImportOptions& options) {
  ImportRequest request{.file = options.model,
                        .element_wise = options.element_wise,
                        .values = !options.weights.empty(),
                        .buffers = true,
                        .constant = options.constant,
                        .trainable = options.trainable,
                        .frozen = options.frozen,
                        .statistics = options.statistics};
  for (const std::string& loss : options.losses) request.losses.push_back(parse_loss(loss));
  if (options.batch > 0) request.batch = options.batch;
  if (!options.input_size.empty()) request.input_size = parse_extents(options.input_size);
  return request;
}

void write_weights(const std::string& file, const std::vector<ImportedTensor>& weights) {
  std::vector<TensorSource> tensors;
  for (const ImportedTensor& tensor : weights)
    tensors.push_back({tensor.name, tensor.shape, tensor.values});
  write_safetensors(file, tensors, {{"format", "stratplan weights 1"}});
}

void print(const ImportOptions& options, const Network& network, const ImportReport& report) {
  const double gigaflops = network.forward_flops().value / static_cast<double>(network.batch) / 1e9;
  if (options.json) {
    Json printed{{"name", network.name},
                 {"network", options.output},
                 {"weights", options.weights},
                 {"layers", network.size()},
                 {"batch", network.batch},
                 {"parameters", network.parameter_count()},
                 {"forward_flops_per_sample", gigaflops * 1e9},
                 {"notes", network.notes},
                 {"report", to_json(report)}};
    fmt::print("{}\n", printed.dump(-1, ' ', false, Json::error_handler_t::replace));
    return;
  }
  fmt::print("{}: {}, {}, {:.4g} G operations forward per sample\n\n{}", network.name,
             counted(network.size(), "layer"), counted(network.parameter_count(), "parameter"),
             gigaflops, to_text(report, options.verbose));
  if (options.output.empty())
    fmt::print("\n-o net.json writes the network, --weights net.safetensors its weights\n");
}

void print_operators(const ImportOptions& options) {
  if (options.json)
    fmt::print("{}\n", operators_as_json().dump(1));
  else
    fmt::print("{}", to_text(operator_table()));
}

void import_model(const ImportOptions& options) {
  if (options.operators) return print_operators(options);
  const bool to_standard_output = options.output == "-";
  for (const std::string& file : {options.output, options.weights})
    if (file != "-") check_output(file);
  const ImportedModel model = import_onnx(request_of(options));
  const Network network = read_imported(model, options.model, {.accepts_opaque = true});
  for (const std::string& decision : network.notes)
    note(fmt::format("{}: {}", options.model, decision));
  if (!options.weights.empty()) write_weights(options.weights, model.weights);
  if (to_standard_output) {
    fmt::print("{}\n", model.network.dump(1));
    return;
  }
  if (!options.output.empty()) write_document(options.output, "network", model.network);
  print(options, network, model.report);
}

constexpr const char* import_footer =
    R"(Every command that takes a NETWORK takes model.onnx as well. Use import to see what becomes
of the model, to change what is trained, to choose another loss, or to keep the model's weights.
Export the model for training; otherwise exporters fold batch normalization into the convolutions.
In PyTorch (from version 2.9 on with dynamo=False):
  torch.onnx.export(model, x, "model.onnx", training=torch.onnx.TrainingMode.TRAINING,
                    do_constant_folding=False)
The options --constant, --trainable and --freeze take the name of a tensor in the model's file, or a
pattern with * and ?. They may be given again.
Examples:
  stratplan import model.onnx
  stratplan import model.onnx -o net.json
  stratplan import model.onnx -b 32 --input-size 256,256 -o net.json
  stratplan import model.onnx -o net.json --weights net.safetensors
  stratplan import model.onnx -o net.json --loss out=cross_entropy --loss aux=auto,weight=0.4
  stratplan import model.onnx -o net.json --freeze 'backbone.*' --constant scale
  stratplan plan net.json -n 2 -o plan.json
  stratplan run plan.json --forward --weights net.safetensors --data x.npy -o y.npy)";

}  // namespace

void add_import(CLI::App& program, const CommandLine&) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* command = program.add_subcommand(
      "import", "Convert an ONNX model to network.json, and its weights to a safetensors file");
  command->add_option("MODEL", options->model, "an .onnx file");
  command
      ->add_option("-b,--batch", options->batch,
                   "samples per step over all ranks; default: as in the model")
      ->check(extent());
  command->add_option("--input-size", options->input_size,
                      "extents of the network's input, H,W or D,H,W; default: as in the model");
  command->add_option("--loss", options->losses, loss_help())->allow_extra_args(false);
  command
      ->add_option("--statistics", options->statistics,
                   "samples over which batch normalization takes its statistics: a number, all, or "
                   "local (each rank's own)")
      ->check(statistics_set())
      ->capture_default_str();
  const auto add_pattern = [&](const char* name, std::vector<std::string>& patterns,
                               const char* meaning) {
    command->add_option(name, patterns, meaning)->allow_extra_args(false);
  };
  add_pattern("--constant", options->constant,
              "these tensors are constants: their values are part of the network");
  add_pattern("--trainable", options->trainable, "these tensors are parameters to train");
  add_pattern("--freeze", options->frozen, "these tensors are parameters that keep their values");
  command
      ->add_option(
          "--treat-as-elementwise", options->element_wise,
          "name of a node with an unknown operator. It is planned as if the operator were "
          "element-wise, so its values will be wrong and plan alone takes the network. The "
          "option may be given again")
      ->allow_extra_args(false);  // the argument after the node's name may be MODEL
  command->add_option("--weights", options->weights,
                      "also write the model's weights to this safetensors file");
  command->add_option("-o,--output", options->output,
                      "write network.json to this file, or to standard output if it is -");
  command->add_flag("--verbose", options->verbose, "list all parameters, not only unusual ones");
  command->add_flag("--operators", options->operators,
                    "print the operators that are imported, and the layers that they become");
  add_json(*command, options->json);
  command->footer(import_footer);
  command->callback([options] {
    if (options->model.empty() && !options->operators) throw CLI::RequiredError("MODEL");
    import_model(*options);
  });
}

}  // namespace stratplan
