// Imports an ONNX model as a network.json document: translates the nodes that the model's first
// output needs, one after the other, and then adds a loss.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "interop/onnx/fold.hpp"
#include "interop/onnx/operators.hpp"
#include "model/base/error.hpp"

namespace stratplan {
namespace interop {
namespace {

class Importer {
 public:
  explicit Importer(const ImportRequest& request)
      : request_(request), model_(request.file), graph_(model_, request, constants_) {}

  ImportedModel run() {
    if (model_.outputs().empty())
      throw InputError(request_.file, "", "expected an output of the graph, found none");
    output_ = model_.outputs()[0];
    find_needed();
    check_element_wise();
    read_constants();
    for (const Node* node : needed_) translate(*node);
    if (!complaints_.empty())
      throw InputError(
          request_.file, "",
          fmt::format(
              "{} that no layer computes: {}",
              complaints_.size() == 1 ? "a node" : fmt::format("{} nodes", complaints_.size()),
              fmt::join(complaints_, "; ")));
    add_loss();
    drop_unread();
    tell_what_was_left_out();
    return finish();
  }

 private:
  /// Finds the nodes on which the output depends, in the model's order. Counts how often these
  /// nodes read each tensor.
  void find_needed() {
    std::set<std::string> wanted{output_};
    graph_.readers[output_] = 1;
    for (auto node = model_.nodes().rbegin(); node != model_.nodes().rend(); ++node) {
      bool makes = false;
      for (int i = 0; i < node->outputs(); ++i)
        makes = makes || (!node->output(i).empty() && wanted.contains(node->output(i)));
      if (!makes) continue;
      needed_.push_back(&*node);
      for (int i = 0; i < node->outputs(); ++i) made_.insert(node->output(i));
      const bool looks = node->op() != "Shape" && node->op() != "Size";
      for (int i = 0; i < node->inputs(); ++i) {
        wanted.insert(node->input(i));
        if (looks) ++graph_.readers[node->input(i)];
      }
    }
    std::reverse(needed_.begin(), needed_.end());
    if (needed_.empty())
      throw InputError(request_.file, "", fmt::format("no node makes the output {}", output_));
  }

  void check_element_wise() const {
    for (const std::string& name : request_.element_wise)
      if (std::none_of(needed_.begin(), needed_.end(),
                       [&](const Node* node) { return node->name() == name; }))
        throw InputError(request_.file, "",
                         fmt::format("there is no node {} to treat as element-wise among those "
                                     "that the output needs",
                                     name));
  }

  void read_constants() {
    try {
      for (const auto& [name, constant] : model_.constants(constants_))
        graph_.define(name, constant);
    } catch (const Inexpressible& reason) {
      throw InputError(request_.file, "", reason.reason);
    }
  }

  bool is_element_wise(const Node& node) const {
    return std::find(request_.element_wise.begin(), request_.element_wise.end(), node.name()) !=
           request_.element_wise.end();
  }

  /// Translates one node. Records a failure in complaints_, so that one message names all failures.
  /// Skips a node that depends on a failed node.
  void translate(const Node& node) {
    const std::string described = printable(
        fmt::format("{} ({}{}, opset {})", node.name(),
                    node.domain().empty() ? "" : node.domain() + "::", node.op(), model_.opset()));
    try {
      if (!folds(node) && translation_of(node) == nullptr && !is_element_wise(node)) {
        complaints_.push_back(described);
        return;
      }
      for (int i = 0; i < node.inputs(); ++i)
        if (!node.input(i).empty() && !graph_.knows(node.input(i)) && made_.contains(node.input(i)))
          return;
      constants_.begin(described);
      compute(node);
    } catch (const Inexpressible& why) {
      complaints_.push_back(fmt::format("{}: {}", described, why.reason));
    }
  }

  void compute(const Node& node) {
    const Operation op(node, model_.opset(), graph_);
    if (is_element_wise(node)) {
      notes_.push_back(fmt::format(
          "{} ({}) is taken for an element-wise layer: its time is about right, its values are not",
          node.name(), node.op()));
      return element_wise(op);
    }
    if (folds(node))
      if (const auto inputs = constants_of(node))
        return graph_.define(node.output(0), fold(node, *inputs, constants_));
    const Translation translation = translation_of(node);
    need(translation != nullptr, "expected constants as its inputs, found a computed tensor");
    if (is_softmax_of_the_loss(op)) {
      softmax_ = node.name();
      return identity(op);
    }
    translation(op);
  }

