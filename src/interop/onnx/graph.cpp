#include "interop/onnx/graph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "model/base/error.hpp"
#include "model/network/limits.hpp"

namespace stratplan::interop {
namespace {

std::string symbol_of(const GraphInput& input, std::size_t axis) {
  return input.symbols[axis].empty() ? fmt::format("axis {} of {}", axis, input.name)
                                     : fmt::format("\"{}\" of {}", input.symbols[axis], input.name);
}

}  // namespace

std::string printable(const std::string& text) {
  const auto plain = [](char c) { return c >= 32 && c < 127; };
  if (std::all_of(text.begin(), text.end(), plain)) return text;  // the usual case needs no JSON
  std::string result = Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace))
                           .get<std::string>();
  for (char& c : result)
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '_';
  return result;
}

Parameter* Draft::find(const std::string& role) {
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const Parameter& each) { return each.role == role; });
  return found == parameters.end() ? nullptr : &*found;
}

Graph::Graph(const Model& model, const ImportRequest& request, Constants& constants,
             Decisions& decisions)
    : model_(model), request_(request), constants_(constants), decisions_(decisions) {
  for (const GraphInput& input : model.inputs()) {
    inputs_.emplace(input.name, input);
    spatial_axes_ =
        std::max(spatial_axes_, input.extents.size() == 5 ? std::size_t{3} : std::size_t{2});
  }
  if (!model.inputs().empty() && !model.inputs()[0].extents.empty() &&
      model.inputs()[0].extents[0] > 0) {
    samples_ = model.inputs()[0].extents[0];
    batch_is_open_ = false;
  }
}

/// Returns the size that the request gives an input; empty if the input keeps its own. Inputs
/// without spatial axes keep theirs if other inputs have some.
std::vector<std::int64_t> Graph::asked_size(const GraphInput& input) const {
  if (request_.input_size.empty()) return {};
  const auto size_of = [](const GraphInput& of) {
    return Extents(of.extents.begin() + std::min<std::ptrdiff_t>(2, std::ssize(of.extents)),
                   of.extents.end());
  };
  const Extents own = size_of(input);
  for (const GraphInput& other : model_.inputs()) {
    const Extents theirs = size_of(other);
    if (own.empty() && !theirs.empty()) return {};
    if (!theirs.empty() && theirs != own)
      throw InputError(
          model_.file(), "",
          fmt::format("--input-size is for inputs of one size, but {} and {} differ in theirs",
                      input.name, other.name));
  }
  return request_.input_size;
}

Tensor Graph::make_input(const GraphInput& input, bool as_channels_last) {
  const std::string& file = model_.file();
  Extents dims = input.extents;
  const std::size_t rank = dims.size();
  if (rank < 2 || rank > 5)
    throw InputError(
        file, "",
        fmt::format(
            "input {}: expected samples, channels and up to three spatial axes, found {} axes",
            input.name, rank));
  const std::vector<std::int64_t> size = asked_size(input);
  if (!size.empty() && size.size() != rank - 2)
    throw InputError(file, "",
                     fmt::format("input {} has {} spatial axes, the size asked for has {}",
                                 input.name, rank - 2, size.size()));
  std::copy(size.begin(), size.end(),
            dims.end() - static_cast<std::ptrdiff_t>(size.size() + as_channels_last));
  const std::size_t channels = as_channels_last ? rank - 1 : 1;
  if (dims[0] == 0 && !request_.batch)
    throw InputError(
        file, "",
        fmt::format("the batch is left open ({}): set --batch to the number of samples per step",
                    symbol_of(input, 0)));
  if (dims[0] > 0 && !batch_is_open_ && dims[0] != samples_)
    throw InputError(file, "",
                     fmt::format("input {} has {} samples, input {} has {}", input.name, dims[0],
                                 model_.inputs()[0].name, samples_));
  dims[0] = samples_;
  for (std::size_t axis = 1; axis < rank; ++axis) {
    if (dims[axis] > 0) continue;
    const char* says =
        axis == channels ? "expected a fixed number of channels" : "set it with --input-size";
    throw InputError(file, "",
                     fmt::format("an extent is left open ({}): {}", symbol_of(input, axis), says));
  }
  elements_of(dims);
  Draft draft{input.name, LayerKind::Input, {}, {}};
  draft.output[Axis::C] = dims[channels];
  for (std::size_t i = 0; i + 2 < rank; ++i)
    draft.output.extent[axis_count - (rank - 2) + i] = dims[as_channels_last ? 1 + i : 2 + i];
  draft.attributes["channels"] = dims[channels];
  draft.attributes["size"] =
      Extents(draft.output.extent.end() - static_cast<std::ptrdiff_t>(spatial_axes_),
              draft.output.extent.end());
  Tensor tensor = add(std::move(draft), rank);
  tensor.dims = dims;
  tensor.channels_last = as_channels_last;
  return tensor;
}

