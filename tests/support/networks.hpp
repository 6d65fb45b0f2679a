#pragma once
// Small networks for tests, one line per layer. This file infers shapes itself, from the
// definitions, so tests do not depend on the network reader.
//
//   NetworkBuilder net(2);                                  // batch 2
//   const LayerIndex x = net.input({3, 1, 8, 8});           // C, D, H, W
//   const LayerIndex y = net.relu(
//       net.convolution(x, 4, {.kernel = 3, .pad_before = 1, .pad_after = 1}));
//   Network network = net.finish_with_loss(y);
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "model/network/network.hpp"

namespace stratplan::test {

/// Returns the same window along H and W, and identity along D.
inline std::array<Window, 3> planar(const Window& window) { return {Window{}, window, window}; }

class NetworkBuilder {
 public:
  explicit NetworkBuilder(std::int64_t batch, std::int64_t statistics_samples = 0) {
    network_.name = "test";
    network_.batch = batch;
    network_.statistics_samples = statistics_samples == 0 ? batch : statistics_samples;
  }

  /// Adds an input with extents C, D, H, W of one sample.
  LayerIndex input(std::array<std::int64_t, 4> extents) {
    Layer layer = named(LayerKind::Input, "input");
    layer.input = layer.output =
        Shape{{network_.batch, extents[0], extents[1], extents[2], extents[3]}};
    return push(layer);
  }
  LayerIndex convolution(LayerIndex from, std::int64_t filters, std::array<Window, 3> windows,
                         bool bias = false) {
    Layer layer = reading(LayerKind::Convolution, "conv", from);
    layer.attributes = ConvolutionLayer{.windows = windows, .filters = filters, .bias = bias};
    slide(layer);
    layer.output[Axis::C] = filters;
    return push(layer);
  }
  LayerIndex convolution(LayerIndex from, std::int64_t filters, Window window, bool bias = false) {
    return convolution(from, filters, planar(window), bias);
  }
  /// Gives the last layer, a convolution, so many groups.
  void in_groups(std::int64_t groups) {
    network_.layers.back().as<ConvolutionLayer>().groups = groups;
  }
  LayerIndex transposed_convolution(LayerIndex from, std::int64_t filters,
                                    std::array<Window, 3> windows,
                                    std::array<std::int64_t, 3> output_padding = {},
                                    bool bias = false) {
    Layer layer = reading(LayerKind::TransposedConvolution, "deconv", from);
    layer.attributes = ConvolutionLayer{
        .windows = windows, .filters = filters, .bias = bias, .output_padding = output_padding};
    for (const Axis axis : spatial_axes) {
      const std::size_t i = static_cast<std::size_t>(spatial_index(axis));
      const Window& w = windows[i];
      layer.output[axis] = (layer.input[axis] - 1) * w.stride + w.span() - w.pad_before -
                           w.pad_after + output_padding[i];
    }
    layer.output[Axis::C] = filters;
    return push(layer);
  }
  LayerIndex pool(LayerKind kind, LayerIndex from, std::array<Window, 3> windows) {
    Layer layer = reading(kind, "pool", from);
    layer.as<PoolLayer>().windows = windows;
    slide(layer);
    return push(layer);
  }
  LayerIndex max_pool(LayerIndex from, Window window) {
    return pool(LayerKind::MaxPool, from, planar(window));
  }
  LayerIndex average_pool(LayerIndex from, Window window) {
    return pool(LayerKind::AveragePool, from, planar(window));
  }
  /// Lets the last layer, an average pooling, divide by the number of positions inside its input.
  void without_padding() { network_.layers.back().as<PoolLayer>().count_padding = false; }
  LayerIndex global_average_pool(LayerIndex from) {
    Layer layer = reading(LayerKind::GlobalAveragePool, "gap", from);
    for (const Axis axis : spatial_axes) layer.output[axis] = 1;
    return push(layer);
  }
  LayerIndex fully_connected(LayerIndex from, std::int64_t filters, bool bias = true) {
    Layer layer = reading(LayerKind::FullyConnected, "fc", from);
    layer.attributes = FullyConnectedLayer{filters, bias};
    layer.output = Shape{{network_.batch, filters, 1, 1, 1}};
    return push(layer);
  }
  LayerIndex batch_norm(LayerIndex from) { return point_wise(LayerKind::BatchNorm, "bn", from); }
  /// Makes the last batch normalization normalize by running statistics.
  void by_running_statistics() {
    network_.running_momentum = 0.1;
    network_.layers.back().as<NormalizationLayer>().statistics = NormalizedBy::Running;
  }
  LayerIndex pointwise(const Activation& function, LayerIndex from) {
    Layer layer = reading(LayerKind::Pointwise, std::string(name_of(function.function)), from);
    layer.attributes = function;
    return push(layer);
  }
  LayerIndex pointwise(PointwiseFunction function, LayerIndex from) {
    return pointwise({function, usual_constants(function)}, from);
  }
  LayerIndex relu(LayerIndex from) { return pointwise(PointwiseFunction::Relu, from); }
  LayerIndex leaky_relu(LayerIndex from) { return pointwise(PointwiseFunction::LeakyRelu, from); }
  LayerIndex sigmoid(LayerIndex from) { return pointwise(PointwiseFunction::Sigmoid, from); }
  LayerIndex tanh(LayerIndex from) { return pointwise(PointwiseFunction::Tanh, from); }
  LayerIndex elu(LayerIndex from) { return pointwise(PointwiseFunction::Elu, from); }
  LayerIndex prelu(LayerIndex from) { return point_wise(LayerKind::PReLU, "prelu", from); }
  LayerIndex clip(LayerIndex from, double minimum, double maximum) {
    return pointwise({PointwiseFunction::Clip, {minimum, maximum}}, from);
  }
  LayerIndex layer_norm(LayerIndex from) { return point_wise(LayerKind::LayerNorm, "ln", from); }
  LayerIndex softmax(LayerIndex from) { return point_wise(LayerKind::Softmax, "softmax", from); }
  LayerIndex local_response_norm(LayerIndex from, const LocalResponse& response) {
    Layer layer = reading(LayerKind::LocalResponseNorm, "lrn", from);
    layer.attributes = response;
    return push(layer);
  }
  LayerIndex instance_norm(LayerIndex from) {
    return point_wise(LayerKind::InstanceNorm, "in", from);
  }
  LayerIndex group_norm(LayerIndex from, std::int64_t groups) {
    Layer layer = reading(LayerKind::GroupNorm, "gn", from);
    layer.as<NormalizationLayer>().groups = groups;
    return push(layer);
  }
  LayerIndex dropout(LayerIndex from) { return point_wise(LayerKind::Dropout, "dropout", from); }
  LayerIndex add(const std::vector<LayerIndex>& from) {
    Layer layer = reading(LayerKind::Add, "add", from.front());
    layer.inputs = from;
    return push(layer);
  }
  LayerIndex concat(const std::vector<LayerIndex>& from) {
    Layer layer = reading(LayerKind::Concat, "concat", from.front());
    layer.inputs = from;
    layer.output[Axis::C] = 0;
    for (const LayerIndex input : from) {
      layer.input_shapes.push_back(network_.layer(input).output);
      layer.output[Axis::C] += layer.input_shapes.back()[Axis::C];
    }
    return push(layer);
  }
  LayerIndex binary(BinaryFunction function, LayerIndex first, LayerIndex second) {
    Layer layer = reading(LayerKind::Binary, std::string(name_of(function)), first);
    layer.attributes = function;
    layer.inputs = {first, second};
    for (const LayerIndex input : layer.inputs) {
      layer.input_shapes.push_back(network_.layer(input).output);
      for (const Axis axis : all_axes)
        layer.output[axis] = std::max(layer.output[axis], layer.input_shapes.back()[axis]);
    }
    return push(layer);
  }
  /// Adds a padding. Only the padding of the windows counts.
  LayerIndex pad(LayerIndex from, std::array<Window, 3> windows,
                 std::array<std::int64_t, 2> channel_padding = {}) {
    Layer layer = reading(LayerKind::Pad, "pad", from);
    layer.as<PadLayer>().channel_padding = channel_padding;
    layer.output[Axis::C] += channel_padding[0] + channel_padding[1];
    for (std::size_t i = 0; i < windows.size(); ++i)
      layer.as<PadLayer>().windows[i] = {.pad_before = windows[i].pad_before,
                                         .pad_after = windows[i].pad_after};
    slide(layer);
    return push(layer);
  }
  /// Gives the last layer, a padding, a constant.
  void fill_padding(double value) { network_.layers.back().as<PadLayer>().value = value; }
  /// Adds a padding with a constant, or with elements of the input.
  LayerIndex pad(LayerIndex from, std::array<Window, 3> windows, PaddingMode mode,
                 double value = 0) {
    const LayerIndex made = pad(from, windows);
    network_.layers.back().as<PadLayer>().mode = mode;
    network_.layers.back().as<PadLayer>().value = value;
    return made;
  }
  LayerIndex upsample(LayerIndex from, std::array<std::int64_t, 3> factors, bool linear) {
    return resize(from, {.scale = {{{factors[0]}, {factors[1]}, {factors[2]}}}, .linear = linear});
  }
  /// Adds an upsampling, whose extents follow from the size, or from the scale where it is 0.
  LayerIndex resize(LayerIndex from, const UpsampleLayer& own) {
    Layer layer = reading(LayerKind::Upsample, "up", from);
    layer.attributes = own;
    for (const Axis axis : spatial_axes) {
      const auto i = static_cast<std::size_t>(spatial_index(axis));
      layer.output[axis] =
          own.size[i] > 0 ? own.size[i]
                          : layer.input[axis] * own.scale[i].numerator / own.scale[i].denominator;
    }
    return push(layer);
  }
  LayerIndex reduce(Reduction function, LayerIndex from, std::initializer_list<Axis> axes) {
    Layer layer = reading(LayerKind::Reduce, "reduce", from);
    layer.as<ReduceLayer>().function = function;
    for (const Axis axis : axes) {
      layer.as<ReduceLayer>().axes[static_cast<std::size_t>(axis)] = true;
      layer.output[axis] = 1;
    }
    return push(layer);
  }
  LayerIndex channel_shuffle(LayerIndex from, std::int64_t groups) {
    Layer layer = reading(LayerKind::ChannelShuffle, "shuffle", from);
    layer.as<ChannelShuffleLayer>().groups = groups;
    return push(layer);
  }
  LayerIndex depth_to_space(LayerIndex from, std::array<std::int64_t, 3> block,
                            DepthOrder order = DepthOrder::CRD) {
    Layer layer = reading(LayerKind::DepthToSpace, "to_space", from);
    layer.as<DepthToSpaceLayer>().order = order;
    for (const Axis axis : spatial_axes) {
      const auto i = static_cast<std::size_t>(spatial_index(axis));
      layer.as<DepthToSpaceLayer>().block[i] = block[i];
      layer.output[axis] *= block[i];
      layer.output[Axis::C] /= block[i];
    }
    return push(layer);
  }
  LayerIndex space_to_depth(LayerIndex from, std::array<std::int64_t, 3> block,
                            DepthOrder order = DepthOrder::CRD) {
    Layer layer = reading(LayerKind::SpaceToDepth, "to_depth", from);
    layer.as<SpaceToDepthLayer>().order = order;
    for (std::size_t i = 0; i < block.size(); ++i) {
      layer.as<SpaceToDepthLayer>().windows[i] = {.kernel = block[i], .stride = block[i]};
      layer.output[Axis::C] *= block[i];
    }
    slide(layer);
    return push(layer);
  }
  LayerIndex cross_entropy(LayerIndex from) {
    return point_wise(LayerKind::SoftmaxCrossEntropy, "loss", from);
  }
  /// Adds a cross-entropy with options. `weights`: of classes; none: 1 for each.
  LayerIndex cross_entropy(LayerIndex from, CrossEntropyLayer options,
                           const std::vector<float>& weights = {}) {
    options.weighted = !weights.empty();
    Layer layer = reading(LayerKind::SoftmaxCrossEntropy, "loss", from);
    layer.attributes = options;
    return push_weighted(layer, weights);
  }
  LayerIndex dice_loss(LayerIndex from, const DiceLayer& options = {}) {
    Layer layer = reading(LayerKind::DiceLoss, "loss", from);
    layer.attributes = options;
    return push(layer);
  }
  /// Adds a Dice loss with a cross-entropy. `weights`: of classes; none: 1 for each.
  LayerIndex dice_cross_entropy(LayerIndex from, DiceCrossEntropyLayer options = {},
                                const std::vector<float>& weights = {}) {
    options.entropy.weighted = !weights.empty();
    options.entropy.ignore_index = options.dice.ignore_index;
    Layer layer = reading(LayerKind::DiceCrossEntropy, "loss", from);
    layer.attributes = options;
    return push_weighted(layer, weights);
  }
  LayerIndex element_loss(const ElementLoss& loss, LayerIndex from) {
    Layer layer = reading(LayerKind::ElementwiseLoss, "loss", from);
    layer.attributes = loss;
    return push(layer);
  }
  LayerIndex squared_error(LayerIndex from) { return element_loss({}, from); }

