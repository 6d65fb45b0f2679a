#include "model/network/layer.hpp"

#include <algorithm>

namespace stratplan {

namespace {

constexpr std::array<std::string_view, layer_kind_count> kind_names{"input",
                                                                    "convolution",
                                                                    "max_pool",
                                                                    "average_pool",
                                                                    "global_average_pool",
                                                                    "batch_norm",
                                                                    "pointwise",
                                                                    "add",
                                                                    "fully_connected",
                                                                    "dropout",
                                                                    "softmax_cross_entropy",
                                                                    "mean_squared_error",
                                                                    "prelu",
                                                                    "softmax",
                                                                    "local_response_norm",
                                                                    "instance_norm",
                                                                    "group_norm",
                                                                    "dice_loss",
                                                                    "concat",
                                                                    "pad",
                                                                    "upsample",
                                                                    "transposed_convolution",
                                                                    "binary"};

constexpr auto layer_types = [] {
  std::array<LayerType,
             layer_kind_count - 2 + all_pointwise_functions.size() + all_binary_functions.size()>
      types;
  auto next = types.begin();
  for (int i = 0; i < layer_kind_count; ++i) {
    const auto kind = static_cast<LayerKind>(i);
    if (kind == LayerKind::Pointwise)
      next = std::copy(all_pointwise_functions.begin(), all_pointwise_functions.end(), next);
    else if (kind == LayerKind::Binary)
      next = std::copy(all_binary_functions.begin(), all_binary_functions.end(), next);
    else
      *next++ = kind;
  }
  return types;
}();

}  // namespace

std::span<const LayerType> all_layer_types() { return layer_types; }

std::string_view name_of(LayerType type) {
  switch (type.kind) {
    case LayerKind::Pointwise: return name_of(type.function);
    case LayerKind::Binary: return name_of(type.binary);
    default: return kind_names[static_cast<std::size_t>(type.kind)];
  }
}

Shape Layer::weights() const {
  if (is_convolution(kind)) {
    const bool transposed = kind == LayerKind::TransposedConvolution;
    const std::int64_t outer = transposed ? input[Axis::C] : filters,
                       inner = transposed ? filters : input[Axis::C];
    return {{outer, inner / groups, windows[0].kernel, windows[1].kernel, windows[2].kernel}};
  }
  if (kind == LayerKind::FullyConnected) {
    return {{filters, input[Axis::C], input[Axis::D], input[Axis::H], input[Axis::W]}};
  }
  return {{0, 0, 0, 0, 0}};
}

Shape Layer::input_shape(std::size_t index) const {
  return input_shapes.empty() ? input : input_shapes[index];
}

std::array<std::int64_t, axis_count> Layer::origin(std::size_t index) const {
  std::int64_t channel = 0;
  if (kind == LayerKind::Concat)
    for (std::size_t before = 0; before < index; ++before) channel += input_shapes[before][Axis::C];
  return {0, channel, windows[0].pad_before, windows[1].pad_before, windows[2].pad_before};
}

std::int64_t Layer::parameter_count() const {
  if (has_statistics(kind)) {
    return 2 * input[Axis::C];
  }
  if (kind == LayerKind::PReLU) {
    return input[Axis::C];
  }
  return weights().elements() + (bias ? filters : 0);
}

double Layer::fan_in() const {
  double products =
      static_cast<double>(weights().elements() /
                          filters);  // the window and the input channels: the weights of one filter
  if (kind == LayerKind::TransposedConvolution) {
    for (const Window& window : windows) {
      products /= static_cast<double>(window.stride);
    }
  }
  return products;
}

bool Layer::passes_scales() const {
  switch (kind) {
    case LayerKind::Convolution:
    case LayerKind::TransposedConvolution: return groups == input[Axis::C];
    case LayerKind::Pointwise: return row_of(pointwise.function).homogeneous;
    case LayerKind::PReLU:
    case LayerKind::MaxPool:
    case LayerKind::AveragePool:
    case LayerKind::GlobalAveragePool:
    case LayerKind::Upsample:
    case LayerKind::Pad:
    case LayerKind::Dropout:
    case LayerKind::Concat: return true;
    default: return false;
  }
}

double Layer::longest_sum() const {
  const Shape& iterated = kind == LayerKind::TransposedConvolution ? input : output;
  const double positions = static_cast<double>(iterated.elements() / iterated[Axis::C]);
  if (is_contraction(kind)) {
    const Shape of_weights = weights();
    const double by_filter = static_cast<double>(of_weights.elements() / of_weights[Axis::N]);
    const double by_channel =
        static_cast<double>(of_weights.elements() / of_weights[Axis::C] / groups);
    return std::max({positions, by_filter, by_channel});
  }
  if (kind == LayerKind::Softmax) return static_cast<double>(input[Axis::C]);
  if (kind == LayerKind::LocalResponseNorm) return static_cast<double>(response.size);
  if (kind == LayerKind::Binary)
    return static_cast<double>(output.elements() /
                               std::min(input_shapes[0].elements(), input_shapes[1].elements()));
  const bool sums_positions =
      has_statistics(kind) || kind == LayerKind::PReLU || kind == LayerKind::DiceLoss;
  return sums_positions ? positions : 1;
}

Flops Layer::forward_flops() const {
  if (!is_contraction(kind)) {
    return {0};
  }
  // Every output element is a sum of as many products as a filter has weights; transposed, every input element goes into as many.
  const bool transposed = kind == LayerKind::TransposedConvolution;
  const Shape& iterated = transposed ? input : output;
  const std::int64_t products = weights().elements() / (transposed ? input[Axis::C] : filters);
  return {2 * static_cast<double>(iterated.elements()) * static_cast<double>(products)};
}

}  // namespace stratplan
