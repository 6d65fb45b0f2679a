#pragma once
// Networks around one layer of every kind, with odd extents drawn from a seed.
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "support/networks.hpp"

namespace stratplan::test::guard_cases {

/// A network input -> probe -> tested layer -> squared error. The probe is a 1x1 convolution. The
/// gradient that it reads back is the tested layer's input gradient.
struct Case {
  Network network;
  LayerIndex probe = 1;
  LayerIndex tested = 2;
  LayerIndex loss = 3;  ///< the tested layer itself if that is a loss
};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  /// Returns a number from `low` to `high`, both included.
  std::int64_t number(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  template <class Value>
  const Value& of(const std::vector<Value>& values) {
    return values[static_cast<std::size_t>(number(0, std::ssize(values) - 1))];
  }

  /// Returns padding of an axis. If it is negative, it leaves one element or more of `extent`.
  std::array<std::int64_t, 2> padding(std::int64_t extent) {
    const std::int64_t least = number(0, 1) > 0 ? 0 : -((extent - 1) / 2);
    return {number(least, 3), number(least, 3)};
  }
  Window padded(std::int64_t extent) {
    const auto [before, after] = padding(extent);
    return {.pad_before = before, .pad_after = after};
  }
  /// Returns a window with an odd or even kernel, a stride that may exceed the kernel, dilation,
  /// and uneven padding smaller than the kernel.
  Window window(std::int64_t extent) {
    Window window{.kernel = number(1, 4), .stride = number(1, 3), .dilation = number(1, 2)};
    window.pad_before = number(0, window.kernel - 1);
    window.pad_after = number(0, window.kernel - 1);
    return window.span() <= extent ? window : Window{};
  }

 private:
  std::mt19937 engine_;
};

/// Extents of the tested layer. Depending on the seed, convolutions have one group, several, or one
/// per channel (depthwise), each in 2-D and in 3-D.
struct Extents {
  std::int64_t channels, filters, groups, depth, height, width;
};

inline unsigned seeds_of(LayerKind kind) {
  if (kind == LayerKind::Pad) return 8;  // two for each mode
  const bool has_options = kind == LayerKind::SoftmaxCrossEntropy || kind == LayerKind::DiceLoss ||
                           kind == LayerKind::DiceCrossEntropy;
  if (has_options) return 4;
  return is_convolution(kind) || kind == LayerKind::Upsample || kind == LayerKind::Reduce ? 6 : 2;
}

inline Extents extents_of(LayerKind kind, unsigned seed, Random& random) {
  const bool grows = kind == LayerKind::TransposedConvolution;
  Extents made{
      random.number(2, 7), random.number(2, 7), 1, random.of<std::int64_t>({1, 1, 3, 5}), 0, 0};
  if (is_convolution(kind)) {
    made.depth = seed % 2 == 1 ? random.number(3, grows ? 3 : 5) : 1;
    if (seed % 3 > 0) {
      made.groups = random.number(2, 5);
      made.channels = made.groups * (seed % 3 == 1 ? random.number(1, 3) : 1);
      made.filters = made.groups * random.number(1, 2);
    }
  }
  made.height = grows ? random.number(2, 4) : random.number(5, made.depth > 1 ? 6 : 9);
  made.width = grows ? random.number(2, 4) : random.number(5, made.depth > 1 ? 6 : 9);
  return made;
}

/// Kernels are smaller or larger than the stride, so there are gaps and overlaps, and blocks of
/// output that need only one input.
inline LayerIndex transposed_convolution(NetworkBuilder& net, LayerIndex from,
                                         const Extents& extents, Random& random) {
  std::array<Window, 3> windows;
  std::array<std::int64_t, 3> output_padding{};
  for (const Axis axis : spatial_axes) {
    if (axis == Axis::D && extents.depth == 1) continue;
    const std::size_t i = static_cast<std::size_t>(spatial_index(axis));
    windows[i] = {.kernel = random.number(1, 4),
                  .stride = random.number(1, 3),
                  .dilation = random.number(1, 2)};
    windows[i].pad_before = random.number(0, (windows[i].span() - 1) / 2);
    windows[i].pad_after = random.number(0, (windows[i].span() - 1) / 2);
    output_padding[i] = random.number(0, std::max(windows[i].stride, windows[i].dilation) - 1);
  }
  return net.transposed_convolution(from, extents.filters, windows, output_padding,
                                    random.number(0, 1) == 1);
}

/// Enlarges or reduces by a ratio along the height, and to a size along the width.
inline UpsampleLayer resizing(const Extents& extents, Random& random) {
  UpsampleLayer made{.linear = random.number(0, 2) > 0,
                     .coordinates = static_cast<Coordinates>(random.number(0, 5)),
                     .rounding = static_cast<Rounding>(random.number(0, 3))};
  if (extents.depth > 1) made.size[0] = random.number(2, 5);
  made.scale = {
      {{extents.depth > 1 ? 0 : 1, 1}, {random.number(2, 5), random.number(2, 4)}, {0, 1}}};
  made.size[2] = random.number(2, 12);
  return made;
}

/// Joins the probe and another tensor, in either order. The other tensor has the probe's shape, or
/// is a vector of channels per sample, a map of positions, or a single row. The greater of two
/// tensors is not taken of means, because rounding would decide whether they are equal.
inline LayerIndex binary(NetworkBuilder& net, BinaryFunction function, LayerIndex x,
                         LayerIndex probe, const Extents& extents, unsigned seed, Random& random) {
  LayerIndex other = net.convolution(x, seed % 4 == 2 ? 1 : extents.channels, Window{});
  const bool compares = function == BinaryFunction::Maximum || function == BinaryFunction::Minimum;
  if (seed % 4 == 1)
    other = compares ? net.pool(LayerKind::MaxPool, other,
                                {Window{.kernel = extents.depth},
                                 {.kernel = extents.height},
                                 {.kernel = extents.width}})
                     : net.global_average_pool(other);
  if (seed % 4 == 3)
    other = net.pool(LayerKind::AveragePool, other,
                     {Window{}, {.kernel = extents.height, .stride = 1}, Window{}});
  if (function == BinaryFunction::Divide)  // a divisor away from zero
    return net.binary(function, probe, net.pointwise(PointwiseFunction::Exp, net.tanh(other)));
  return random.number(0, 1) == 1 ? net.binary(function, other, probe)
                                  : net.binary(function, probe, other);
}

inline LayerIndex reduction(NetworkBuilder& net, LayerIndex probe, unsigned seed) {
  switch (seed) {
    case 0: return net.reduce(Reduction::Max, probe, {Axis::C});
    case 1: return net.reduce(Reduction::Sum, probe, {Axis::C});
    case 2: return net.reduce(Reduction::Mean, probe, {Axis::H, Axis::W});
    case 3: return net.reduce(Reduction::Mean, probe, {Axis::C, Axis::W});
    case 4: return net.reduce(Reduction::Sum, probe, {Axis::H});
    default: return net.reduce(Reduction::Mean, probe, {Axis::C, Axis::D, Axis::H, Axis::W});
  }
}

/// A plain cross-entropy, one with smoothed labels, one in which some labels do not count, and one
/// with all options.
inline LayerIndex cross_entropy(NetworkBuilder& net, LayerIndex probe, std::int64_t classes,
                                unsigned seed) {
  CrossEntropyLayer options;
  std::vector<float> weights;
  if (seed % 2 == 1) options.label_smoothing = 0.2;
  if (seed % 4 >= 2) options.ignore_index = seed % 4 == 2 ? -100 : 0;
  if (seed % 4 == 3)
    for (std::int64_t c = 0; c < classes; ++c) weights.push_back(0.5F + static_cast<float>(c) / 4);
  return net.cross_entropy(probe, options, weights);
}

/// Sums over the batch or over each sample, of all labels or of some.
inline DiceLayer dice_options(unsigned seed) {
  DiceLayer options{.sums = seed % 2 == 1 ? SumsOver::Sample : SumsOver::Batch};
  if (seed % 4 >= 2) options.ignore_index = seed % 4 == 2 ? 255 : 0;
  return options;
}

inline LayerIndex dice_cross_entropy(NetworkBuilder& net, LayerIndex probe, std::int64_t classes,
                                     unsigned seed) {
  DiceCrossEntropyLayer options{.dice = dice_options(seed)};
  std::vector<float> weights;
  if (seed % 4 != 0) options.dice_weight = 0.5;
  if (seed % 4 >= 2) options.cross_entropy_weight = 2;
  if (seed % 4 == 3)
    for (std::int64_t c = 0; c < classes; ++c) weights.push_back(0.5F + static_cast<float>(c) / 4);
  return net.dice_cross_entropy(probe, options, weights);
}

inline Case make_case(LayerType type, unsigned seed, Random& random) {
  const std::int64_t batch = random.number(2, 7);
  const Extents extents = extents_of(type.kind, seed, random);
  const auto [channels, filters, groups, depth, height, width] = extents;
  NetworkBuilder net(batch, random.number(1, batch));
  const LayerIndex x = net.input({random.number(1, 4), depth, height, width});
  const LayerIndex probe = net.convolution(x, channels, Window{});
  const std::array<Window, 3> windows{random.window(depth), random.window(height),
                                      random.window(width)};
  LayerIndex y = -1;
  switch (type.kind) {
    case LayerKind::Convolution:
      y = net.convolution(probe, filters, windows, random.number(0, 1) == 1);
      break;
    case LayerKind::MaxPool:
    case LayerKind::AveragePool: y = net.pool(type.kind, probe, windows); break;
    case LayerKind::GlobalAveragePool: y = net.global_average_pool(probe); break;
    case LayerKind::BatchNorm: y = net.batch_norm(probe); break;
    case LayerKind::Pointwise:
      y = net.pointwise(tested(type.function), into_domain(net, type.function, probe));
      break;
    case LayerKind::Add: y = net.add({probe, net.convolution(x, channels, Window{})}); break;
    case LayerKind::Binary: y = binary(net, type.binary, x, probe, extents, seed, random); break;
    case LayerKind::FullyConnected: y = net.fully_connected(probe, filters); break;
    case LayerKind::Dropout: y = net.dropout(probe); break;
    case LayerKind::PReLU: y = net.prelu(probe); break;
    case LayerKind::LayerNorm: y = net.layer_norm(probe); break;
    case LayerKind::Softmax: y = net.softmax(probe); break;
    case LayerKind::LocalResponseNorm:
      y = net.local_response_norm(probe, {.size = 3, .alpha = 0.5, .beta = 0.75, .k = 2});
      break;
    case LayerKind::InstanceNorm: y = net.instance_norm(probe); break;
    case LayerKind::GroupNorm:
      y = net.group_norm(probe, channels % 2 == 0   ? channels / 2
                                : channels % 3 == 0 ? channels / 3
                                                    : 1);
      break;
    case LayerKind::SoftmaxCrossEntropy: y = cross_entropy(net, probe, channels, seed); break;
    case LayerKind::DiceLoss: y = net.dice_loss(net.sigmoid(probe), dice_options(seed)); break;
    case LayerKind::DiceCrossEntropy: y = dice_cross_entropy(net, probe, channels, seed); break;
    case LayerKind::Concat:
      y = net.concat(
          {net.convolution(x, filters, Window{}), probe, net.convolution(x, 1, Window{})});
      break;
    case LayerKind::Pad:
      if (seed >= 2) {
        const auto around = [&](std::int64_t extent) {
          return Window{.pad_before = random.number(0, std::min<std::int64_t>(3, extent - 1)),
                        .pad_after = random.number(0, std::min<std::int64_t>(3, extent - 1))};
        };
        y = net.pad(probe, {around(depth), around(height), around(width)},
                    static_cast<PaddingMode>(seed / 2));
        break;
      }
      y = net.pad(probe,
                  {depth > 1 ? random.padded(depth) : Window{}, random.padded(height),
                   random.padded(width)},
                  seed % 2 == 0 ? std::array<std::int64_t, 2>{} : random.padding(channels));
      net.fill_padding(seed == 0 ? 0 : -1.5);
      break;
    case LayerKind::Upsample:
      y = seed < 2 ? net.upsample(probe, {depth > 1 ? 2 : 1, 2 + seed, random.number(1, 3)},
                                  random.number(0, 2) > 0)
                   : net.resize(probe, resizing(extents, random));
      break;
    case LayerKind::Reduce: y = reduction(net, probe, seed); break;
    case LayerKind::ChannelShuffle:
      y = net.channel_shuffle(net.convolution(probe, 6, Window{}), seed % 2 == 0 ? 2 : 3);
      break;
    case LayerKind::DepthToSpace:
      y = net.depth_to_space(net.convolution(probe, 12, Window{}), {depth > 1 ? 2 : 1, 2, 3},
                             seed % 2 == 0 ? DepthOrder::CRD : DepthOrder::DCR);
      break;
    case LayerKind::SpaceToDepth:
      y = net.space_to_depth(net.upsample(probe, {1, 2, 2}, false), {1, 2, 2},
                             seed % 2 == 0 ? DepthOrder::CRD : DepthOrder::DCR);
      break;
    case LayerKind::TransposedConvolution:
      y = transposed_convolution(net, probe, extents, random);
      break;
    case LayerKind::ElementwiseLoss: y = net.element_loss(tested(type.loss), probe); break;
    case LayerKind::Input: break;
  }
  if (is_loss(type.kind)) return {net.finish(), probe, y, y};
  if (is_convolution(type.kind)) net.in_groups(groups);
  return {net.finish_with_loss(y), probe, y, y + 1};
}

}  // namespace stratplan::test::guard_cases