  /// Returns the node's inputs if all are constants, else nothing. For Shape and Size, a tensor
  /// that is not constant is replaced by a constant with its extents and without values.
  std::optional<std::vector<std::optional<Constant>>> constants_of(const Node& node) {
    std::vector<std::optional<Constant>> inputs;
    const bool asks_for_shape = node.op() == "Shape" || node.op() == "Size";
    for (int i = 0; i < node.inputs(); ++i) {
      const std::string& name = node.input(i);
      inputs.push_back(name.empty() ? std::nullopt : graph_.constant(name));
      if (inputs.back() || name.empty()) continue;
      if (!asks_for_shape) return {};
      inputs.back() = constants_.stored(graph_.tensor(name).dims, false, [] { return Values(); });
    }
    return inputs;
  }

  /// Whether the node is a softmax at the model's end that becomes part of the cross-entropy.
  bool is_softmax_of_the_loss(const Operation& op) const {
    const bool softmax = op.node.op() == "Softmax" || op.node.op() == "LogSoftmax";
    const bool joins_loss =
        request_.loss == ImportedLoss::FromModel || request_.loss == ImportedLoss::CrossEntropy;
    return softmax && joins_loss && op.node.output(0) == output_ && is_over_channels(op);
  }

  // ---------------------------------------------------------------- loss and document

  LayerKind guessed_loss(const Draft& last) const {
    const bool scores = is_contraction(last.type.kind) ||
                        last.type.kind == LayerKind::GlobalAveragePool ||
                        last.type.kind == LayerKind::Add;
    return !softmax_.empty() || (scores && last.output[Axis::C] > 1)
               ? LayerKind::SoftmaxCrossEntropy
               : LayerKind::MeanSquaredError;
  }

  void add_loss() {
    const auto constant = graph_.constant(output_);
    if (constant)
      throw InputError(
          request_.file, "",
          fmt::format("the output {} is a constant, so there is nothing to train", output_));
    const Tensor end = graph_.tensor(output_);
    const Draft& last = graph_.drafts[end.draft];
    LayerKind kind = guessed_loss(last);
    if (request_.loss == ImportedLoss::CrossEntropy) kind = LayerKind::SoftmaxCrossEntropy;
    if (request_.loss == ImportedLoss::MeanSquaredError) kind = LayerKind::MeanSquaredError;
    if (request_.loss == ImportedLoss::Dice) kind = LayerKind::DiceLoss;
    if (!softmax_.empty())
      notes_.push_back(
          fmt::format("the softmax at the end, {}, is part of the loss that was added, {}",
                      softmax_, name_of(kind)));
    else
      notes_.push_back(fmt::format("a loss was added behind {}: {}", last.name, name_of(kind)));
    Draft loss{"loss", kind, {end.draft}, last.output, Json::object(), {}};
    graph_.add(std::move(loss), 2);
  }

  /// Drops the layers on which the loss does not depend. The model used only their shapes.
  void drop_unread() {
    std::vector<bool> read(graph_.drafts.size(), false);
    read.back() = true;
    for (std::size_t i = graph_.drafts.size(); i-- > 0;)
      if (read[i])
        for (const std::size_t input : graph_.drafts[i].inputs) read[input] = true;
    std::vector<std::size_t> place(graph_.drafts.size(), 0);
    std::vector<Draft> kept;
    for (std::size_t i = 0; i < graph_.drafts.size(); ++i) {
      if (!read[i]) continue;
      place[i] = kept.size();
      for (std::size_t& input : graph_.drafts[i].inputs) input = place[input];
      kept.push_back(std::move(graph_.drafts[i]));
    }
    graph_.drafts = std::move(kept);
  }

  bool any(LayerKind kind) const {
    return std::any_of(graph_.drafts.begin(), graph_.drafts.end(),
                       [kind](const Draft& draft) { return draft.type.kind == kind; });
  }

