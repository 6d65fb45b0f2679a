#pragma once
// One node on its way to a layer: what it reads, in terms of the graph, and where its output goes.
// All functions that fail throw Inexpressible.
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "interop/onnx/graph.hpp"

namespace stratplan::interop {

class Operation {
 public:
  Operation(const Node& node_read, std::int64_t version, Graph& graph_made)
      : node(node_read), opset(version), graph(graph_made) {}

  const Node& node;
  const std::int64_t opset;
  Graph& graph;

  bool given(int i) const { return !node.input(i).empty(); }
  bool is_constant(int i) const { return graph.constant(node.input(i)).has_value(); }
  Tensor tensor(int i) const { return graph.tensor(node.input(i)); }
  Constant constant(int i) const;
  std::optional<Constant> optional_constant(int i) const;
  /// The list that was an attribute in old versions and is input i in newer ones.
  std::vector<std::int64_t> list(const char* attribute, int i) const;
  std::optional<double> scalar(const char* attribute, int i) const;

  /// Input i as (N, C, [[D,] H,] W), with at least `spatial` spatial axes.
  Tensor image(int i, std::size_t spatial = 0) const;
  /// Whether an axis of its own is the channels.
  bool keeps_channels(const Tensor& x) const;
  std::size_t channel_axis(const Tensor& x) const {
    return x.channels_last ? x.dims.size() - 1 : 1;
  }
  std::int64_t channels(const Tensor& x) const { return graph.shape(x)[Axis::C]; }
  /// Of one sample.
  std::int64_t positions(const Tensor& x) const { return graph.shape(x).elements() / channels(x); }

  /// A layer in the node's name, whose output is the node's: an image of as many axes as x has.
  void layer(LayerKind kind, const Tensor& x, Shape output, Json attributes = Json::object(),
             std::vector<Parameter> parameters = {}) const;
  /// The same for a layer that computes each element on its own: what it makes is seen as x was.
  void point_wise(LayerType type, const std::vector<Tensor>& inputs,
                  Json attributes = Json::object(), std::vector<Parameter> parameters = {}) const;
  /// The node's output is x itself, with these extents.
  void view(Tensor x, Extents dims) const;
  void output(Tensor x) const { graph.define(node.output(0), std::move(x)); }

  /// A list along D, H, W as network.json has it: of the network's spatial axes, and one number if
  /// they are all equal.
  Json along(const std::array<Json, 3>& values) const;
};

/// As short as tells it from other numbers of single precision: 1e-05, not 9.99999974737875e-06.
double tidy(double single_precision);

/// So many floats: x's, or the one of x again and again.
Constant of_length(const Constant& x, std::int64_t elements);

/// x is an operand of each element of the tensor: one number, or one for each channel. Returns one
/// float for each channel.
/// Throws if there is one for each position.
Constant per_channel(const Operation& op, const Constant& x, const Tensor& tensor);

}  // namespace stratplan::interop
