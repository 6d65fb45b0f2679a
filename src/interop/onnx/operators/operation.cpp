#include "interop/onnx/operators/operation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

namespace stratplan::interop {

Constant Operation::constant(int i) const {
  const auto found = graph.constant(node.input(i));
  need(found.has_value(),
       given(i) ? fmt::format("expected a constant, found the computed tensor {} as input {}",
                              node.input(i), i)
                : fmt::format("input {} is missing", i));
  return *found;
}

std::optional<Constant> Operation::optional_constant(int i) const {
  return given(i) ? std::optional(constant(i)) : std::nullopt;
}

std::vector<std::int64_t> Operation::list(const char* attribute, int i) const {
  const auto input = optional_constant(i);
  return input ? input->integers() : node.integers(attribute);
}

std::optional<double> Operation::scalar(const char* attribute, int i) const {
  if (const auto input = optional_constant(i)) return tidy(input->scalar());
  return node.has(attribute) ? std::optional(tidy(node.number(attribute, 0))) : std::nullopt;
}

std::vector<Factors> Operation::factors(const Tensor& x) const {
  const auto axes = factors_by_axis(
      x.view.empty() ? whole_factors(graph.shape(x), x.channels_last) : x.view, x.dims);
  need(axes.has_value(), fmt::format("its input of extents ({}) mixes axes of the layer before",
                                     fmt::join(x.dims, ", ")));
  return *axes;
}

Tensor Operation::with_channels(int i) const {
  Tensor x = tensor(i);
  if (x.channels_last ? keeps_channels(x) : is_image(x)) return x;
  const auto made = graph.moved(node.input(i), x, whole_factors(graph.shape(x), x.channels_last));
  if (!made) return x;
  graph.define(node.input(i), *made);
  return tensor(i);
}

bool Operation::is_image(const Tensor& x) const {
  const Shape shape = graph.shape(x);
  bool exact =
      x.dims.size() >= 2 && x.dims.size() <= 5 && !x.channels_last && x.dims[1] == shape[Axis::C];
  for (std::size_t axis = 2; exact && axis < axis_count; ++axis) {  // extents are aligned at W
    const std::size_t behind = axis_count - 1 - axis;
    exact =
        shape.extent[axis] == (behind + 2 < x.dims.size() ? x.dims[x.dims.size() - 1 - behind] : 1);
  }
  return exact;
}

Tensor Operation::image(int i, std::size_t spatial) const {
  Tensor x = with_channels(i);
  if (x.channels_last && !is_image(x)) {  // channels of a vector that are positions from here on
    const auto made = graph.moved(node.input(i), x, whole_factors(graph.shape(x), true));
    if (made) x = *made;
  }
  need(is_image(x) && x.dims.size() >= 2 + spatial,
       fmt::format("its input has the extents ({}), expected the samples, channels and "
                   "positions of the layer that makes this input",
                   fmt::join(x.dims, ", ")));
  return x;
}

bool Operation::keeps_channels(const Tensor& x) const {
  return x.dims.size() >= 2 && x.dims[channel_axis(x)] == channels(x);
}

Parameter Operation::parameter(const char* role, Extents shape, const Constant& values,
                               int input) const {
  const std::string& tensor = node.input(input);
  const std::string& stored = values.tensor();
  const auto asked = graph.decisions().asked({tensor, stored});
  const bool folded = is_named_after_arithmetic(stored);
  Parameter parameter{role, std::move(shape), as_floats(values), asked.value_or(Learning::Trained)};
  if (values.origin() == Origin::Computed || (folded && !asked)) {
    const std::string made =
        folded ? "by arithmetic that the exporter folded"
               : fmt::format("by arithmetic from {}", fmt::join(values.tensors(), ", "));
    need(asked && parameter.learning != Learning::Trained,
         fmt::format("its {} {} are computed {}, which no layer repeats in training; --freeze {} "
                     "keeps their values",
                     role, tensor, made, tensor));
    graph.read_as_constant(node, values);
  }
  if (values.origin() == Origin::Literal && !asked && !graph.has_literal_weights)
    parameter.learning =
        values.elements() <= most_in_document ? Learning::Constant : Learning::Frozen;
  need(parameter.learning != Learning::Constant || values.elements() <= most_in_document,
       fmt::format("its {} {} have {} elements, but a constant of a network has at most {}; "
                   "--freeze {} keeps their values, too",
                   role, tensor, values.elements(), most_in_document, tensor));
  return parameter;
}

void Operation::layer(LayerKind kind, const Tensor& x, Shape output_shape, Json attributes,
                      std::vector<Parameter> parameters) const {
  output(graph.add(
      {node.name(), kind, {x.draft}, output_shape, std::move(attributes), std::move(parameters)},
      x.dims.size()));
}

Tensor Operation::alike(LayerType type, const std::vector<Tensor>& inputs, Json attributes,
                        std::vector<Parameter> parameters) const {
  std::vector<std::size_t> producers;
  for (const Tensor& input : inputs) producers.push_back(input.draft);
  Tensor made = inputs[0];
  made.draft = graph
                   .add({node.name(), type, producers, graph.shape(inputs[0]),
                         std::move(attributes), std::move(parameters)},
                        2)
                   .draft;
  made.alone = true;
  return made;
}

Tensor Operation::made(LayerType type, const std::vector<Tensor>& inputs, const Shape& output_shape,
                       Json attributes) const {
  std::vector<std::size_t> producers;
  for (const Tensor& input : inputs) producers.push_back(input.draft);
  return graph.add({node.name(), type, producers, output_shape, std::move(attributes)},
                   graph.spatial_axes() + 2);
}

Tensor Operation::ordered(Tensor x, const std::vector<Factors>& axes, bool channels_last) const {
  const Factors order = joined(axes);
  x.view.clear();
  for (const bool last : {channels_last, !channels_last}) {
    x.channels_last = last;
    if (order == whole_factors(graph.shape(x), last)) return x;
  }
  x.view = order;
  return x;
}

void Operation::view(Tensor x, Extents dims) const {
  need(elements_of(dims) == elements_of(x.dims) && !dims.empty() && dims[0] == graph.samples(),
       fmt::format("its output of extents ({}) would mix the samples of its input of extents ({})",
                   fmt::join(dims, ", "), fmt::join(x.dims, ", ")));
  x.dims = std::move(dims);
  output(std::move(x));
}

Json Operation::along(const std::array<Json, 3>& values) const {
  const auto begin = values.end() - static_cast<std::ptrdiff_t>(graph.spatial_axes());
  if (std::all_of(begin, values.end(),
                  [&](const Json& value) { return value == *begin && !value.is_array(); }))
    return *begin;
  return std::vector<Json>(begin, values.end());
}

double tidy(double single_precision) {
  return std::strtod(fmt::format("{}", static_cast<float>(single_precision)).c_str(), nullptr);
}

bool is_filled(const Constant& x, std::optional<float> value) {
  if (x.elements() < 1 || x.elements() > most_in_document) return false;
  const std::vector<float> values = as_floats(x).floats();
  return std::all_of(values.begin(), values.end(),
                     [&](float each) { return each == value.value_or(values[0]); });
}

bool is_made_by_exporter(const Constant& x) {
  const std::string& name = x.tensor();
  const bool numbered = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
  return x.origin() == Origin::Literal ||
         (x.origin() == Origin::Stored && !is_given(name) && !numbered);
}

Constant per_channel(const Operation& op, const Constant& x, const Tensor& tensor) {
  const std::int64_t channels = op.channels(tensor);
  need(x.elements() > 0, "expected a constant that has elements");
  if (x.elements() > 1) {
    const std::size_t from_end = tensor.dims.size() - op.channel_axis(tensor),
                      rank = x.extents().size();
    const bool aligned = op.keeps_channels(tensor) && rank >= from_end &&
                         x.extents()[rank - from_end] == channels && x.elements() == channels;
    need(aligned, "expected a constant for each channel, found another shape");
  }
  return with_extents(as_floats(x), {x.elements()});
}

}  // namespace stratplan::interop
