#include "report/import_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "model/base/text.hpp"
#include "model/partition/decomposition.hpp"

namespace stratplan {
namespace {

using enum Table::Align;

std::string treatment_of(const ImportedParameter& parameter) {
  return parameter.running ? "running" : std::string(name_of(parameter.learning));
}

/// Returns the roles of a parameter with the layers that read it: "weights of conv1, conv2".
std::string uses_of(const ImportedParameter& parameter, std::size_t most) {
  std::string text;
  std::string role;
  for (std::size_t i = 0; i < std::min(most, parameter.uses.size()); ++i) {
    const ImportedParameter::Use& use = parameter.uses[i];
    text += use.role == role ? ", " : (text.empty() ? "" : "; ") + use.role + " of ";
    text += use.layer;
    role = use.role;
  }
  if (parameter.uses.size() > most)
    text += fmt::format(" and {} more", parameter.uses.size() - most);
  return text;
}

bool is_exceptional(const ImportedParameter& parameter) {
  return parameter.learning != Learning::Trained || parameter.uses.size() > 1;
}

std::string totals_of(const ImportReport& report) {
  const ImportedTotals& totals = report.totals;
  const auto tensors = [&](const std::string& treatment) {
    return std::count_if(
        report.parameters.begin(), report.parameters.end(),
        [&](const ImportedParameter& each) { return treatment_of(each) == treatment; });
  };
  Table table{{{"parameters", Left}, {"tensors"}, {"numbers"}, {"", Left}}, {}};
  const auto row = [&](const char* learning, std::int64_t numbers, const char* meaning) {
    if (const auto count = tensors(learning); count > 0)
      table.rows.push_back({learning, std::to_string(count), std::to_string(numbers), meaning});
  };
  row("trainable", totals.trainable, "");
  row("frozen", totals.frozen, "keep their values");
  row("running", totals.running, "running means and variances, without a gradient");
  row("constant", totals.constant, "in the network file");
  std::string text = to_text(table);
  text += fmt::format("The model's file holds {} numbers in tensors: {} in these parameters",
                      totals.file, totals.file - totals.buffers - totals.other);
  if (totals.buffers > 0)
    text += fmt::format(", {} in buffers, which are kept for export alone", totals.buffers);
  if (totals.other > 0) text += fmt::format(", {} in others, which are not kept", totals.other);
  return text + ".\n";
}

std::string rows_of(const ImportReport& report, bool verbose) {
  constexpr std::size_t most_rows = 20, most_uses = 3;
  Table table{{{"parameter", Left}, {"shape", Left}, {"", Left}, {"read as", Left}}, {}};
  std::size_t left = 0;
  for (const ImportedParameter& parameter : report.parameters) {
    if (!verbose && !is_exceptional(parameter)) continue;
    if (!verbose && table.rows.size() == most_rows) {
      ++left;
      continue;
    }
    table.rows.push_back({parameter.name, fmt::format("{}", fmt::join(parameter.shape, "x")),
                          treatment_of(parameter),
                          uses_of(parameter, verbose ? parameter.uses.size() : most_uses)});
  }
  if (table.rows.empty()) return "";
  const std::string more =
      left == 0 ? "" : fmt::format("... and {} more; --verbose lists them\n", left);
  return "\n" + to_text(table) + more;
}

std::string paragraph(const char* title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  return fmt::format("\n{}:\n  {}\n", title, fmt::join(lines, "\n  "));
}

Json to_json(const ImportedParameter& parameter) {
  Json uses = Json::array();
  for (const auto& [layer, role] : parameter.uses)
    uses.push_back({{"layer", layer}, {"role", role}});
  return {{"name", parameter.name},
          {"shape", parameter.shape},
          {"treatment", treatment_of(parameter)},
          {"layers", uses}};
}

}  // namespace

std::string to_text(const ImportReport& report, bool verbose) {
  std::string text = totals_of(report) + rows_of(report, verbose);
  text += paragraph("decided", report.decisions);
  text += '\n';
  for (const auto& [layer, kind, reason] : report.losses)
    text += fmt::format("loss        {}{}: {}\n", kind,
                        report.losses.size() > 1 ? fmt::format(" ({})", layer) : "", reason);
  if (!report.statistics.empty()) text += fmt::format("statistics  {}\n", report.statistics);
  for (const std::string& line : report.left_out) text += fmt::format("left out    {}\n", line);
  return text;
}

Json to_json(const ImportReport& report) {
  Json parameters = Json::array();
  for (const ImportedParameter& parameter : report.parameters)
    parameters.push_back(to_json(parameter));
  Json losses = Json::array();
  for (const auto& [layer, kind, reason] : report.losses)
    losses.push_back({{"layer", layer}, {"kind", kind}, {"reason", reason}});
  const ImportedTotals& totals = report.totals;
  return {{"parameters", parameters},
          {"totals",
           {{"trainable", totals.trainable},
            {"frozen", totals.frozen},
            {"running", totals.running},
            {"constant", totals.constant},
            {"buffers", totals.buffers},
            {"other", totals.other},
            {"file", totals.file}}},
          {"decisions", report.decisions},
          {"left_out", report.left_out},
          {"losses", losses},
          {"statistics", report.statistics}};
}

// ---------------------------------------------------------------- operators

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