  void tell_what_was_left_out() {
    const std::vector<std::string> outputs = model_.outputs();
    if (outputs.size() > 1)
      notes_.push_back(fmt::format(
          "the model's first output, {}, is trained; the other outputs are left out: {}", output_,
          fmt::join(std::vector<std::string>(outputs.begin() + 1, outputs.end()), ", ")));
    if (!request_.batch && graph_.samples() == 1)
      notes_.push_back(
          "the model's batch of 1 is kept: a step takes one sample, on all ranks together; --batch "
          "sets another batch");
    const bool biased =
        std::any_of(graph_.drafts.begin(), graph_.drafts.end(), [](const Draft& draft) {
          return draft.type.kind == LayerKind::Convolution && draft.attributes.value("bias", false);
        });
    if (biased && !any(LayerKind::BatchNorm))
      notes_.push_back(
          "convolutions have biases and there is no batch normalization, perhaps because an export "
          "for inference folded it into the convolutions; predictions then lack its time and its "
          "sums between ranks; if the model was trained with batch normalization, export it for "
          "training (PyTorch: "
          "training=TrainingMode.TRAINING, do_constant_folding=False)");
  }

  Json layer_of(std::size_t index) const {
    const Draft& draft = graph_.drafts[index];
    Json layer{{"name", draft.name}, {"kind", name_of(draft.type)}};
    if (joins(draft.type.kind)) {
      layer["inputs"] = Json::array();
      for (const std::size_t input : draft.inputs)
        layer["inputs"].push_back(graph_.drafts[input].name);
    } else if (!draft.inputs.empty() && draft.inputs[0] + 1 != index) {
      layer["input"] = graph_.drafts[draft.inputs[0]].name;
    }
    layer.update(draft.attributes);
    return layer;
  }

  ImportedModel finish() {
    const std::string stem = std::filesystem::path(request_.file).stem().string();
    const std::string producer =
        model_.producer().empty() ? "" : ", written by " + printable(model_.producer());
    Json document{
        {"schema_version", 1},
        {"name", printable(stem)},
        {"description", fmt::format("From an ONNX model, opset {}{}", model_.opset(), producer)},
        {"batch", request_.batch.value_or(graph_.samples())}};
    if (any(LayerKind::BatchNorm)) {
      document["statistics_samples"] = 32;
      document["running_momentum"] = graph_.running_momentum > 0 ? graph_.running_momentum : 0.1;
    }
    document["layers"] = Json::array();
    for (std::size_t i = 0; i < graph_.drafts.size(); ++i)
      document["layers"].push_back(layer_of(i));
    for (std::string& note : notes_) note = printable(note);
    ImportedModel imported{std::move(document), std::move(notes_), {}};
    if (request_.values) imported.weights = weights();
    return imported;
  }

  std::vector<ImportedTensor> weights() const {
    std::vector<ImportedTensor> tensors;
    for (const Draft& draft : graph_.drafts)
      for (const Parameter& parameter : draft.parameters) {
        const std::string name = draft.name + "." + parameter.name;
        try {
          tensors.push_back({name, parameter.shape, parameter.values.floats()});
          need(parameter.values.elements() == elements_of(parameter.shape),
               fmt::format("expected {} values, found {}", elements_of(parameter.shape),
                           parameter.values.elements()));
        } catch (const Inexpressible& why) {
          throw InputError(request_.file, "", fmt::format("{}: {}", name, why.reason));
        }
      }
    return tensors;
  }

  const ImportRequest& request_;
  const Model model_;
  Constants constants_;
  Graph graph_;
  std::string output_;   ///< the output that is trained
  std::string softmax_;  ///< the softmax node that became part of the loss; empty: none
  std::vector<const Node*> needed_;
  std::set<std::string> made_;  ///< outputs of the needed nodes
  std::vector<std::string> complaints_, notes_;
};

}  // namespace
}  // namespace interop

ImportedModel import_onnx(const ImportRequest& request) {
  try {
    return interop::Importer(request).run();
  } catch (const interop::Inexpressible& reason) {
    throw InputError(request.file, "", reason.reason);
  }
}

bool onnx_built() { return true; }

}  // namespace stratplan