  /// Sets the weight of the last layer, a loss.
  void weigh(double weight) { network_.layers.back().loss_weight = weight; }

  Network finish() const { return network_; }
  Network finish_with_loss(LayerIndex from) {
    squared_error(from);
    return network_;
  }

 private:
  Layer named(LayerKind kind, const std::string& stem) const {
    return {.name = stem + std::to_string(network_.size()), .kind = kind};
  }
  Layer reading(LayerKind kind, const std::string& stem, LayerIndex from) const {
    Layer layer = named(kind, stem);
    layer.inputs = {from};
    layer.input = layer.output = network_.layer(from).output;
    return layer;
  }
  LayerIndex point_wise(LayerKind kind, const std::string& stem, LayerIndex from) {
    return push(reading(kind, stem, from));
  }
  static void slide(Layer& layer) {
    for (const Axis axis : spatial_axes)
      layer.output[axis] = layer.windows()[spatial_index(axis)].output_extent(layer.input[axis]);
  }
  /// Adds a loss with weights of classes, if there are any.
  LayerIndex push_weighted(Layer layer, const std::vector<float>& weights) {
    if (!weights.empty()) {
      layer.declared[static_cast<std::size_t>(ParameterRole::ClassWeights)] =
          static_cast<ParameterIndex>(network_.parameters.size());
      network_.parameters.push_back({.name = layer.name + ".class_weights",
                                     .learning = Learning::Constant,
                                     .values = weights});
    }
    return push(std::move(layer));
  }
  LayerIndex push(Layer layer) {
    network_.layers.push_back(std::move(layer));
    return network_.size() - 1;
  }

