#pragma once
// Random small networks for rapidcheck properties: chains of blocks with skips, branches that meet
// again, and all point-wise layers. Call these functions only inside a property.
#include "support/generators.hpp"
#include "support/networks.hpp"

namespace stratplan::test {

/// Adds up to three point-wise layers behind `x`, perhaps an addition of `skip`, which has x's
/// shape.
inline LayerIndex any_point_wise(NetworkBuilder& net, LayerIndex x, LayerIndex skip) {
  for (int i = any_int(0, 3); i > 0; --i) {
    switch (any_int(0, 8)) {
      case 0: x = net.batch_norm(x); break;
      case 1: x = net.relu(net.batch_norm(x)); break;
      case 2: x = net.relu(x); break;
      case 3: x = net.leaky_relu(x); break;
      case 4: x = net.sigmoid(x); break;
      case 5: x = net.dropout(x); break;
      case 6: x = net.prelu(x); break;
      case 7: x = net.clip(x, -0.5, 0.5); break;
      default: x = skip >= 0 ? net.relu(net.add({net.batch_norm(x), skip})) : net.tanh(x);
    }
  }
  return x;
}

/// Returns a network of 2 to 4 channels and batch 4. Every layer keeps the extents, except pooling,
/// which comes last. The loss is the mean squared error.
inline Network any_network() {
  constexpr Window same{.kernel = 3, .pad_before = 1, .pad_after = 1};
  NetworkBuilder net(4, any_int(0, 1) ? 2 : 4);
  const std::int64_t channels = any_int(2, 4);
  LayerIndex x = net.relu(net.convolution(net.input({3, 1, 6, 4}), channels, same, true));
  for (int blocks = any_int(1, 4); blocks > 0; --blocks) {
    const LayerIndex before = x;
    switch (any_int(0, 5)) {
      case 5:  // a gate for each channel, or for each position
        x = net.binary(any_int(0, 1) ? BinaryFunction::Multiply : BinaryFunction::Subtract, x,
                       any_int(0, 1) ? net.fully_connected(net.global_average_pool(x), channels)
                                     : net.convolution(x, 1, same));
        break;
      case 0:
        x = any_point_wise(net, net.convolution(x, channels, same, any_int(0, 1) > 0), before);
        break;
      case 1:
        x = any_point_wise(net, net.transposed_convolution(x, channels, planar(same)), before);
        break;
      case 2:
        x = net.convolution(net.concat({any_point_wise(net, x, -1), net.average_pool(x, same)}),
                            channels, same);
        break;
      case 3: x = any_point_wise(net, net.max_pool(x, same), before); break;
      default: x = net.group_norm(net.local_response_norm(x, {.size = 3}), 1);
    }
  }
  if (any_int(0, 1)) x = net.max_pool(x, {.kernel = 2, .stride = 2});
  return net.finish_with_loss(
      any_int(0, 1) ? net.fully_connected(any_int(0, 1) ? net.global_average_pool(x) : x, 4) : x);
}

}  // namespace stratplan::test
