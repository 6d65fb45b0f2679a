#include "model/network/layer.hpp"

namespace stratplan {

std::string_view name_of(LayerKind kind) {
  static constexpr std::array<std::string_view, 23> names{"input",
                                                          "convolution",
                                                          "max_pool",
                                                          "average_pool",
                                                          "global_average_pool",
                                                          "batch_norm",
                                                          "relu",
                                                          "leaky_relu",
                                                          "sigmoid",
                                                          "add",
                                                          "fully_connected",
                                                          "dropout",
                                                          "softmax_cross_entropy",
                                                          "mean_squared_error",
                                                          "tanh",
                                                          "elu",
                                                          "prelu",
                                                          "clip",
                                                          "softmax",
                                                          "local_response_norm",
                                                          "instance_norm",
                                                          "group_norm",
                                                          "dice_loss"};
  return names[static_cast<std::size_t>(kind)];
}

Shape Layer::weights() const {
  if (kind == LayerKind::Convolution) {
    return {{filters, input[Axis::C], windows[0].kernel, windows[1].kernel, windows[2].kernel}};
  }
  if (kind == LayerKind::FullyConnected) {
    return {{filters, input[Axis::C], input[Axis::D], input[Axis::H], input[Axis::W]}};
  }
  return {{0, 0, 0, 0, 0}};
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

Flops Layer::forward_flops() const {
  if (!is_contraction(kind)) {
    return {0};
  }
  // Every output element is a sum over the window and the input channels: the weights of one filter.
  const double multiply_adds = static_cast<double>(output.elements()) * static_cast<double>(weights().elements() / filters);
  return {2 * multiply_adds};
}

}  // namespace stratplan