Tensor Graph::tensor(const std::string& name, bool as_channels_last) {
  if (is_unused_input(name)) define(name, make_input(inputs_.at(name), as_channels_last));
  const auto found = values_.find(name);
  need(found != values_.end(),
       fmt::format("it reads {}, which no node makes", name.empty() ? "an omitted input" : name));
  const auto* tensor = std::get_if<Tensor>(&found->second);
  need(!stacks_.contains(name),
       fmt::format("it reads {}, tensors that are stacked along a new axis", name));
  need(tensor != nullptr,
       fmt::format("it reads the constant {} where it needs a layer's output", name));
  return *tensor;
}

Tensor Graph::settled(const std::string& name) {
  Tensor found = tensor(name);
  if (found.view.empty() && found.unrepeated.empty()) return found;
  auto made = found.view.empty() ? found : moved(name, found, found.view);
  need(made.has_value(), fmt::format("its input {} of extents ({}) has its elements in an order "
                                     "that no layer makes",
                                     name, fmt::join(found.dims, ", ")));
  define(name, made->unrepeated.empty() ? *made : repeated(name, *made));
  return tensor(name);
}

std::optional<Tensor> Graph::moved(const std::string& name, const Tensor& from,
                                   const Factors& factors) {
  const std::size_t rank = from.dims.size();
  const auto axes = factors_by_axis(factors, from.dims);
  if (!axes || rank < 2 || rank > axis_count) return {};
  for (const bool last : {false, true}) {
    std::array<Factors, 3> positions;
    for (std::size_t i = 2; i < rank; ++i) positions[3 + i - rank] = (*axes)[last ? i - 1 : i];
    const auto layer = rearranging_layer(shape(from), (*axes)[last ? rank - 1 : 1], positions);
    const auto unused =
        layer ? std::count_if(layer->block.begin(),
                              layer->block.end() - static_cast<std::ptrdiff_t>(spatial_axes_),
                              [](auto block) { return block > 1; })
              : 0;
    if (!layer || unused > 0) continue;  // a 2-D network has no depth
    Json attributes = layer->attributes;
    if (layer->kind != LayerKind::ChannelShuffle)
      attributes["block"] = std::vector<std::int64_t>(
          layer->block.end() - static_cast<std::ptrdiff_t>(spatial_axes_), layer->block.end());
    Tensor made = add({name, layer->kind, {from.draft}, layer->output, attributes}, rank);
    made.dims = from.dims;
    made.channels_last = last;
    made.unrepeated = from.unrepeated;
    return made;
  }
  return {};
}

