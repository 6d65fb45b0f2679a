#include "model/network/finish_parameters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "model/base/error.hpp"
#include "model/base/text.hpp"

namespace stratplan {
namespace {

/// The first layer that read a parameter, and what it took the parameter for.
struct FirstUse {
  LayerIndex layer;
  ParameterRole role;
  Shape shape;
};

std::string described(const Network& network, const FirstUse& use) {
  return fmt::format("the {} of layer {}, of shape {}", name_of(use.role),
                     network.layer(use.layer).name, fmt::join(use.shape.extent, " x "));
}

class Finishing {
 public:
  Finishing(Network& network, const std::string& file, const std::vector<std::string>& pointers)
      : network_(network), file_(file), pointers_(pointers) {}

  void run() {
    for (Parameter& parameter : network_.parameters) parameter.users.clear();
    for (RunningNames& names : network_.running) names.users.clear();
    first_.resize(network_.parameters.size());
    for (LayerIndex index = 0; index < network_.size(); ++index) {
      for (const auto& [role, shape] : network_.layer(index).parameters())
        take_parameter({index, role, shape});
      take_running(index);
    }
    check_users();
    check_names();
    find_gradients();
    find_groups();
  }

 private:
  [[noreturn]] void fail(LayerIndex layer, const std::string& text) const {
    throw InputError(file_, pointers_[static_cast<std::size_t>(layer)],
                     fmt::format("layer {}: {}", network_.layer(layer).name, text));
  }

  void take_parameter(const FirstUse& use) {
    const ParameterIndex at =
        network_.layer(use.layer).declared[static_cast<std::size_t>(use.role)];
    if (at < 0) return;
    Parameter& parameter = network_.parameters[static_cast<std::size_t>(at)];
    auto& first = first_[static_cast<std::size_t>(at)];
    if (!first) first = use;
    if (first->role != use.role || first->shape != use.shape)
      fail(use.layer,
           fmt::format("the parameter {} is {}, and also {}; layers can share a parameter only if "
                       "it is the same thing, of the same shape, to all of them",
                       parameter.name, described(network_, *first), described(network_, use)));
    const std::size_t values = parameter.values.size();
    if (use.role == ParameterRole::ClassWeights &&
        static_cast<std::int64_t>(values) != use.shape.elements())
      fail(use.layer, fmt::format("expected {} class weights, one for each channel of the input, "
                                  "found {}",
                                  use.shape.elements(), values));
    if (parameter.learning == Learning::Constant && values != 1 &&
        static_cast<std::int64_t>(values) != use.shape.elements())
      fail(use.layer, fmt::format("expected 1 or {} values of the constant {}, found {}",
                                  use.shape.elements(), parameter.name, values));
    check_stored(parameter, use);
    parameter.users.push_back(use.layer);
  }

  /// The one value of a constant may stand for all elements.
  void check_stored(const Parameter& parameter, const FirstUse& use) const {
    if (!parameter.stored) return;
    const auto& [shape, transposed, channels_last] = *parameter.stored;
    const auto elements = element_count(shape);
    const bool fits =
        elements == use.shape.elements() || (elements == 1 && parameter.values.size() == 1);
    if (!fits)
      fail(use.layer, fmt::format("the parameter {} is stored in the shape ({}), but it has {} "
                                  "elements",
                                  parameter.name, fmt::join(shape, ", "), use.shape.elements()));
    if ((transposed || channels_last) && use.role != ParameterRole::Weights)
      fail(use.layer, fmt::format("the parameter {} is the {}; only weights are transposed or have "
                                  "channels last",
                                  parameter.name, name_of(use.role)));
  }

  void take_running(LayerIndex index) {
    const int at = network_.layer(index).running;
    if (at < 0) return;
    RunningNames& names = network_.running[static_cast<std::size_t>(at)];
    const LayerIndex first = names.users.empty() ? index : names.users.front();
    if (network_.layer(first).output[Axis::C] != network_.layer(index).output[Axis::C])
      fail(index, fmt::format("the running statistics {} belong to {} channels of layer {}, and to "
                              "{} channels here",
                              names.mean, network_.layer(first).output[Axis::C],
                              network_.layer(first).name, network_.layer(index).output[Axis::C]));
    names.users.push_back(index);
  }

  void check_users() const {
    for (std::size_t i = 0; i < network_.parameters.size(); ++i)
      if (network_.parameters[i].users.empty())
        throw InputError(
            file_, fmt::format("/parameters/{}", i),
            fmt::format("no layer has a parameter named {}", network_.parameters[i].name));
  }

