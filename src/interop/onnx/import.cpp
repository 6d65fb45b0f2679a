// Imports an ONNX model as a network.json document: translates the nodes that the trained outputs
// need, one after the other, and then adds the losses.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "interop/onnx/complaints.hpp"
#include "interop/onnx/document.hpp"
#include "interop/onnx/fold.hpp"
#include "interop/onnx/loss.hpp"
#include "interop/onnx/operators/operators.hpp"
#include "interop/onnx/stand_ins.hpp"
#include "model/base/error.hpp"
#include "model/base/suggestion.hpp"
#include "model/base/text.hpp"

namespace stratplan {
namespace interop {
namespace {

class Importer : public std::enable_shared_from_this<Importer> {
 public:
  explicit Importer(const ImportRequest& request)
      : request_(request),
        model_(request.file),
        decisions_(request_),
        graph_(model_, request_, constants_, decisions_),
        complaints_(model_.opset()),
        stand_ins_(graph_, model_) {}

  ImportedModel run() {
    if (model_.outputs().empty())
      throw InputError(request_.file, "", "expected an output of the graph, found none");
    choose_outputs();
    read_constants();
    find_varying();
    find_needed();
    check_element_wise();
    find_literal_weights();
    for (const Node* node : needed_) translate(*node);
    if (!complaints_.empty()) throw InputError(request_.file, "", complaints_.message());
    for (const LossOfOutput& loss : losses_) add_loss(loss);
    drop_unread();
    for (Draft& draft : graph_.drafts) settle_constants(graph_, draft);
    settle_statistics(graph_, notes_);
    tell_what_was_left_out();
    return finish();
  }

 private:
  // ---------------------------------------------------------------- which nodes

  /// Chooses the outputs that are trained: those of the request, or the first one.
  void choose_outputs() {
    const std::vector<std::string> outputs = model_.outputs();
    losses_ = request_.losses;
    if (losses_.empty()) losses_.push_back({"", request_.loss});
    for (LossOfOutput& loss : losses_) {
      if (loss.output.empty()) loss.output = outputs[0];
      if (std::find(outputs.begin(), outputs.end(), loss.output) == outputs.end())
        throw InputError(
            request_.file, "",
            fmt::format("--loss: the model has no output {}{}; its outputs are {}", loss.output,
                        suggestion(loss.output, outputs), fmt::join(outputs, ", ")));
    }
  }

  bool is_trained(const std::string& output) const {
    return std::any_of(losses_.begin(), losses_.end(),
                       [&](const LossOfOutput& loss) { return loss.output == output; });
  }

  void read_constants() {
    initializers_ = model_.constants(constants_);
    for (const auto& [name, constant] : initializers_) graph_.define(name, constant);
  }

  /// Finds the tensors that differ from step to step: those that depend on the graph's inputs, and
  /// noise.
  void find_varying() {
    for (const GraphInput& input : model_.inputs()) varying_.insert(input.name);
    for (const Node& node : model_.nodes()) {
      if (node.op() == "Shape" || node.op() == "Size") continue;
      bool varies = node.op().starts_with("Random") || node.op() == "Bernoulli";
      for (int i = 0; i < node.inputs(); ++i) varies = varies || varying_.contains(node.input(i));
      if (varies)
        for (int i = 0; i < node.outputs(); ++i) varying_.insert(node.output(i));
    }
  }

  /// Whether a node's output depends on its input. While training, the statistics that come into a
  /// batch normalization do not change its output. Exporters compute them from the batch if the
  /// module keeps none.
  bool reads(const Node& node, int input) const {
    return !(node.op() == "BatchNormalization" && input >= 3 &&
             varying_.contains(node.input(input)) &&
             is_exported_for_training(node, model_.opset()));
  }

