#include "report/operator_table.hpp"

#include <fmt/format.h>

#include "model/base/json/json.hpp"
#include "model/network/onnx.hpp"
#include "model/partition/decomposition.hpp"

namespace stratplan {
namespace {

/// A small layer of a kind, with as many elements along each axis as any split needs.
Layer small_layer(LayerType type) {
  constexpr std::int64_t extent = 8;
  Layer layer{.name = std::string(name_of(type)), .kind = type.kind, .inputs = {0}};
  layer.input = layer.output = {{extent, extent, extent, extent, extent}};
  if (auto* convolution = std::get_if<ConvolutionLayer>(&layer.attributes))
    convolution->filters = extent;
  if (auto* connected = std::get_if<FullyConnectedLayer>(&layer.attributes)) {
    connected->filters = extent;
    for (const Axis axis : spatial_axes) layer.output[axis] = 1;
  }
  for (const Axis axis : spatial_axes)
    if (layer.reduces(axis)) layer.output[axis] = 1;
  if (type.kind == LayerKind::Binary || type.kind == LayerKind::Concat) {
    layer.inputs = {0, 0};
    layer.input_shapes = {layer.input, layer.input};
    if (type.kind == LayerKind::Concat) layer.output[Axis::C] *= 2;
  }
  return layer;
}

/// The letters of the dimensions along which layers of a kind can be split.
std::string splits_of(LayerType type) {
  const Layer layer = small_layer(type);
  std::string letters;
  for (const Dim dim : {Dim::N, Dim::C, Dim::F, Dim::D, Dim::H, Dim::W})
    if (!check(layer, {ProcessGrid::uniform(2, dim)}))
      letters += dim_letters[static_cast<std::size_t>(dim)];
  return letters;
}

}  // namespace

Table operator_table() {
  Table table{{{"operator", Table::Align::Left},
               {"opset"},
               {"layers, with the dimensions that split them", Table::Align::Left}},
              {}};
  for (const auto& [name, since, layers] : imported_operators()) {
    std::string all;
    for (const LayerType& type : layers)
      all += fmt::format("{}{} ({})", all.empty() ? "" : ", ", name_of(type), splits_of(type));
    table.rows.push_back({name, fmt::format("{}", since), all});
  }
  return table;
}

Json operators_as_json() {
  Json all = Json::array();
  for (const auto& [name, since, layers] : imported_operators()) {
    Json described = Json::array();
    for (const LayerType& type : layers)
      described.push_back({{"kind", std::string(name_of(type))}, {"splits", splits_of(type)}});
    all.push_back({{"operator", name}, {"since", since}, {"layers", described}});
  }
  return all;
}

}  // namespace stratplan
