#include "model/network/network.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "model/base/json.hpp"

namespace stratplan {

std::vector<LayerIndex> Network::consumers(LayerIndex index) const {
  std::vector<LayerIndex> readers;
  for (LayerIndex reader = 0; reader < size(); ++reader) {
    readers.insert(readers.end(), static_cast<std::size_t>(std::ranges::count(layer(reader).inputs, index)), reader);
  }
  return readers;
}

std::optional<LayerIndex> Network::find(const std::string& layer_name) const {
  const auto found = std::ranges::find(layers, layer_name, &Layer::name);
  return found == layers.end() ? std::nullopt : std::optional<LayerIndex>(static_cast<LayerIndex>(found - layers.begin()));
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

std::string Network::fingerprint() const {
  std::string text = fmt::format("batch {} statistics {}\n", batch, statistics_samples);
  for (const Layer& each : layers) {
    fmt::format_to(std::back_inserter(text), "{} {} from {} filters {} bias {} count_padding {} epsilon {} slope {} probability {} in {} out {}",
                   each.name, name_of(each.kind), each.inputs, each.filters, each.bias, each.count_padding, each.epsilon, each.slope,
                   each.probability, each.input.extent, each.output.extent);
    for (const Window& window : each.windows) {
      fmt::format_to(std::back_inserter(text), " k{} s{} d{} p{},{}", window.kernel, window.stride, window.dilation, window.pad_before,
                     window.pad_after);
    }
    if (each.groups > 1) {
      fmt::format_to(std::back_inserter(text), " groups {}", each.groups);
    }
    text += '\n';
  }
  return fingerprint_of(text);
}

}  // namespace stratplan
