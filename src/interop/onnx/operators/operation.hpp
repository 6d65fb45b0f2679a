#pragma once
// One node while it becomes a layer: its inputs as tensors and constants of the graph, and ways to
// define its output. All functions throw Inexpressible on failure.
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
  /// Returns input i, whose elements lie as `dims` says.
  Tensor tensor(int i) const { return graph.settled(node.input(i)); }
  /// Returns input i, which may be a view or repeated. For operators to which the order of elements
  /// does not matter, or that repeat elements themselves.
  Tensor any(int i) const { return graph.tensor(node.input(i)); }
  /// Returns which factors of its layer's output each axis of x holds. Throws if an extent is no
  /// product of them.
  std::vector<Factors> factors(const Tensor& x) const;
  /// Returns input i with an axis of channels and axes of positions. A layer is added that flattens
  /// or divides the channels, if the model does.
  Tensor with_channels(int i) const;
  /// Returns input i, which must be given and constant.
  Constant constant(int i) const;
  /// Returns input i, which must be constant, or nothing if the node omits it.
  std::optional<Constant> optional_constant(int i) const;
  /// Returns a list that old opsets give as an attribute and newer ones as input i.
  std::vector<std::int64_t> list(const char* attribute, int i) const;
  /// Returns a number that old opsets give as an attribute and newer ones as input i.
  std::optional<double> scalar(const char* attribute, int i) const;

  /// Returns input i. Its axes must be (N, C, [[D,] H,] W) of its layer, with at least `spatial`
  /// spatial axes.
  Tensor image(int i, std::size_t spatial = 0) const;
  /// Whether the axes of x are (N, C, [[D,] H,] W) of its layer.
  bool is_image(const Tensor& x) const;
  /// Whether one axis of x holds the channels and nothing else.
  bool keeps_channels(const Tensor& x) const;
  std::size_t channel_axis(const Tensor& x) const {
    return x.channels_last ? x.dims.size() - 1 : 1;
  }
  std::int64_t channels(const Tensor& x) const { return graph.shape(x)[Axis::C]; }
  /// Returns the number of positions of one sample: D * H * W.
  std::int64_t positions(const Tensor& x) const { return graph.shape(x).elements() / channels(x); }

  /// Returns a parameter with these values and decides its part in training. `input`: the node's
  /// input from which the values come. Throws if the values are computed from initializers, unless
  /// the user asks to keep them.
  Parameter parameter(const char* role, Extents shape, const Constant& values, int input) const;

  /// Adds a layer that has the node's name and computes the node's output, an image with as many
  /// axes as x.
  void layer(LayerKind kind, const Tensor& x, Shape output, Json attributes = Json::object(),
             std::vector<Parameter> parameters = {}) const;
  /// Adds a layer that keeps the shape of inputs[0]. Returns its output, with the extents and the
  /// axis order of inputs[0].
  Tensor alike(LayerType type, const std::vector<Tensor>& inputs, Json attributes = Json::object(),
               std::vector<Parameter> parameters = {}) const;
  /// Adds such a layer, and defines the node's output as its output.
  void point_wise(LayerType type, const std::vector<Tensor>& inputs,
                  Json attributes = Json::object(), std::vector<Parameter> parameters = {}) const {
    output(alike(type, inputs, std::move(attributes), std::move(parameters)));
  }
  /// Adds a layer that has the node's name. Returns its output as an image with all axes of
  /// positions.
  Tensor made(LayerType type, const std::vector<Tensor>& inputs, const Shape& output,
              Json attributes = Json::object()) const;
  /// Returns x, whose axes hold these factors of its layer's output. If both orders of the channels
  /// fit, `channels_last` decides.
  Tensor ordered(Tensor x, const std::vector<Factors>& axes, bool channels_last) const;
  /// Defines the node's output as x with other extents.
  void view(Tensor x, Extents dims) const;
  /// Defines the node's output as x itself.
  void output(Tensor x) const { graph.define(node.output(0), std::move(x)); }

  /// Returns values along D, H, W as network.json lists them: one value per spatial axis of the
  /// network, or one number if all are equal.
  Json along(const std::array<Json, 3>& values) const;
};

/// Returns the shortest decimal number that rounds to the same float: 1e-05 instead of
/// 9.99999974737875e-06.
double tidy(double single_precision);

/// The most numbers of one tensor that network.json holds.
inline constexpr std::int64_t most_in_document = 65536;

/// Whether x has at least one element, at most most_in_document, and all equal `value`; any value
/// if there is none.
bool is_filled(const Constant& x, std::optional<float> value = {});
/// Whether no parameter of the model holds x: it is a literal, or an exporter folded it.
bool is_made_by_exporter(const Constant& x);

/// Returns x as floats with one axis, for an operator that combines x with each element: one
/// number, or one number per channel of `tensor`. Throws if x has a value per position.
Constant per_channel(const Operation& op, const Constant& x, const Tensor& tensor);

}  // namespace stratplan::interop
