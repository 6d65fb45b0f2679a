#include "interop/onnx/stand_ins.hpp"

#include <algorithm>

namespace stratplan::interop {
namespace {

/// Whether an operator that no layer computes has an output with its first input's extents.
bool keeps_extents(const Node& node) {
  static const std::set<std::string> all{"LayerNormalization",
                                         "RMSNormalization",
                                         "LpNormalization",
                                         "MeanVarianceNormalization",
                                         "GroupNormalization",
                                         "InstanceNormalization",
                                         "BatchNormalization",
                                         "LRN",
                                         "Sin",
                                         "Cos",
                                         "Tan",
                                         "Asin",
                                         "Acos",
                                         "Atan",
                                         "Sinh",
                                         "Cosh",
                                         "Round",
                                         "Sign",
                                         "Ceil",
                                         "Floor",
                                         "Not",
                                         "ThresholdedRelu",
                                         "Shrink",
                                         "Softsign",
                                         "HardSwish",
                                         "Mish",
                                         "Gelu",
                                         "Swish",
                                         "RandomUniformLike",
                                         "RandomNormalLike",
                                         "Bernoulli",
                                         "CumSum",
                                         "Softmax",
                                         "LogSoftmax",
                                         "Hardmax",
                                         "Clip",
                                         "Pow",
                                         "PRelu",
                                         "Dropout"};
  return node.domain().empty() && all.contains(node.op());
}

}  // namespace

bool StandIns::reads_guess(const Node& node) const {
  for (int i = 0; i < node.inputs(); ++i)
    if (guessed_.contains(node.input(i))) return true;
  return false;
}

void StandIns::add_guesses(const Node& node) {
  for (int i = 0; i < node.outputs(); ++i) guessed_.insert(node.output(i));
}

/// Returns the node's first input that layers have computed.
std::optional<Tensor> StandIns::first_computed(const Node& node,
                                               const std::set<std::string>& varying) {
  for (int i = 0; i < node.inputs(); ++i) {
    const std::string& name = node.input(i);
    if (!varying.contains(name) || !graph_.knows(name) || graph_.constant(name) ||
        graph_.is_unused_input(name) || !graph_.stack(name).tensors.empty())
      continue;
    Tensor tensor = graph_.tensor(name);
    tensor.alone = false;
    return tensor;
  }
  return {};
}

void StandIns::add(const Node& node, const std::set<std::string>& varying) {
  const auto x = first_computed(node, varying);
  const bool keeps = keeps_extents(node);
  const auto matrix = node.op() == "MatMul" ? graph_.constant(node.input(1)) : std::nullopt;
  const bool multiplies = matrix && matrix->extents().size() == 2 && x && x->channels_last;
  for (int i = 0; i < node.outputs(); ++i) {
    const std::string& name = node.output(i);
    if (name.empty() || !varying.contains(name)) continue;
    const auto stated = stated_extents_.find(name);
    const bool is_stated = stated != stated_extents_.end() && x && !x->channels_last &&
                           stated->second.size() == x->dims.size() &&
                           std::all_of(stated->second.begin() + 1, stated->second.end(),
                                       [](std::int64_t extent) { return extent > 0; });
    if (reads_guess(node) || !(keeps || is_stated || multiplies)) guessed_.insert(name);
    if (multiplies) {
      Extents extents = x->dims;
      extents.back() = matrix->extents()[1];
      graph_.define_stand_in(name, extents, true);
    } else if (is_stated && !keeps) {
      graph_.define_stand_in(name, stated->second, false);
    } else if (x) {
      graph_.define(name, *x);
    } else if (const auto constant = graph_.constant(node.input(0))) {  // noise of its extents
      graph_.define_stand_in(name, constant->extents(), false);
    }
  }
}

}  // namespace stratplan::interop
