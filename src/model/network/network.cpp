#include "model/network/network.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "model/base/json/json.hpp"

namespace stratplan {

std::vector<LayerIndex> Network::consumers(LayerIndex index) const {
  std::vector<LayerIndex> readers;
  for (LayerIndex reader = 0; reader < size(); ++reader) {
    readers.insert(readers.end(),
                   static_cast<std::size_t>(std::ranges::count(layer(reader).inputs, index)),
                   reader);
  }
  return readers;
}

std::optional<LayerIndex> Network::find(const std::string& layer_name) const {
  const auto found = std::ranges::find(layers, layer_name, &Layer::name);
  return found == layers.end()
             ? std::nullopt
             : std::optional<LayerIndex>(static_cast<LayerIndex>(found - layers.begin()));
}

std::int64_t Network::parameter_count() const {
  std::int64_t sum = 0;
  for (const Layer& each : layers) {
    sum += each.parameter_count();
  }
  return sum;
}

Flops Network::forward_flops() const {
  Flops sum{0};
  for (const Layer& each : layers) {
    sum += each.forward_flops();
  }
  return sum;
}

namespace {

// The text behind a fingerprint lists every attribute for every layer. For attributes that a layer
// does not have, it lists the default value.

template <class Attributes>
Attributes own_or_usual(const Layer& layer) {
  const auto* own = std::get_if<Attributes>(&layer.attributes);
  return own ? *own : Attributes{};
}

double epsilon(const Layer& layer) {
  return has_statistics(layer.kind) ? layer.as<NormalizationLayer>().epsilon
                                    : own_or_usual<DiceLayer>(layer).epsilon;
}

double constant(const Layer& layer, PointwiseFunction function, std::size_t which = 0) {
  return layer.type() == function ? layer.as<Activation>().constants[which]
                                  : usual_constants(function)[which];
}

/// Returns, as text, the layer's constants that differ from the usual ones. The constants of
/// LeakyRelu, Elu and Clip are left out, because fingerprint() lists them for every layer.
std::string other_constants(const Layer& layer) {
  using enum PointwiseFunction;
  const auto* pointwise = std::get_if<Activation>(&layer.attributes);
  if (!pointwise) return "";
  const PointwiseFunction function = pointwise->function;
  if (function == LeakyRelu || function == Elu || function == Clip) return "";
  const auto usual = usual_constants(function);
  std::string text;
  for (std::size_t i = 0; i < row_of(function).constants.size(); ++i)
    if (pointwise->constants[i] != usual[i])
      text += fmt::format(" {} {}", row_of(function).constants[i].name, pointwise->constants[i]);
  return text;
}

}  // namespace

std::string Network::fingerprint() const {
  std::string text = fmt::format("batch {} statistics {}{}\n", batch, statistics_samples,
                                 local_statistics ? " local" : "");
  if (training != Training{}) {
    fmt::format_to(std::back_inserter(text), "optimizer {} micro_batches {}\n",
                   name_of(training.optimizer), training.micro_batches);
  }
  if (running_momentum > 0) text += fmt::format("running {}\n", running_momentum);
  for (const Layer& each : layers) {
    fmt::format_to(std::back_inserter(text),
                   "{} {} from {} filters {} bias {} count_padding {} epsilon {} slope {} "
                   "probability {} in {} out {}",
                   each.name, name_of(each.type()), each.inputs, each.filters(), each.bias(),
                   own_or_usual<PoolLayer>(each).count_padding, epsilon(each),
                   constant(each, PointwiseFunction::LeakyRelu),
                   own_or_usual<DropoutLayer>(each).probability, each.input.extent,
                   each.output.extent);
    for (const Window& window : each.windows()) {
      fmt::format_to(std::back_inserter(text), " k{} s{} d{} p{},{}", window.kernel, window.stride,
                     window.dilation, window.pad_before, window.pad_after);
    }
    const auto response = own_or_usual<LocalResponse>(each);
    fmt::format_to(std::back_inserter(text), " alpha {} clip {} {} groups {} response {} {} {} {}",
                   constant(each, PointwiseFunction::Elu), constant(each, PointwiseFunction::Clip),
                   constant(each, PointwiseFunction::Clip, 1), each.groups(), response.size,
                   response.alpha, response.beta, response.k);
    text += other_constants(each);
    for (const Scale& scale : each.scales()) {
      if (scale != Scale{}) {
        fmt::format_to(std::back_inserter(text), " x{}{}", scale.factor,
                       scale.linear ? " linear" : "");
      }
    }
    text += '\n';
  }
  return fingerprint_of(text);
}

}  // namespace stratplan
