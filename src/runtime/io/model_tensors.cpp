#include "runtime/io/model_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"

namespace stratplan {
namespace {

constexpr const char* constant_prefix = "buffer.";

/// Returns the elements in another order. `take(to, i, model)` fills in the element that has the
/// position i in the network's order and the position `model` in the model's.
template <class Take>
std::vector<float> reordered(const Shape& shape, bool transposed, bool channels_last,
                             std::size_t elements, const Take& take) {
  SP_ASSERT(static_cast<std::int64_t>(elements) == shape.elements(), "{} values for {} elements",
            elements, shape.elements());
  const std::int64_t filters = shape[Axis::N], channels = shape[Axis::C];
  const std::int64_t products = shape.elements() / std::max<std::int64_t>(1, filters);
  const std::int64_t positions = products / std::max<std::int64_t>(1, channels);
  std::vector<float> to(elements);
  for (std::int64_t f = 0; f < filters; ++f)
    for (std::int64_t k = 0; k < products; ++k) {
      const std::int64_t in_model = channels_last ? k % positions * channels + k / positions : k;
      take(to, static_cast<std::size_t>(f * products + k),
           static_cast<std::size_t>(transposed ? in_model * filters + f : f * products + in_model));
    }
  return to;
}

/// Adds constants under names that no other tensor of the checkpoint has.
class Constants {
 public:
  explicit Constants(ModelTensors& all) : all_(all) {
    for (const ModelTensor& row : all.rows) taken_.insert(row.tensor);
  }
  void add(const std::string& name, const std::vector<std::int64_t>& shape,
           std::vector<float> values) {
    if (values.size() == 1)
      values.resize(static_cast<std::size_t>(*element_count(shape)), values[0]);
    std::string tensor = constant_prefix + name;
    while (!taken_.insert(tensor).second) tensor.insert(0, constant_prefix);
    all_.rows.push_back({tensor, name, shape});
    all_.constants.push_back({tensor, shape, std::move(values)});
  }

