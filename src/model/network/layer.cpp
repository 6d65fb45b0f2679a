#include "model/network/layer.hpp"

#include <algorithm>

#include "model/base/assert.hpp"

namespace stratplan {

namespace {

/// Returns the member that `get` selects, or `none` if the held attributes have no such member.
template <class Value, class Get>
const Value& own_or(const Value& none, const LayerAttributes& attributes, Get get) {
  return std::visit(
      [&](const auto& own) -> const Value& {
        if constexpr (requires { get(own); })
          return get(own);
        else
          return none;
      },
      attributes);
}

constexpr Windows no_windows{};

}  // namespace

const Windows& Layer::windows() const {
  return own_or(no_windows, attributes,
                [](auto& own) -> decltype((own.windows)) { return own.windows; });
}

std::array<Scale, 3> Layer::scales() const {
  std::array<Scale, 3> scales;
  if (const auto* pad = std::get_if<PadLayer>(&attributes);
      pad && pad->mode != PaddingMode::Constant) {
    const Ends ends = pad->mode == PaddingMode::Edge      ? Ends::Clamp
                      : pad->mode == PaddingMode::Reflect ? Ends::Mirror
                                                          : Ends::Wrap;
    for (std::size_t i = 0; i < scales.size(); ++i)
      scales[i] = {.start = -pad->windows[i].pad_before, .ends = ends};
  }
  if (const auto* made = std::get_if<DepthToSpaceLayer>(&attributes))
    for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = {.unit = made->block[i]};
  const auto* own = std::get_if<UpsampleLayer>(&attributes);
  if (!own) return scales;
  for (const Axis axis : spatial_axes) {
    const auto i = static_cast<std::size_t>(spatial_index(axis));
    Ratio ratio = own->scale[i];
    if (ratio.numerator == 0) ratio = {output[axis], input[axis]};
    scales[i] =
        scale_of({ratio, own->linear, own->coordinates, own->rounding}, input[axis], output[axis]);
  }
  return scales;
}

std::int64_t Layer::filters() const {
  return own_or(std::int64_t{0}, attributes,
                [](auto& own) -> decltype((own.filters)) { return own.filters; });
}

bool Layer::bias() const {
  return own_or(false, attributes, [](auto& own) -> decltype((own.bias)) { return own.bias; });
}

std::int64_t Layer::groups() const {
  return own_or(std::int64_t{1}, attributes,
                [](auto& own) -> decltype((own.groups)) { return own.groups; });
}

const CrossEntropyLayer* Layer::cross_entropy() const {
  const auto* both = std::get_if<DiceCrossEntropyLayer>(&attributes);
  return both ? &both->entropy : std::get_if<CrossEntropyLayer>(&attributes);
}

const DiceLayer* Layer::dice() const {
  const auto* both = std::get_if<DiceCrossEntropyLayer>(&attributes);
  return both ? &both->dice : std::get_if<DiceLayer>(&attributes);
}

bool Layer::sums_whole_batch() const {
  return (dice() && dice()->sums == SumsOver::Batch) ||
         (cross_entropy() && cross_entropy()->counts_labels());
}

std::optional<std::int64_t> Layer::ignored_label() const {
  if (const CrossEntropyLayer* entropy = cross_entropy()) return entropy->ignore_index;
  const DiceLayer* own = dice();
  return own ? own->ignore_index : std::nullopt;
}

LayerType Layer::type() const {
  switch (kind) {
    case LayerKind::Pointwise: return as<Activation>().function;
    case LayerKind::Binary: return as<BinaryFunction>();
    case LayerKind::ElementwiseLoss: return as<ElementLoss>().function;
    default: return kind;
  }
}

void Layer::has_other_attributes() const {
  SP_ASSERT(false, "layer={} kind={} attributes={}", name, row_of(kind).name, attributes.index());
}

Shape Layer::weights() const {
  if (is_convolution(kind)) {
    const bool transposed = kind == LayerKind::TransposedConvolution;
    const std::int64_t outer = transposed ? input[Axis::C] : filters(),
                       inner = transposed ? filters() : input[Axis::C];
    const auto& [depth, height, width] = windows();
    return {{outer, inner / groups(), depth.kernel, height.kernel, width.kernel}};
  }
  if (kind == LayerKind::FullyConnected) {
    return {{filters(), input[Axis::C], input[Axis::D], input[Axis::H], input[Axis::W]}};
  }
  return {{0, 0, 0, 0, 0}};
}

Shape Layer::input_shape(std::size_t index) const {
  return input_shapes.empty() ? input : input_shapes[index];
}

bool Layer::reduces(Axis axis) const {
  if (kind == LayerKind::Reduce) return as<ReduceLayer>().axes[static_cast<std::size_t>(axis)];
  return kind == LayerKind::GlobalAveragePool && is_spatial(axis);
}

bool Layer::resamples() const {
  const auto* pad = std::get_if<PadLayer>(&attributes);
  return kind == LayerKind::Upsample ||
         (pad && (pad->mode == PaddingMode::Edge || pad->mode == PaddingMode::Reflect));
}

std::array<std::int64_t, axis_count> Layer::origin(std::size_t index) const {
  std::int64_t channel = 0;
  if (kind == LayerKind::Concat)
    for (std::size_t before = 0; before < index; ++before) channel += input_shapes[before][Axis::C];
  if (kind == LayerKind::Pad) channel = as<PadLayer>().channel_padding[0];
  const auto& [depth, height, width] = windows();
  return {0, channel, depth.pad_before, height.pad_before, width.pad_before};
}

std::vector<std::pair<ParameterRole, Shape>> Layer::parameters() const {
  Shape channels;
  channels[Axis::C] = output[Axis::C];
  if (is_contraction(kind)) {
    std::vector<std::pair<ParameterRole, Shape>> of{{ParameterRole::Weights, weights()}};
    if (bias()) of.emplace_back(ParameterRole::Bias, channels);
    return of;
  }
  if (has_statistics(kind))
    return {{ParameterRole::Scale, channels}, {ParameterRole::Shift, channels}};
  if (kind == LayerKind::PReLU)
    return {{ParameterRole::Slope, as<PReluLayer>().one_slope ? Shape{} : channels}};
  if (cross_entropy() && cross_entropy()->weighted)
    return {{ParameterRole::ClassWeights, channels}};
  return {};
}

bool Layer::is_implied(ParameterRole role) const {
  if (!has_statistics(kind)) return false;
  const auto& own = as<NormalizationLayer>();
  return role == ParameterRole::Scale ? !own.has_scale() : !own.has_shift();
}

std::int64_t Layer::parameter_count() const {
  std::int64_t sum = 0;
  for (const auto& [role, shape] : parameters())
    if (!is_implied(role)) sum += shape.elements();
  return sum;
}

double Layer::fan_in() const {
  double products =
      static_cast<double>(weights().elements() / filters());  // the weights of one filter
  if (kind == LayerKind::TransposedConvolution) {
    for (const Window& window : windows()) {
      products /= static_cast<double>(window.stride);
    }
  }
  return products;
}

double Layer::longest_sum() const {
  const Shape& iterated = kind == LayerKind::TransposedConvolution ? input : output;
  const double positions = static_cast<double>(iterated.elements() / iterated[Axis::C]);
  switch (kind) {
    case LayerKind::Convolution:
    case LayerKind::TransposedConvolution:
    case LayerKind::FullyConnected: {
      const Shape of_weights = weights();
      const double by_filter = static_cast<double>(of_weights.elements() / of_weights[Axis::N]);
      const double by_channel =
          static_cast<double>(of_weights.elements() / of_weights[Axis::C] / groups());
      return std::max({positions, by_filter, by_channel});
    }
    case LayerKind::BatchNorm:
    case LayerKind::InstanceNorm:
    case LayerKind::GroupNorm:
    case LayerKind::PReLU:
    case LayerKind::DiceLoss: return positions;
    case LayerKind::DiceCrossEntropy:
      return std::max(positions, static_cast<double>(input[Axis::C]));
    case LayerKind::LayerNorm: return std::max(positions, static_cast<double>(input[Axis::C]));
    case LayerKind::Reduce: return static_cast<double>(terms_of(as<ReduceLayer>().axes, input));
    case LayerKind::Softmax: return static_cast<double>(input[Axis::C]);
    case LayerKind::LocalResponseNorm: return static_cast<double>(as<LocalResponse>().size);
    case LayerKind::Binary:
      return static_cast<double>(output.elements() /
                                 std::min(input_shapes[0].elements(), input_shapes[1].elements()));
    case LayerKind::Pad: {
      double terms = 1;  // copies of an element, most of them at a corner
      if (as<PadLayer>().mode == PaddingMode::Edge)
        for (const Window& window : windows())
          terms *= static_cast<double>(1 + std::max(window.pad_before, window.pad_after));
      return terms;
    }
    case LayerKind::Upsample:
      return std::max(1.0, static_cast<double>(output.elements() / input.elements()));
    case LayerKind::Input:
    case LayerKind::MaxPool:
    case LayerKind::AveragePool:
    case LayerKind::GlobalAveragePool:
    case LayerKind::Pointwise:
    case LayerKind::Add:
    case LayerKind::Dropout:
    case LayerKind::SoftmaxCrossEntropy:
    case LayerKind::ElementwiseLoss:
    case LayerKind::Concat:
    case LayerKind::ChannelShuffle:
    case LayerKind::DepthToSpace:
    case LayerKind::SpaceToDepth: return 1;
  }
  SP_ASSERT(false, "kind={}", static_cast<int>(kind));
  return 1;
}

Flops Layer::forward_flops() const {
  if (!is_contraction(kind)) {
    return {0};
  }
  // Every output element is the sum of one product per weight of its filter. In a transposed
  // convolution, every input element takes part in one product per weight of its channel.
  const bool transposed = kind == LayerKind::TransposedConvolution;
  const Shape& iterated = transposed ? input : output;
  const std::int64_t products = weights().elements() / (transposed ? input[Axis::C] : filters());
  return {2 * static_cast<double>(iterated.elements()) * static_cast<double>(products)};
}

}  // namespace stratplan