  Network network_;
};

/// Returns a network of every layer kind, with a residual addition and a tensor with two consumers.
inline Network small_network(std::int64_t batch, std::int64_t statistics_samples) {
  NetworkBuilder net(batch, statistics_samples);
  const LayerIndex x = net.input({6, 1, 9, 8});
  const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  const LayerIndex stem = net.relu(net.batch_norm(net.convolution(x, 8, same)));
  const LayerIndex pooled = net.max_pool(
      stem, {.kernel = 3, .stride = 2, .dilation = 1, .pad_before = 1, .pad_after = 1});
  const Window even_same{.kernel = 4, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 2};
  const LayerIndex left = net.leaky_relu(net.convolution(pooled, 8, even_same, true));
  const LayerIndex right = net.sigmoid(net.batch_norm(net.convolution(pooled, 8, Window{})));
  const LayerIndex sum = net.add({left, right, pooled});
  const LayerIndex even = net.average_pool(
      sum, {.kernel = 2, .stride = 1, .dilation = 1, .pad_before = 0, .pad_after = 1});
  const LayerIndex mean = net.global_average_pool(even);
  net.cross_entropy(net.fully_connected(net.dropout(mean), 12));
  return net.finish();
}

/// Returns a network of two inputs, one of them a vector, and three losses. One loss is in the
/// middle, where another layer reads the same output, and one ends a branch.
inline Network several_ends(std::int64_t batch) {
  NetworkBuilder net(batch);
  const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  const LayerIndex image = net.input({3, 1, 6, 5}), vector = net.input({4, 1, 1, 1});
  const LayerIndex trunk = net.sigmoid(net.convolution(image, 4, same));
  const LayerIndex gated =
      net.binary(BinaryFunction::Multiply, trunk, net.fully_connected(vector, 4));
  const LayerIndex middle = net.convolution(gated, 3, same, true);
  net.cross_entropy(middle);
  net.weigh(0.4);
  net.squared_error(net.fully_connected(net.global_average_pool(trunk), 5));
  net.weigh(2);
  net.cross_entropy(net.fully_connected(net.sigmoid(middle), 6));
  return net.finish();
}

/// Returns a network with all fusions: a normalization with a ReLU, with an addition and a ReLU,
/// and with an addition whose other input is a normalization too.
inline Network residual_network(std::int64_t batch, std::int64_t statistics_samples) {
  NetworkBuilder net(batch, statistics_samples);
  const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  const LayerIndex x = net.input({3, 1, 6, 5});
  const LayerIndex stem = net.relu(net.batch_norm(net.convolution(x, 4, same)));
  const LayerIndex first =
      net.relu(net.add({net.batch_norm(net.convolution(stem, 4, same)), stem}));
  const LayerIndex inner = net.leaky_relu(net.instance_norm(net.convolution(first, 4, same)));
  const LayerIndex outer = net.batch_norm(net.convolution(inner, 6, same));
  const LayerIndex second = net.add({outer, net.batch_norm(net.convolution(first, 6, Window{}))});
  const LayerIndex third =
      net.leaky_relu(net.add({second, net.group_norm(net.convolution(second, 6, same), 2)}));
  net.cross_entropy(net.fully_connected(net.global_average_pool(third), 5));
  return net.finish();
}

/// Returns a network of a convolution, a grouped one, a transposed one and a fully connected layer,
/// each with a ReLU.
inline Network activated_contractions(std::int64_t batch, bool bias) {
  NetworkBuilder net(batch);
  const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  LayerIndex x = net.relu(net.convolution(net.input({3, 1, 6, 5}), 4, same, bias));
  x = net.convolution(x, 6, same, bias);
  net.in_groups(2);
  x = net.leaky_relu(net.transposed_convolution(net.relu(x), 6, planar(same), {}, bias));
  net.cross_entropy(net.relu(net.fully_connected(x, 6, bias)));
  return net.finish();
}

/// Returns a layer whose outputs lie in the function's domain: `from`, or a sigmoid of it.
inline LayerIndex into_domain(NetworkBuilder& net, PointwiseFunction function, LayerIndex from) {
  return std::isfinite(row_of(function).domain) ? net.sigmoid(from) : from;
}

/// Returns the function with its usual constants, or with limits that some elements exceed.
inline Activation tested(PointwiseFunction function) {
  if (function == PointwiseFunction::Clip) return {function, {-0.3, 0.6}};
  if (function == PointwiseFunction::Linear) return {function, {1.5, -0.25}};  // usually x itself
  return {function, usual_constants(function)};
}

/// Returns the loss with a constant that some elements exceed.
inline ElementLoss tested(LossFunction function) {
  return {function, row_of(function).constant.empty() ? 1 : 0.7};
}

/// One layer of a kind in a whole small network, for tests of a single layer.
struct LayerCase {
  Network network;
  LayerIndex index = -1;
  const Layer& layer() const { return network.layer(index); }
};

/// Makes the network input -> layer -> mean squared error. Losses follow the input directly.
/// Windows have kernel 3, stride 1 and "same" padding.
inline LayerCase single_layer(LayerType type, std::int64_t batch,
                              std::array<std::int64_t, 4> extents, std::int64_t filters = 4) {
  NetworkBuilder net(batch);
  const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  const std::array<Window, 3> windows{extents[1] > 1 ? same : Window{}, same, same};
  const LayerIndex x = net.input(extents);
  LayerIndex y = -1;
  switch (type.kind) {
    case LayerKind::Convolution: y = net.convolution(x, filters, windows, true); break;
    case LayerKind::MaxPool:
    case LayerKind::AveragePool: y = net.pool(type.kind, x, windows); break;
    case LayerKind::GlobalAveragePool: y = net.global_average_pool(x); break;
    case LayerKind::BatchNorm: y = net.batch_norm(x); break;
    case LayerKind::Pointwise:
      y = net.pointwise(tested(type.function), into_domain(net, type.function, x));
      break;
    case LayerKind::Add: y = net.add({x, x}); break;
    case LayerKind::Binary: y = net.binary(type.binary, x, x); break;
    case LayerKind::FullyConnected: y = net.fully_connected(x, filters); break;
    case LayerKind::Dropout: y = net.dropout(x); break;
    case LayerKind::PReLU: y = net.prelu(x); break;
    case LayerKind::LayerNorm: y = net.layer_norm(x); break;
    case LayerKind::Softmax: y = net.softmax(x); break;
    case LayerKind::LocalResponseNorm: y = net.local_response_norm(x, {.size = 3}); break;
    case LayerKind::InstanceNorm: y = net.instance_norm(x); break;
    case LayerKind::GroupNorm: y = net.group_norm(x, extents[0] % 2 == 0 ? 2 : 1); break;
    case LayerKind::DiceLoss: return {(net.dice_loss(x), net.finish()), 1};
    case LayerKind::DiceCrossEntropy: return {(net.dice_cross_entropy(x), net.finish()), 1};
    case LayerKind::SoftmaxCrossEntropy: return {(net.cross_entropy(x), net.finish()), 1};
    case LayerKind::ElementwiseLoss:
      return {(net.element_loss(tested(type.loss), x), net.finish()), 1};
    case LayerKind::Concat: y = net.concat({x, x}); break;
    case LayerKind::Pad: y = net.pad(x, windows); break;
    case LayerKind::Upsample: y = net.upsample(x, {1, 2, 3}, true); break;
    case LayerKind::Reduce: y = net.reduce(Reduction::Mean, x, {Axis::C, Axis::W}); break;
    case LayerKind::ChannelShuffle:
      y = net.channel_shuffle(x, extents[0] % 2 == 0 ? extents[0] / 2 : 1);
      break;
    case LayerKind::DepthToSpace:
      y = net.depth_to_space(x, {extents[0] % 4 == 0 ? 2 : 1, extents[0] % 2 == 0 ? 2 : 1, 1});
      break;
    case LayerKind::SpaceToDepth:
      y = net.space_to_depth(x, {1, extents[2] % 2 == 0 ? 2 : 1, 1});
      break;
    case LayerKind::TransposedConvolution:
      y = net.transposed_convolution(x, filters, windows, {}, true);
      break;
    case LayerKind::Input: return {net.finish(), x};
  }
  return {net.finish_with_loss(y), y};
}

/// All kinds but Input, which is the first.
inline const std::span<const LayerType> computing_types = all_layer_types().subspan(1);

}  // namespace stratplan::test
