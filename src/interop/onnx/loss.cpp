#include "interop/onnx/loss.hpp"

#include <fmt/format.h>

#include "interop/onnx/operators/operators.hpp"

namespace stratplan::interop {
namespace {

/// Whether a layer of this kind ends models that give a score to each class.
bool ends_in_scores(LayerKind kind) {
  return is_contraction(kind) || kind == LayerKind::GlobalAveragePool || kind == LayerKind::Add;
}

}  // namespace

bool keeps_scores(const Draft& layer, const Draft& input_of_model) {
  constexpr std::int64_t most_channels_of_images = 4;
  const std::int64_t channels = layer.output[Axis::C];
  const bool is_image =
      channels <= most_channels_of_images && channels == input_of_model.output[Axis::C];
  const LayerKind kind = layer.type.kind;
  return layer.is_arithmetic ||
         ((kind == LayerKind::Upsample || kind == LayerKind::Pad) && !is_image);
}

ChosenLoss chosen_loss(const std::optional<ImportedLoss>& asked, const Draft& last,
                       const std::string& joined) {
  if (asked) return {*asked, "--loss asks for it"};
  if (!joined.empty())
    return {{LayerKind::SoftmaxCrossEntropy},
            fmt::format("the model ends in a softmax, {}", joined)};
  const std::int64_t channels = last.output[Axis::C];
  const std::string end = fmt::format("the model ends in {} ({}) with {} channels", last.name,
                                      name_of(last.type), channels);
  if (ends_in_scores(last.type.kind) && channels > 1)
    return {{LayerKind::SoftmaxCrossEntropy}, end + ", as scores of classes do"};
  return {{LossFunction::MeanSquaredError}, end};
}

bool joins_loss(const Operation& op, const LossOfOutput& loss) {
  if (op.node.output(0) != loss.output || op.graph.readers.at(loss.output) != 1) return false;
  const LayerType type = loss.loss ? loss.loss->type : LayerKind::SoftmaxCrossEntropy;
  if (op.node.op() == "Sigmoid") return type == LossFunction::SigmoidCrossEntropy;
  const bool softmax = op.node.op() == "Softmax" || op.node.op() == "LogSoftmax";
  return softmax && is_over_channels(op) &&
         (type == LayerKind::SoftmaxCrossEntropy || type == LayerKind::DiceCrossEntropy);
}

}  // namespace stratplan::interop