  /// Two parameters with one name would be one tensor of a checkpoint.
  void check_names() const {
    std::map<std::string, LayerIndex> owners;
    for (LayerIndex index = 0; index < network_.size(); ++index)
      for (const auto& [role, shape] : network_.layer(index).parameters()) {
        if (network_.first_user(index, role) != index || network_.layer(index).is_implied(role))
          continue;
        const std::string name = network_.parameter_name(index, role);
        const auto [found, fresh] = owners.try_emplace(name, index);
        if (!fresh)
          fail(index, fmt::format("the parameter {} has the same name as one of layer {}", name,
                                  network_.layer(found->second).name));
      }
    for (std::size_t i = 0; i < network_.buffers.size(); ++i)
      if (const std::string& name = network_.buffers[i].name; !owners.try_emplace(name, 0).second)
        throw InputError(file_, fmt::format("/buffers/{}/name", i),
                         fmt::format("a parameter or another buffer is named {}, too", name));
  }

  /// A network without any parameter keeps all gradients, so that its layers can be studied alone.
  void find_gradients() {
    const bool none = std::ranges::all_of(
        network_.layers, [](const Layer& layer) { return layer.parameter_count() == 0; });
    network_.passes_gradient.assign(network_.layers.size(), false);
    for (LayerIndex index = 0; index < network_.size(); ++index) {
      const Layer& layer = network_.layer(index);
      if (layer.is_data()) continue;
      const auto passes = [&](LayerIndex producer) {
        return network_.passes_gradient[static_cast<std::size_t>(producer)];
      };
      const auto trains = [&](const auto& parameter) {
        return network_.trains(index, parameter.first);
      };
      network_.passes_gradient[static_cast<std::size_t>(index)] =
          none || std::ranges::any_of(layer.parameters(), trains) ||
          std::ranges::any_of(layer.inputs, passes);
    }
  }

  void find_groups() {
    const std::vector<ParameterGroup>& groups = network_.training.groups;
    network_.parameter_groups.clear();
    if (groups.empty()) return;
    network_.parameter_groups.resize(network_.layers.size());
    for (auto& by_role : network_.parameter_groups) by_role.fill(-1);
    for (int group = static_cast<int>(groups.size()) - 1; group >= 0; --group)
      for (const std::string& pattern : groups[static_cast<std::size_t>(group)].parameters)
        if (!put(pattern, group))
          throw InputError(
              network_.name, "",
              fmt::format("parameter group {}: no parameter has a name that matches {}", group + 1,
                          pattern));
  }

  /// Puts all parameters that a pattern stands for into a group. Returns whether there are any.
  bool put(const std::string& pattern, int group) {
    bool found = false;
    for (LayerIndex index = 0; index < network_.size(); ++index)
      for (const auto& [role, shape] : network_.layer(index).parameters()) {
        if (network_.layer(index).is_implied(role) || !stands_for(pattern, index, role)) continue;
        found = true;
        network_.parameter_groups[static_cast<std::size_t>(index)][static_cast<std::size_t>(role)] =
            group;
      }
    return found;
  }

  bool stands_for(const std::string& pattern, LayerIndex index, ParameterRole role) const {
    if (pattern == "norms") return role == ParameterRole::Scale || role == ParameterRole::Shift;
    if (pattern == "biases") return role == ParameterRole::Bias;
    return matches_pattern(network_.parameter_name(index, role), pattern);
  }

  Network& network_;
  const std::string& file_;
  const std::vector<std::string>& pointers_;
  std::vector<std::optional<FirstUse>> first_;  ///< by index of the parameter
};

}  // namespace

void finish_parameters(Network& network, const std::string& file,
                       const std::vector<std::string>& pointers) {
  Finishing(network, file, pointers).run();
}

void freeze(Network& network, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    bool found = false;
    for (LayerIndex index = 0; index < network.size(); ++index) {
      for (const auto& [role, shape] : network.layer(index).parameters()) {
        const std::string name = network.parameter_name(index, role);
        if (network.layer(index).is_implied(role) || !matches_pattern(name, pattern)) continue;
        found = true;
        ParameterIndex& at = network.layers[static_cast<std::size_t>(index)]
                                 .declared[static_cast<std::size_t>(role)];
        if (at < 0) {
          at = static_cast<ParameterIndex>(network.parameters.size());
          network.parameters.push_back({.name = name});
        }
        Learning& learning = network.parameters[static_cast<std::size_t>(at)].learning;
        if (learning == Learning::Trained) learning = Learning::Frozen;
      }
    }
    if (!found)
      throw InputError(network.name, "",
                       fmt::format("--freeze {}: no parameter has a name that matches", pattern));
  }
  if (!patterns.empty())
    finish_parameters(network, network.name, std::vector<std::string>(network.layers.size()));
}

}  // namespace stratplan