  /// Finds the nodes on which the trained outputs depend, in the model's order. Counts how often
  /// these nodes and the losses read each tensor.
  void find_needed() {
    std::set<std::string> wanted;
    for (const LossOfOutput& loss : losses_) {
      wanted.insert(loss.output);
      ++graph_.readers[loss.output];
    }
    for (auto node = model_.nodes().rbegin(); node != model_.nodes().rend(); ++node) {
      bool makes = false;
      for (int i = 0; i < node->outputs(); ++i)
        makes = makes || (!node->output(i).empty() && wanted.contains(node->output(i)));
      if (!makes) continue;
      needed_.push_back(&*node);
      for (int i = 0; i < node->outputs(); ++i) made_.insert(node->output(i));
      const bool looks = node->op() != "Shape" && node->op() != "Size";
      for (int i = 0; i < node->inputs(); ++i) {
        if (!reads(*node, i)) continue;
        wanted.insert(node->input(i));
        if (looks && !(node->op() == "CastLike" && i == 1)) ++graph_.readers[node->input(i)];
      }
    }
    std::reverse(needed_.begin(), needed_.end());
    for (const LossOfOutput& loss : losses_)
      if (!made_.contains(loss.output))
        throw InputError(request_.file, "",
                         fmt::format("no node makes the output {}", loss.output));
  }

