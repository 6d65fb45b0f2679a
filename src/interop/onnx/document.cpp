#include "interop/onnx/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "interop/onnx/operators/operation.hpp"
#include "model/base/text.hpp"

namespace stratplan::interop {
namespace {

bool takes_statistics_of_batches(const Draft& draft) {
  return draft.batch_statistics && draft.attributes.value("statistics", "batch") == "batch";
}

/// Returns the momentum of the first batch normalization that keeps running statistics, else 0.
double usual_momentum(const Graph& graph) {
  for (const Draft& draft : graph.drafts)
    if (const double momentum = draft.attributes.value("momentum", 0.0); momentum > 0)
      return momentum;
  return 0;
}

Json layer_of(const Graph& graph, std::size_t index, const ParameterTable& parameters,
              double momentum) {
  const Draft& draft = graph.drafts[index];
  Json layer{{"name", draft.name}, {"kind", name_of(draft.type)}};
  if (joins(draft.type.kind)) {
    layer["inputs"] = Json::array();
    for (const std::size_t input : draft.inputs)
      layer["inputs"].push_back(graph.drafts[input].name);
  } else if (!draft.inputs.empty() && draft.inputs[0] + 1 != index) {
    layer["input"] = graph.drafts[draft.inputs[0]].name;
  }
  layer.update(draft.attributes);
  if (layer.value("momentum", -1.0) == momentum) layer.erase("momentum");
  if (Json names = parameters.names(index); !names.empty()) layer["parameters"] = std::move(names);
  return layer;
}

Json statistics_of(const std::string& asked) {
  return asked == "all" || asked == "local" ? Json(asked) : Json(std::stoll(asked));
}

}  // namespace

void settle_statistics(Graph& graph, std::vector<std::string>& notes) {
  std::int64_t batch = 0, running = 0;
  for (const Draft& draft : graph.drafts)
    if (draft.batch_statistics) ++(*draft.batch_statistics ? batch : running);
  if (batch == 0 && running > 0)
    notes.push_back(fmt::format(
        "{}: exported for inference; all train with the statistics of the batch, as modules in "
        "training mode do",
        counted(running, "batch normalization")));
  if (batch == 0) return;
  for (Draft& draft : graph.drafts)
    if (draft.batch_statistics && !*draft.batch_statistics)
      draft.attributes["statistics"] = "running";
}

std::string evidence_of_folding(const Graph& graph) {
  const bool normalizes =
      std::any_of(graph.drafts.begin(), graph.drafts.end(),
                  [](const Draft& draft) { return draft.batch_statistics.has_value(); });
  if (normalizes || graph.folded == 0) return "";
  return fmt::format(
      "the exporter has folded other layers into {}, probably batch normalization; predictions "
      "then "
      "lack its time and its sums between ranks, and training lacks its effect; export the model "
      "for training (PyTorch: training=TrainingMode.TRAINING, do_constant_folding=False, and from "
      "version 2.9 on dynamo=False)",
      counted(graph.folded, "convolution"));
}

std::string cost_of_statistics(const Graph& graph) {
  std::int64_t layers = 0, doubles = 0;
  for (const Draft& draft : graph.drafts) {
    if (!takes_statistics_of_batches(draft)) continue;
    ++layers;
    doubles += 2 * draft.output[Axis::C];
  }
  if (layers == 0) return "";
  const std::string& asked = graph.request().statistics;
  if (asked == "local")
    return fmt::format(
        "{} over each rank's own samples and positions, without communication; the numbers depend "
        "on the plan; --statistics changes this",
        counted(layers, "batch normalization"));
  return fmt::format(
      "{} over {}; each costs an all-reduce of 2 C doubles forward and one backward among the "
      "ranks "
      "that share the statistics, together {} of {} per step; --statistics "
      "changes this",
      counted(layers, "batch normalization"),
      asked == "all" ? "the whole batch, as the module does on one device" : asked + " samples",
      counted(2 * layers, "all-reduce"), readable({2 * doubles * 8}));
}

Json document_of(const Graph& graph, const Model& model, const ParameterTable& parameters,
                 const Json& buffers) {
  const ImportRequest& request = graph.request();
  const std::string stem = std::filesystem::path(request.file).stem().string();
  const std::string producer =
      model.producer().empty() ? "" : ", written by " + printable(model.producer());
  Json document{
      {"schema_version", 2},
      {"name", printable(stem)},
      {"description", fmt::format("From an ONNX model, opset {}{}", model.opset(), producer)},
      {"batch", request.batch.value_or(graph.samples())}};
  const double momentum = usual_momentum(graph);
  if (std::any_of(graph.drafts.begin(), graph.drafts.end(),
                  [](const Draft& draft) { return draft.batch_statistics.has_value(); }))
    document["statistics_samples"] = statistics_of(request.statistics);
  if (momentum > 0) document["running_momentum"] = momentum;
  document["layers"] = Json::array();
  for (std::size_t i = 0; i < graph.drafts.size(); ++i)
    document["layers"].push_back(layer_of(graph, i, parameters, momentum));
  if (Json described = parameters.described(); !described.empty())
    document["parameters"] = std::move(described);
  for (const Draft& draft : graph.drafts)
    if (!draft.opaque.empty())
      document["opaque"].push_back({{"layer", draft.name}, {"operator", printable(draft.opaque)}});
  if (!buffers.empty()) document["buffers"] = buffers;
  return document;
}

}  // namespace stratplan::interop