 private:
  ModelTensors& all_;
  std::set<std::string> taken_;
};

void add_constants(const Network& network, ModelTensors& all) {
  Constants constants(all);
  for (const Parameter& parameter : network.parameters) {
    if (parameter.learning != Learning::Constant || !parameter.stored || parameter.users.empty())
      continue;
    const LayerIndex user = parameter.users.front();
    for (const auto& [role, whole] : network.layer(user).parameters()) {
      if (network.declared(user, role) != &parameter) continue;
      const StoredTensor& stored = *parameter.stored;
      std::vector<float> values = parameter.values;
      if (values.size() > 1 && std::ssize(values) == whole.elements())
        values = to_model_order(std::move(values), whole, stored.transposed, stored.channels_last);
      constants.add(parameter.name, stored.shape, std::move(values));
      break;
    }
  }
  for (const StateBuffer& buffer : network.buffers)
    constants.add(buffer.name, buffer.shape, buffer.values);
}

/// Returns the shape of a parameter as PyTorch's modules have it.
std::vector<std::int64_t> pytorch_shape(const Network& network, LayerIndex index,
                                        ParameterRole role) {
  const Layer& layer = network.layer(index);
  for (const auto& [own, shape] : layer.parameters()) {
    if (own != role) continue;
    if (role != ParameterRole::Weights) return {shape.elements()};
    if (layer.kind == LayerKind::FullyConnected)
      return {shape[Axis::N], shape.elements() / std::max<std::int64_t>(1, shape[Axis::N])};
    std::vector<std::int64_t> extents(shape.extent.begin(), shape.extent.end());
    const bool deep = std::ranges::any_of(
        network.layers, [](const Layer& each) { return each.output[Axis::D] > 1; });
    if (!deep && shape[Axis::D] == 1) extents.erase(extents.begin() + 2);
    return extents;
  }
  SP_ASSERT(false, "layer {} has no {}", layer.name, name_of(role));
  return {};
}

}  // namespace

StoredTensor stored_tensor(const Network& network, LayerIndex layer, ParameterRole role) {
  const Parameter* const declared = network.declared(layer, role);
  if (declared && declared->stored) return *declared->stored;
  return {pytorch_shape(network, layer, role)};
}

/// Frozen parameters that an imported model has under no name are numbers of its graph, such as the
/// scale of a normalization without parameters. They are left out.
ModelTensors model_tensors_of(const Network& network) {
  const bool imported = !network.buffers.empty() ||
                        std::ranges::any_of(network.parameters, [](const Parameter& parameter) {
                          return parameter.stored.has_value();
                        });
  ModelTensors all;
  for (LayerIndex index = 0; index < network.size(); ++index) {
    for (const auto& [role, whole] : network.layer(index).parameters()) {
      const Learning learning = network.learning(index, role);
      if (learning == Learning::Constant || network.first_user(index, role) != index) continue;
      const Parameter* const declared = network.declared(index, role);
      const bool in_model = declared && declared->stored;
      if (imported && !in_model && learning == Learning::Frozen) continue;
      const std::string name = network.parameter_name(index, role);
      const StoredTensor stored = stored_tensor(network, index, role);
      all.rows.push_back({name, name, stored.shape, stored.transposed, stored.channels_last,
                          /*invented=*/imported && !in_model});
    }
    if (network.keeps_running(index) && network.first_running_user(index) == index)
      for (const std::string& name : network.running_names(index))
        all.rows.push_back({name, name, {network.layer(index).output[Axis::C]}});
  }
  add_constants(network, all);
  return all;
}

std::vector<float> to_model_order(std::vector<float> values, const Shape& shape, bool transposed,
                                  bool channels_last) {
  if (!transposed && !channels_last) return values;
  return reordered(
      shape, transposed, channels_last, values.size(),
      [&](std::vector<float>& to, std::size_t i, std::size_t model) { to[model] = values[i]; });
}

std::vector<float> to_network_order(std::vector<float> values, const Shape& shape, bool transposed,
                                    bool channels_last) {
  if (!transposed && !channels_last) return values;
  return reordered(
      shape, transposed, channels_last, values.size(),
      [&](std::vector<float>& to, std::size_t i, std::size_t model) { to[i] = values[model]; });
}

std::string rows_to_text(const std::vector<ModelTensor>& rows) {
  Json list = Json::array();
  for (const ModelTensor& row : rows) {
    Json entry{{"name", row.name}, {"shape", row.shape}};
    if (row.tensor != row.name) entry["tensor"] = row.tensor;
    if (row.transposed) entry["transposed"] = true;
    if (row.channels_last) entry["channels_last"] = true;
    if (row.invented) entry["invented"] = true;
    list.push_back(std::move(entry));
  }
  return list.dump();
}

std::vector<ModelTensor> rows_from_text(const std::string& text, const std::string& file,
                                        const std::string& pointer) {
  const auto fail = [&](const std::string& expected) { throw InputError(file, pointer, expected); };
  const Json list = Json::parse(text, nullptr, false);
  if (!list.is_array()) fail("expected a list of the model's tensors");
  std::vector<ModelTensor> rows;
  std::set<std::string> names;
  for (const Json& entry : list) {
    try {
      ModelTensor row{"", entry.at("name").get<std::string>(),
                      entry.at("shape").get<std::vector<std::int64_t>>()};
      row.tensor = entry.value("tensor", row.name);
      row.transposed = entry.value("transposed", false);
      row.channels_last = entry.value("channels_last", false);
      row.invented = entry.value("invented", false);
      rows.push_back(std::move(row));
    } catch (const Json::exception&) {
      fail(R"(expected a list of {"name", "shape"})");
    }
    const ModelTensor& row = rows.back();
    if (!element_count(row.shape)) fail(fmt::format("expected extents of the tensor {}", row.name));
    if (!names.insert(row.name).second)
      fail(fmt::format("expected one tensor of the name {}, found two", row.name));
  }
  return rows;
}

}  // namespace stratplan