  /// Finds whether most layers' weights are literals.
  void find_literal_weights() {
    std::set<std::string> literals;
    int balance = 0;  // layers with weights that are literals, without those of initializers
    for (const Node* node : needed_) {
      const std::string& op = node->op();
      bool views = op == "Transpose" || op == "Reshape" || op == "Identity" || op == "Cast";
      views = views && literals.contains(node->input(0));
      if (op == "Constant" || op == "ConstantOfShape" || views) literals.insert(node->output(0));
      const bool contracts =
          op == "Conv" || op == "ConvTranspose" || op == "Gemm" || op == "MatMul";
      if (contracts && !varying_.contains(node->input(1)))
        balance += literals.contains(node->input(1)) ? 1 : -1;
    }
    graph_.has_literal_weights = balance > 0;
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

  bool is_element_wise(const Node& node) const {
    return std::find(request_.element_wise.begin(), request_.element_wise.end(), node.name()) !=
           request_.element_wise.end();
  }

  // ---------------------------------------------------------------- one node

  /// Translates one node. Keeps a failure in complaints_, so that one message names all failures.
  void translate(const Node& node) {
    try {
      if (!folds(node) && translation_of(node) == nullptr && !is_element_wise(node))
        throw Inexpressible{""};
      for (int i = 0; i < node.inputs(); ++i)
        if (!node.input(i).empty() && !graph_.knows(node.input(i)) && made_.contains(node.input(i)))
          return complaints_.skip();
      constants_.begin(described(node, model_.opset()));
      compute(node);
      if (stand_ins_.reads_guess(node)) stand_ins_.add_guesses(node);
    } catch (const Inexpressible& why) {
      if (why.reason.empty() || !stand_ins_.reads_guess(node))
        complaints_.add(node, why.reason);
      else
        complaints_.skip();
      stand_ins_.add(node, varying_);
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
        return graph_.define(node.output(0), folded(node, *inputs));
    check_varies(node);
    const Translation translation = translation_of(node);
    need(translation != nullptr, "expected constants as its inputs, found a computed tensor");
    for (const LossOfOutput& loss : losses_)
      if (joins_loss(op, loss)) {
        joined_[loss.output] = {node.name(), node.op() == "Sigmoid" ? "sigmoid" : "softmax"};
        return identity(op);
      }
    translation(op);
  }

  /// Throws if the node computes a constant from parameters, such as the norm of weights.
  void check_varies(const Node& node) const {
    std::vector<std::string> tensors;
    for (int i = 0; i < node.inputs(); ++i) {
      if (varying_.contains(node.input(i))) return;
      if (const auto constant = graph_.constant(node.input(i)))
        for (const std::string& tensor : constant->tensors()) tensors.push_back(tensor);
    }
    need(tensors.empty(), fmt::format("it computes with the model's tensors {} alone, which no "
                                      "layer repeats in training",
                                      fmt::join(tensors, ", ")));
  }

  /// Returns the node's inputs if all are constants, else nothing. For Shape and Size, and for the
  /// type that CastLike reads, a tensor that is not constant is replaced by a constant with its
  /// extents and without values.
  std::optional<std::vector<std::optional<Constant>>> constants_of(const Node& node) {
    std::vector<std::optional<Constant>> inputs;
    const bool asks_for_shape = node.op() == "Shape" || node.op() == "Size";
    for (int i = 0; i < node.inputs(); ++i) {
      const std::string& name = node.input(i);
      inputs.push_back(name.empty() ? std::nullopt : graph_.constant(name));
      if (inputs.back() || name.empty()) continue;
      if (!asks_for_shape && !(node.op() == "CastLike" && i == 1)) return {};
      inputs.back() = constants_.stored(graph_.tensor(name).dims, false, [] { return Values(); });
    }
    return inputs;
  }

  /// Computes a constant. PyTorch's exporter replaces an initializer by an Identity of another one
  /// with equal values. If all values are one number, as before training, two parameters were equal
  /// by chance. Else one parameter was used twice.
  Constant folded(const Node& node, const std::vector<std::optional<Constant>>& inputs) {
    const std::string& name = node.output(0);
    const bool renames = node.op() == "Identity" && inputs.size() == 1 && inputs[0] &&
                         !inputs[0]->tensor().empty() && !inputs[0]->integral() &&
                         (is_given(name) || name.starts_with("onnx::"));
    if (renames && is_filled(*inputs[0])) return constants_.twin(*inputs[0], name);
    if (renames && is_given(name))
      decisions_.report(
          fmt::format("{} and {} are one parameter, because the exporter found their values equal; "
                      "an export for training keeps different parameters apart",
                      name, inputs[0]->tensor()));
    return fold(node, inputs, constants_);
  }

  // ---------------------------------------------------------------- the whole network

  Tensor settled_output(const std::string& output) {
    try {
      Tensor end = graph_.settled(output);
      // Positions that the model takes for channels become channels.
      if (end.channels_last || end.dims.size() < 3 || end.dims[1] == 1 ||
          graph_.shape(end)[Axis::C] > 1)
        return end;
      return graph_.moved(output, end, whole_factors(graph_.shape(end), false)).value_or(end);
    } catch (const Inexpressible& why) {
      throw InputError(request_.file, "", "the model's output: " + why.reason);
    }
  }

  void add_loss(const LossOfOutput& asked) {
    const auto constant = graph_.constant(asked.output);
    if (constant)
      throw InputError(
          request_.file, "",
          fmt::format("the output {} is a constant, so there is nothing to train", asked.output));
    const Tensor end = settled_output(asked.output);
    const Draft& last = graph_.drafts[end.draft];
    const Draft* scores = &last;
    while (keeps_scores(*scores, graph_.drafts.front())) scores = &graph_.drafts[scores->inputs[0]];
    const auto found = joined_.find(asked.output);
    const Joined joined = found == joined_.end() ? Joined{} : found->second;
    const auto& [loss, reason] = chosen_loss(asked.loss, *scores, joined.node);
    if (!joined.node.empty())
      notes_.push_back(fmt::format("the {} at the end, {}, is part of the loss that was added, {}",
                                   joined.function, joined.node, name_of(loss.type)));
    else
      notes_.push_back(
          fmt::format("a loss was added behind {}: {}", last.name, name_of(loss.type)));
    Draft draft{losses_.size() == 1 ? "loss" : "loss_" + asked.output,
                loss.type,
                {end.draft},
                last.output,
                loss.attributes};
    std::string described(name_of(loss.type));
    for (const auto& [key, value] : loss.attributes.items())
      described += fmt::format(" ({} {})", key, value.dump());
    if (asked.weight != 1) draft.attributes["weight"] = asked.weight;
    const Tensor added = graph_.add(std::move(draft), 2);
    report_.losses.push_back({graph_.drafts[added.draft].name, described, reason});
  }

  /// Drops the layers on which no loss depends. The model used only their shapes.
  void drop_unread() {
    std::vector<bool> read(graph_.drafts.size(), false);
    for (std::size_t i = graph_.drafts.size(); i-- > 0;) {
      read[i] = read[i] || is_loss(graph_.drafts[i].type.kind);
      if (read[i])
        for (const std::size_t input : graph_.drafts[i].inputs) read[input] = true;
    }
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

  void tell_what_was_left_out() {
    std::vector<std::string> trained, others, unread_inputs;
    for (const std::string& output : model_.outputs())
      (is_trained(output) ? trained : others).push_back(output);
    if (!others.empty()) {
      const std::string names = fmt::format("{}", fmt::join(others, ", "));
      notes_.push_back(
          request_.losses.empty()
              ? fmt::format("the model's first output, {}, is trained; the other outputs are left "
                            "out: {}; --loss OUTPUT=auto, for each output to train, adds more "
                            "losses",
                            trained[0], names)
              : fmt::format("trained outputs: {}; left out: {}", fmt::join(trained, ", "), names));
      report_.left_out.push_back("outputs: " + names);
    }
    for (const GraphInput& input : model_.inputs())
      if (graph_.is_unused_input(input.name)) unread_inputs.push_back(input.name);
    if (!unread_inputs.empty())
      report_.left_out.push_back(fmt::format("inputs: {}", fmt::join(unread_inputs, ", ")));
    if (const auto unread = std::ssize(model_.nodes()) - std::ssize(needed_); unread > 0)
      report_.left_out.push_back(fmt::format("{} that the trained output{} not need",
                                             counted(unread, "node"),
                                             trained.size() == 1 ? " does" : "s do"));
    if (!request_.batch && graph_.samples() == 1)
      notes_.push_back(
          "the model's batch of 1 is kept: a step takes one sample, on all ranks together; --batch "
          "sets another batch");
    if (const std::string folding = evidence_of_folding(graph_); !folding.empty())
      notes_.push_back(folding);
  }

  ImportedModel finish() {
    for (const std::string& pattern : decisions_.unused())
      throw InputError(request_.file, "",
                       fmt::format("no tensor that a layer reads matches {}", pattern));
    const ParameterTable parameters(graph_, initializers_, merges_equals());
    std::vector<std::string> too_large;
    const Json buffers = request_.buffers ? parameters.buffers(too_large) : Json::array();
    ImportedModel imported;
    imported.network = document_of(graph_, model_, parameters, buffers);
    if (request_.values) imported.weights = parameters.weights(request_.file, shared_from_this());
    for (const std::string& name : too_large)
      report_.left_out.push_back(fmt::format("tensor {}, which no layer reads", name));
    report_.parameters = parameters.rows();
    report_.totals = parameters.totals(buffers);
    report_.statistics = cost_of_statistics(graph_);
    report_.decisions = decisions_.reported();
    for (auto* list : {&notes_, &report_.decisions, &report_.left_out})
      for (std::string& line : *list) line = printable(line);
    for (ImportReport::Loss& loss : report_.losses) loss.reason = printable(loss.reason);
    imported.notes = std::move(notes_);
    imported.report = std::move(report_);
    return imported;
  }

  /// Whether an exporter wrote the file that merges initializers of equal values without a trace:
  /// that of torch.export, unless it was told not to optimize. It names nodes "node_relu", and
  /// leaves no Constant.
  bool merges_equals() const {
    const auto any = [this](auto is) {
      return std::any_of(model_.nodes().begin(), model_.nodes().end(), is);
    };
    return any([](const Node& node) { return node.name().starts_with("node_"); }) &&
           !any([](const Node& node) { return node.op() == "Constant"; });
  }

  const ImportRequest request_;
  const Model model_;
  Constants constants_;
  Decisions decisions_;
  Graph graph_;
  std::map<std::string, Constant> initializers_;
  std::vector<LossOfOutput> losses_;  ///< the losses to add, with the names of their outputs
  /// The node at the end of an output that became part of the loss.
  struct Joined {
    std::string node, function;
  };
  std::map<std::string, Joined> joined_;  ///< by output
  std::vector<const Node*> needed_;
  std::set<std::string> made_;     ///< outputs of the needed nodes
  std::set<std::string> varying_;  ///< tensors that depend on the graph's inputs
  Complaints complaints_;
  StandIns stand_ins_;
  std::vector<std::string> notes_;
  ImportReport report_;
};

}  // namespace
}  // namespace interop

ImportedModel import_onnx(const ImportRequest& request) {
  try {
    return std::make_shared<interop::Importer>(request)->run();
  } catch (const interop::Inexpressible& reason) {
    throw InputError(request.file, "", reason.reason);
  }
}

bool onnx_built() { return true; }

}  // namespace stratplan
