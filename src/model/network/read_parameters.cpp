#include "model/network/read_parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/base/error.hpp"
#include "model/base/suggestion.hpp"

namespace stratplan {
namespace {

constexpr const char* running_mean = "running_mean";
constexpr const char* running_var = "running_var";

std::vector<float> numbers(const Json& json) {
  return json.is_array() ? json.get<std::vector<float>>() : std::vector<float>{json.get<float>()};
}

}  // namespace

ParameterReader::ParameterReader(const Json& document, std::string file)
    : document_(document), file_(std::move(file)) {}

ParameterIndex ParameterReader::index_of(const std::string& name) {
  const auto [found, fresh] =
      index_.try_emplace(name, static_cast<ParameterIndex>(parameters_.size()));
  if (fresh) parameters_.push_back({.name = name});
  return found->second;
}

void ParameterReader::read_layer(const Json& json, const std::string& pointer, Layer& layer) {
  if (json.contains("class_weights")) {
    const ParameterIndex at =
        index_of(fmt::format("{}.{}", layer.name, name_of(ParameterRole::ClassWeights)));
    layer.declared[static_cast<std::size_t>(ParameterRole::ClassWeights)] = at;
    parameters_[static_cast<std::size_t>(at)].learning = Learning::Constant;
    parameters_[static_cast<std::size_t>(at)].values = numbers(json["class_weights"]);
  }
  if (!json.contains("parameters")) return;
  const Json& names = json["parameters"];
  for (const auto& [role_name, name] : names.items()) {
    if (role_name == running_mean || role_name == running_var) {
      if (layer.kind != LayerKind::BatchNorm)
        throw InputError(file_, fmt::format("{}/parameters/{}", pointer, role_name),
                         "only a layer of kind batch_norm has running statistics");
      continue;
    }
    const auto* const role = std::ranges::find(parameter_role_names, role_name);
    layer.declared[static_cast<std::size_t>(role - parameter_role_names.begin())] =
        index_of(name.get<std::string>());
  }
  if (names.contains(running_mean) != names.contains(running_var))
    throw InputError(file_, pointer + "/parameters",
                     "expected names of both running_mean and running_var, or of neither");
  if (!names.contains(running_mean)) return;
  const auto mean = names[running_mean].get<std::string>(),
             variance = names[running_var].get<std::string>();
  const auto found = std::ranges::find_if(running_, [&](const RunningNames& known) {
    return known.mean == mean || known.variance == variance;
  });
  if (found != running_.end() && (found->mean != mean || found->variance != variance))
    throw InputError(file_, pointer + "/parameters",
                     fmt::format("an earlier layer has the running statistics {} and {}; both must "
                                 "be shared, or neither",
                                 found->mean, found->variance));
  layer.running = static_cast<int>(found - running_.begin());
  if (found == running_.end()) running_.push_back({mean, variance});
}

/// A name that no layer gave may be the name that a layer's parameter has by default.
void ParameterReader::read_declaration(const Json& json, const std::string& pointer,
                                       Network& network) const {
  const auto name = json["name"].get<std::string>();
  const auto found = index_.find(name);
  if (found == index_.end()) {
    std::vector<std::string> known;
    for (LayerIndex index = 0; index < network.size(); ++index)
      for (const auto& [role, shape] : network.layer(index).parameters())
        known.push_back(network.parameter_name(index, role));
    throw InputError(
        file_, pointer + "/name",
        fmt::format("no layer has a parameter named {}{}", name, suggestion(name, known)));
  }
  Parameter& parameter = network.parameters[static_cast<std::size_t>(found->second)];
  if (parameter.learning == Learning::Constant)
    throw InputError(file_, pointer,
                     fmt::format("{} is the key \"class_weights\" of a layer, which says all about "
                                 "the weights of its classes",
                                 name));
  if (json.contains("value")) {
    parameter.learning = Learning::Constant;
    parameter.values = numbers(json["value"]);
    if (json.value("trainable", false))
      throw InputError(file_, pointer,
                       "a parameter with the key \"value\" is a constant, so it is not trainable");
  } else if (!json.value("trainable", true)) {
    parameter.learning = Learning::Frozen;
  }
  if (!json.contains("stored")) return;
  const Json& stored = json["stored"];
  parameter.stored = {stored["shape"].get<std::vector<std::int64_t>>(),
                      stored.value("transposed", false), stored.value("channels_last", false)};
}

void ParameterReader::finish(Network& network) {
  const Json none = Json::array();
  const Json& declarations = document_.contains("parameters") ? document_["parameters"] : none;
  std::set<std::string> wanted, seen;
  for (const Json& each : declarations) wanted.insert(each["name"].get<std::string>());
  for (Layer& layer : network.layers)  // the document may use the names that parameters have anyway
    for (const auto& [role, shape] : layer.parameters()) {
      ParameterIndex& at = layer.declared[static_cast<std::size_t>(role)];
      const std::string name = fmt::format("{}.{}", layer.name, name_of(role));
      if (at < 0 && (wanted.contains(name) || index_.contains(name))) at = index_of(name);
    }
  network.parameters = std::move(parameters_);
  for (std::size_t i = 0; i < declarations.size(); ++i) {
    const std::string pointer = fmt::format("/parameters/{}", i);
    if (!seen.insert(declarations[i]["name"].get<std::string>()).second)
      throw InputError(file_, pointer + "/name", "an earlier entry has the same name");
    read_declaration(declarations[i], pointer, network);
  }
  network.running = std::move(running_);
  read_buffers(network);
}

void ParameterReader::read_buffers(Network& network) const {
  if (!document_.contains("buffers")) return;
  for (const Json& each : document_["buffers"]) {
    const std::string pointer = fmt::format("/buffers/{}", network.buffers.size());
    const StateBuffer& buffer = network.buffers.emplace_back(StateBuffer{
        each["name"], each["shape"].get<std::vector<std::int64_t>>(), numbers(each["value"])});
    const auto elements = element_count(buffer.shape);
    if (!elements || *elements > StateBuffer::most_elements)
      throw InputError(file_, pointer + "/shape",
                       fmt::format("expected at most {} elements", StateBuffer::most_elements));
    if (buffer.values.size() != 1 && std::ssize(buffer.values) != *elements)
      throw InputError(file_, pointer + "/value",
                       fmt::format("expected 1 or {} values of the buffer {}, found {}", *elements,
                                   buffer.name, buffer.values.size()));
  }
}

}  // namespace stratplan