/// Returns the tensor with positions repeated by an enlargement, and channels by a concatenation.
Tensor Graph::repeated(const std::string& name, Tensor tensor) {
  const auto fail = [&] {
    return Inexpressible{
        fmt::format("its input {} is repeated along axes that are not those of a layer", name)};
  };
  const Extents wanted = std::exchange(tensor.dims, std::exchange(tensor.unrepeated, {}));
  const auto rank = std::ssize(wanted);
  const auto at = static_cast<std::size_t>(tensor.channels_last ? rank - 1 : 1);
  if (rank < 2 || tensor.dims[at] != shape(tensor)[Axis::C]) throw fail();
  Shape output = shape(tensor);
  std::vector<std::int64_t> scale(3, 1);
  for (std::size_t i = 0; i < 3; ++i) {
    const std::ptrdiff_t axis = rank - (tensor.channels_last ? 4 : 3) + std::ptrdiff_t(i);
    const bool has = axis >= (tensor.channels_last ? 1 : 2);
    const std::int64_t own = has ? tensor.dims[static_cast<std::size_t>(axis)] : 1;
    if (own != output.extent[2 + i]) throw fail();
    if (has) scale[i] = wanted[static_cast<std::size_t>(axis)] / own;
    output.extent[2 + i] *= scale[i];
  }
  scale.erase(scale.begin(), scale.end() - static_cast<std::ptrdiff_t>(spatial_axes_));
  if (output != shape(tensor))
    tensor.draft =
        add({name, LayerKind::Upsample, {tensor.draft}, output, {{"scale", scale}}}, 2).draft;
  if (const std::int64_t copies = wanted[at] / tensor.dims[at]; copies > 1) {
    output[Axis::C] *= copies;
    const std::vector<std::size_t> inputs(static_cast<std::size_t>(copies), tensor.draft);
    tensor.draft = add({name, LayerKind::Concat, inputs, output}, 2).draft;
  }
  tensor.dims = wanted;
  tensor.alone = true;
  return tensor;
}

Stack Graph::stack(const std::string& name) const {
  const auto found = stacks_.find(name);
  return found == stacks_.end() ? Stack{} : found->second;
}

void Graph::define_stack(const std::string& name, Stack stack) {
  for (Tensor& tensor : stack.tensors) tensor.alone = false;
  values_.insert_or_assign(name, stack.tensors.front());
  stacks_.insert_or_assign(name, std::move(stack));
}

std::optional<Constant> Graph::constant(const std::string& name) const {
  const auto found = values_.find(name);
  const auto* constant = found == values_.end() ? nullptr : std::get_if<Constant>(&found->second);
  return constant ? std::optional(*constant) : std::nullopt;
}

void Graph::define(const std::string& name, Tensor tensor) {
  tensor.alone = tensor.alone && readers[name] <= 1;
  values_.insert_or_assign(name, std::move(tensor));
}

void Graph::read_as_constant(const Node& node, const Constant& values) {
  for (const std::string& tensor : values.tensors()) constant_readers_.emplace(tensor, node.name());
}

std::string Graph::constant_reader(const std::string& tensor) const {
  const auto found = constant_readers_.find(tensor);
  return found == constant_readers_.end() ? "" : found->second;
}

void Graph::define_stand_in(const std::string& name, Extents extents, bool channels_last) {
  const std::size_t rank = extents.size();
  if (rank < 2 || rank > axis_count) return;
  extents[0] = samples_;
  std::int64_t elements = 1;
  for (const std::int64_t extent : extents)
    if (extent < 1 || extent > largest_extent || !multiply_within(elements, extent, largest_tensor))
      return;
  Draft draft{name, LayerKind::Input, {}, {}};
  draft.output[Axis::C] = extents[channels_last ? rank - 1 : 1];
  for (std::size_t i = 2; i < rank; ++i)
    draft.output.extent[axis_count - rank + i] = extents[channels_last ? i - 1 : i];
  draft.learned = true;
  Tensor tensor = add(std::move(draft), rank);
  tensor.dims = std::move(extents);
  tensor.channels_last = channels_last;
  define(name, std::move(tensor));
}

Tensor Graph::add(Draft draft, std::size_t rank) {
  const std::string wanted = draft.name.empty() ? "layer" : printable(draft.name);
  draft.name = wanted;
  while (!names_.insert(draft.name).second)
    draft.name = fmt::format("{}_{}", wanted, ++copies_.try_emplace(wanted, 1).first->second);
  for (const Parameter& parameter : draft.parameters)
    if (parameter.learning != Learning::Constant && !parameter.is_running()) draft.learned = true;
  for (const std::size_t input : draft.inputs)
    draft.learned = draft.learned || drafts[input].learned;
  Tensor tensor{drafts.size(), {samples_, draft.output[Axis::C]}, false, true};
  for (std::size_t i = 0; i + 2 < rank; ++i)
    tensor.dims.push_back(draft.output.extent[axis_count - (rank - 2) + i]);
  drafts.push_back(std::move(draft));
  return tensor;
}

}  // namespace stratplan::interop
