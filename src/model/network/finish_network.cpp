// Makes a network from layers in any order: sorts and checks them, and infers their shapes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/network/finish_parameters.hpp"
#include "model/network/limits.hpp"
#include "model/network/micro_batches.hpp"
#include "model/network/network.hpp"

namespace stratplan {
namespace {

/// The message of a failed check. finish_network adds the file and the JSON pointer of the layer.
struct Complaint {
  std::string text;
};

/// Throws Complaint unless `value` is from `least` to largest_extent. `what` names the value.
void check_extent(std::int64_t value, std::int64_t least, const std::string& what) {
  if (value < least || value > largest_extent) {
    throw Complaint{
        fmt::format("expected {} from {} to {}, found {}", what, least, largest_extent, value)};
  }
}

/// Returns the number of elements. Throws Complaint unless each extent and the product are within
/// the limits.
std::int64_t elements_of(const Shape& shape, const char* what) {
  std::int64_t elements = 1;
  for (const Axis axis : all_axes) {
    check_extent(shape[axis], 1,
                 fmt::format("{} with an extent along {}", what,
                             axis_names[static_cast<std::size_t>(axis)]));
    if (!multiply_within(elements, shape[axis], largest_tensor)) {
      throw Complaint{fmt::format("expected {} of at most {} elements, found the shape {}", what,
                                  largest_tensor, fmt::join(shape.extent, " x "))};
    }
  }
  return elements;
}

// ---------------------------------------------------------------- order

/// Returns a cycle among the layers that could not be ordered, with the first layer repeated at the
/// end.
std::vector<LayerIndex> find_cycle(const std::vector<Layer>& layers,
                                   const std::vector<bool>& ordered) {
  const auto unordered = [&](LayerIndex index) {
    return !ordered[static_cast<std::size_t>(index)];
  };
  std::vector<LayerIndex> way{
      static_cast<LayerIndex>(std::ranges::find(ordered, false) - ordered.begin())};
  while (true) {
    const std::vector<LayerIndex>& inputs = layers[static_cast<std::size_t>(way.back())].inputs;
    const LayerIndex next = *std::ranges::find_if(inputs, unordered);
    if (const auto seen = std::ranges::find(way, next); seen != way.end()) {
      way.erase(way.begin(), seen);
      way.push_back(next);
      std::ranges::reverse(way);  // `way` leads from readers to producers
      return way;
    }
    way.push_back(next);
  }
}

/// Returns the indices of the layers in topological order. Wherever there is a choice, the layer
/// that comes first in the file comes first.
std::vector<LayerIndex> topological_order(const std::vector<Layer>& layers, const std::string& file,
                                          const std::vector<std::string>& pointers) {
  const std::size_t count = layers.size();
  std::vector<std::vector<LayerIndex>> readers(count);
  std::vector<std::size_t> missing(count);
  std::set<LayerIndex> ready;
  for (std::size_t i = 0; i < count; ++i) {
    missing[i] = layers[i].inputs.size();
    for (const LayerIndex input : layers[i].inputs) {
      readers[static_cast<std::size_t>(input)].push_back(static_cast<LayerIndex>(i));
    }
    if (missing[i] == 0) {
      ready.insert(static_cast<LayerIndex>(i));
    }
  }
  std::vector<LayerIndex> order;
  std::vector<bool> ordered(count, false);
  while (!ready.empty()) {
    const LayerIndex index = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(index);
    ordered[static_cast<std::size_t>(index)] = true;
    for (const LayerIndex reader : readers[static_cast<std::size_t>(index)]) {
      if (--missing[static_cast<std::size_t>(reader)] == 0) {
        ready.insert(reader);
      }
    }
  }
  if (order.size() < count) {
    const std::vector<LayerIndex> cycle = find_cycle(layers, ordered);
    std::vector<std::string> names;
    for (const LayerIndex index : cycle) {
      names.push_back(layers[static_cast<std::size_t>(index)].name);
    }
    throw InputError(file, pointers[static_cast<std::size_t>(cycle.front())],
                     fmt::format("expected no cycle, found {}", fmt::join(names, " -> ")));
  }
  return order;
}

// ---------------------------------------------------------------- shapes

/// Returns the output extent of a transposed convolution. The layer computes the gradient of a
/// convolution that maps this extent to the layer's input extent.
std::int64_t transposed_extent(const Layer& layer, Axis axis) {
  const auto i = static_cast<std::size_t>(spatial_index(axis));
  const auto& own = layer.as<ConvolutionLayer>();
  const Window& window = own.windows[i];
  const std::int64_t added = own.output_padding[i], input = layer.input[axis];
  const char* name = axis_names[static_cast<std::size_t>(axis)];
  if (added < 0 || added >= std::max(window.stride, window.dilation)) {
    throw Complaint{fmt::format(
        "expected an output padding below the stride {} or the dilation {} along {}, found {}",
        window.stride, window.dilation, name, added)};
  }
  const std::int64_t padded = (input - 1) * window.stride + window.span(),
                     spanned = padded - window.pad_before,
                     extent = spanned - window.pad_after + added;
  if (spanned < 1 || extent < 1) {
    throw Complaint{fmt::format(
        "padding {} before and {} behind along {} removes the whole output of {} windows of extent "
        "{}",
        window.pad_before, window.pad_after, name, input, window.span())};
  }
  check_extent(padded + added, 1, fmt::format("an output extent with padding along {}", name));
  return extent;
}

/// Throws Complaint unless the window's numbers and its span are within the limits. Only a Pad
/// layer has negative padding.
void check_window(const Window& window, LayerKind kind, const char* name) {
  const auto check = [&](std::int64_t value, std::int64_t least, const char* what) {
    check_extent(value, least, fmt::format("{} along {}", what, name));
  };
  check(window.kernel, 1, "a kernel");
  check(window.stride, 1, "a stride");
  check(window.dilation, 1, "a dilation");
  const std::int64_t least = kind == LayerKind::Pad ? -largest_extent : 0;
  check(window.pad_before, least, "padding");
  check(window.pad_after, least, "padding");
  check(window.span(), 1, "a dilated window");
}

std::int64_t output_extent(const Layer& layer, Axis axis) {
  const Window& window = layer.windows()[static_cast<std::size_t>(spatial_index(axis))];
  const char* name = axis_names[static_cast<std::size_t>(axis)];
  check_window(window, layer.kind, name);
  const std::int64_t input = layer.input[axis];
  if (layer.kind == LayerKind::TransposedConvolution) {
    return transposed_extent(layer, axis);
  }
  check_extent(input + window.pad_before + window.pad_after, 1,
               fmt::format("an input extent with padding along {}", name));
  const std::int64_t extent = window.output_extent(input);
  if (extent < 1) {
    throw Complaint{fmt::format(
        "a window of extent {} does not fit the input {} = {} with padding {} before and {} behind",
        window.span(), name, input, window.pad_before, window.pad_after)};
  }
  // A window over padding alone has no maximum and no mean.
  const bool reads_padding_alone =
      std::max(window.pad_before, window.pad_after) >= window.span() ||
      (window.dilation > input && window.pad_before + window.pad_after > 0);
  if (std::holds_alternative<PoolLayer>(layer.attributes) && reads_padding_alone) {
    throw Complaint{fmt::format("some window of extent {} reads nothing but padding along {}",
                                window.span(), name)};
  }
  return extent;
}

/// Returns the output extent of an Upsample.
std::int64_t resized_extent(const Layer& layer, Axis axis) {
  const auto i = static_cast<std::size_t>(spatial_index(axis));
  const auto& own = layer.as<UpsampleLayer>();
  const char* name = axis_names[static_cast<std::size_t>(axis)];
  const std::int64_t input = layer.input[axis];
  const auto [more, fewer] = own.scale[i];
  if (own.size[i] == 0 || more != 0) check_extent(more, 1, fmt::format("a scale along {}", name));
  check_extent(fewer, 1, fmt::format("a divisor of a scale along {}", name));
  const std::int64_t extent = own.size[i] > 0 ? own.size[i] : input * more / fewer;
  check_extent(extent, 1, fmt::format("outputs with an extent along {}", name));
  // Positions are computed in integers.
  std::int64_t inputs = std::max(more, extent), outputs = std::max(fewer, input);
  constexpr std::int64_t largest = std::int64_t{1} << 60;
  if (!multiply_within(inputs, input, largest) || !multiply_within(outputs, extent, largest))
    throw Complaint{fmt::format(
        "expected a scale whose products with the extents along {} are at most {}, found {} / {} "
        "with {} inputs and {} outputs",
        name, largest, more, fewer, input, extent)};
  return extent;
}

/// Returns the number of output channels of a DepthToSpace or a SpaceToDepth.
std::int64_t rearranged_channels(const Layer& layer) {
  const bool to_space = layer.kind == LayerKind::DepthToSpace;
  std::int64_t block = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    block *= to_space ? layer.as<DepthToSpaceLayer>().block[i] : layer.windows()[i].kernel;
    check_extent(block, 1, "a number of positions in a block");
  }
  const std::int64_t channels = layer.input[Axis::C];
  if (to_space && channels % block != 0) {
    throw Complaint{fmt::format(
        "expected a number of channels that the {} positions of a block divide, found {}", block,
        channels)};
  }
  for (const Axis axis : spatial_axes) {
    const std::int64_t kernel =
        layer.windows()[static_cast<std::size_t>(spatial_index(axis))].kernel;
    if (!to_space && layer.input[axis] % kernel != 0) {
      throw Complaint{fmt::format("expected blocks of {} that divide the {} positions along {}",
                                  kernel, layer.input[axis],
                                  axis_names[static_cast<std::size_t>(axis)])};
    }
  }
  if (to_space) return channels / block;
  check_extent(channels * block, 1, "a number of channels");
  return channels * block;
}

/// Checks the tensor that windows slide over, padding included, against the limits.
void check_padded(const Layer& layer) {
  const bool transposed = layer.kind == LayerKind::TransposedConvolution;
  Shape padded = transposed ? layer.output : layer.input;
  for (const Axis axis : spatial_axes) {
    const Window& window = layer.windows()[static_cast<std::size_t>(spatial_index(axis))];
    padded[axis] += window.pad_before + window.pad_after;
  }
  elements_of(padded, transposed ? "padded outputs" : "padded inputs");
}

Shape output_shape(const Layer& layer) {
  Shape output = layer.input;
  if (has_window(layer.kind)) {
    for (const Axis axis : spatial_axes) {
      output[axis] = output_extent(layer, axis);
    }
  }
  if (layer.kind == LayerKind::Upsample) {
    for (const Axis axis : spatial_axes) {
      output[axis] = resized_extent(layer, axis);
    }
  }
  if (const auto* made = std::get_if<DepthToSpaceLayer>(&layer.attributes))
    for (const Axis axis : spatial_axes) {
      const std::int64_t block = made->block[static_cast<std::size_t>(spatial_index(axis))];
      check_extent(block, 1, "an extent of a block");
      output[axis] *= block;
      check_extent(output[axis], 1, "an extent of the output");
    }
  if (layer.kind == LayerKind::DepthToSpace || layer.kind == LayerKind::SpaceToDepth)
    output[Axis::C] = rearranged_channels(layer);
  for (const Axis axis : all_axes)
    if (layer.reduces(axis)) output[axis] = 1;
  if (layer.kind == LayerKind::Concat) {
    output[Axis::C] = 0;  // two billion inputs of two billion channels each fit into 64 bits
    for (const Shape& input : layer.input_shapes) output[Axis::C] += input[Axis::C];
  }
  if (layer.kind == LayerKind::Pad) {
    for (const std::int64_t channels : layer.as<PadLayer>().channel_padding) {
      check_extent(channels, -largest_extent, "a channel padding");
      output[Axis::C] += channels;
    }
    check_extent(output[Axis::C], 1, "a number of channels with padding");
  }
  if (layer.kind == LayerKind::Binary)
    for (const Axis axis : all_axes)
      output[axis] = std::max(layer.input_shapes[0][axis], layer.input_shapes[1][axis]);
  if (layer.kind == LayerKind::FullyConnected) {
    output[Axis::D] = output[Axis::H] = output[Axis::W] = 1;
  }
  if (is_contraction(layer.kind)) {
    check_extent(layer.filters(), 1, "filters");
    if (layer.groups() < 1 || layer.input[Axis::C] % layer.groups() != 0 ||
        layer.filters() % layer.groups() != 0) {
      throw Complaint{fmt::format(
          "expected a number of groups that divides {} input channels and {} filters, found {}",
          layer.input[Axis::C], layer.filters(), layer.groups())};
    }
    output[Axis::C] = layer.filters();
  }
  return output;
}

/// Checks that a padding that adds elements of the input has them.
void check_padding_mode(const Layer& layer) {
  const auto& own = layer.as<PadLayer>();
  if (own.mode == PaddingMode::Constant) return;
  const std::string_view mode = padding_mode_names[static_cast<std::size_t>(own.mode)];
  if (own.channel_padding != std::array<std::int64_t, 2>{} || own.value != 0)
    throw Complaint{
        fmt::format("expected neither channel_padding nor value with the padding_mode {}", mode)};
  for (const Axis axis : spatial_axes) {
    const Window& window = own.windows[static_cast<std::size_t>(spatial_index(axis))];
    const std::int64_t extent = layer.input[axis],
                       most = own.mode == PaddingMode::Edge      ? largest_extent
                              : own.mode == PaddingMode::Reflect ? extent - 1
                                                                 : extent;
    for (const std::int64_t padding : {window.pad_before, window.pad_after})
      if (padding < 0 || padding > most)
        throw Complaint{fmt::format(
            "expected padding from 0 to {} along {}, which has {} positions, with the padding_mode "
            "{}, found {}",
            most, axis_names[static_cast<std::size_t>(axis)], extent, mode, padding)};
  }
}

/// Checks attributes that depend on each other or on shapes. A schema cannot check these.
void check_attributes(const Layer& layer) {
  if (layer.kind == LayerKind::Pad) check_padding_mode(layer);
  if ((layer.kind == LayerKind::GroupNorm || layer.kind == LayerKind::ChannelShuffle) &&
      (layer.groups() < 1 || layer.input[Axis::C] % layer.groups() != 0)) {
    throw Complaint{
        fmt::format("expected a number of groups that divides the {} channels, found {}",
                    layer.input[Axis::C], layer.groups())};
  }
  const auto* reduce = std::get_if<ReduceLayer>(&layer.attributes);
  if (reduce && reduce->function == Reduction::Max &&
      std::ranges::any_of(spatial_axes, [&](Axis axis) { return layer.reduces(axis); })) {
    throw Complaint{
        "expected the greatest of all channels (axes [\"C\"]); a max_pool takes the "
        "greatest of all positions"};
  }
  const auto* response = std::get_if<LocalResponse>(&layer.attributes);
  if (response && response->size % 2 == 0) {
    throw Complaint{fmt::format(
        "expected an odd local_size, so that equally many channels lie on both sides, found {}",
        response->size)};
  }
  const auto* loss = std::get_if<ElementLoss>(&layer.attributes);
  if (loss && !(loss->constant > 0)) {
    throw Complaint{fmt::format("expected a {} above 0, found {}", row_of(loss->function).constant,
                                loss->constant)};
  }
  if (layer.type() != PointwiseFunction::Clip) return;
  const auto& [least, most] = layer.as<Activation>().constants;
  if (least > most) {
    throw Complaint{fmt::format("expected min <= max, found min {} and max {}", least, most)};
  }
}

/// Whether a layer of this kind can read both tensors together.
bool fit_together(LayerKind kind, const Shape& first, const Shape& other) {
  return std::ranges::all_of(all_axes, [&](Axis axis) {
    const std::int64_t least = std::min(first[axis], other[axis]);
    const bool free = (kind == LayerKind::Concat && axis == Axis::C) ||
                      (kind == LayerKind::Binary && axis != Axis::N && least == 1);
    return free || first[axis] == other[axis];
  });
}

const char* what_fits_together(LayerKind kind) {
  switch (kind) {
    case LayerKind::Concat: return "one shape (N, C, D, H, W) except along C";
    case LayerKind::Binary:
      return "one shape (N, C, D, H, W), where one input may have extent 1 along any axis but N";
    default: return "one shape (N, C, D, H, W)";
  }
}

void check_inputs(const Network& network, const Layer& layer) {
  const std::size_t least = layer.kind == LayerKind::Input ? 0 : joins(layer.kind) ? 2 : 1;
  const std::size_t count = layer.inputs.size();
  const bool any_number = joins(layer.kind) && layer.kind != LayerKind::Binary;
  if (count < least || (count > least && !any_number)) {
    throw Complaint{fmt::format("expected the number of inputs to be {}{}, found {}",
                                any_number ? "at least " : "", least, count)};
  }
  for (const LayerIndex producer : layer.inputs) {
    const Layer& first = network.layer(layer.inputs.front());
    const Layer& other = network.layer(producer);
    if (is_loss(other.kind)) {
      throw Complaint{
          fmt::format("this layer reads the loss {}, but no layer can read a loss", other.name)};
    }
    if (!fit_together(layer.kind, first.output, other.output)) {
      throw Complaint{fmt::format(
          "expected inputs of {}, found layer {} of shape {} and layer {} of shape {}",
          what_fits_together(layer.kind), first.name, fmt::join(first.output.extent, " x "),
          other.name, fmt::join(other.output.extent, " x "))};
    }
  }
}

/// Sets the layer's input and output shapes. Adds the numbers of elements of its output and weights
/// to `total`.
void infer_shape(const Network& network, Layer& layer, std::int64_t& total) {
  check_inputs(network, layer);
  if (layer.kind == LayerKind::Input) {
    layer.output[Axis::N] = network.micro_batch();
    layer.input = layer.output;
  } else {
    layer.input = network.layer(layer.inputs.front()).output;
    check_attributes(layer);
    layer.input_shapes.clear();
    if (joins(layer.kind) && layer.kind != LayerKind::Add)
      for (const LayerIndex producer : layer.inputs)
        layer.input_shapes.push_back(network.layer(producer).output);
    layer.output = output_shape(layer);
  }
  total += elements_of(layer.output, "outputs");
  if (is_contraction(layer.kind)) {
    total += elements_of(layer.weights(), "weights");
  }
  if (has_window(layer.kind)) {
    check_padded(layer);
  }
  if (total > largest_network) {
    throw Complaint{fmt::format(
        "expected outputs and weights of at most {} elements in all layers together, found more",
        largest_network)};
  }
}

// ---------------------------------------------------------------- the whole network

void check_names(const Network& network, const std::string& file,
                 const std::vector<std::string>& pointers) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    if (!names.insert(network.layers[i].name).second) {
      throw InputError(
          file, pointers[i] + "/name",
          fmt::format("expected distinct names, but an earlier layer is also named \"{}\"",
                      network.layers[i].name));
    }
  }
}

void check_ends(const Network& network, const std::string& file,
                const std::vector<std::string>& pointers) {
  std::vector<bool> is_read(network.layers.size(), false);
  for (const Layer& layer : network.layers) {
    for (const LayerIndex input : layer.inputs) {
      is_read[static_cast<std::size_t>(input)] = true;
    }
  }
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const Layer& layer = network.layers[i];
    if (!is_loss(layer.kind) && !is_read[i]) {
      throw InputError(
          file, pointers[i],
          fmt::format("layer {}: no layer reads this layer, and it is not a loss", layer.name));
    }
  }
  if (network.losses().empty()) {
    std::vector<std::string_view> names;
    for (const LayerType type : all_layer_types())
      if (is_loss(type.kind)) names.push_back(name_of(type));
    throw InputError(file, "/layers", fmt::format("expected a loss ({})", fmt::join(names, ", ")));
  }
}

/// Lets a concatenation read an earlier one whose inputs are a run of its own. The output is the
/// same. But where each of k concatenations reads all earlier layers, as in DenseNet, a layer would
/// otherwise have k consumers, and the search would weigh all of their decompositions together.
void join_in_chain(const std::vector<Layer>& earlier, Layer& layer) {
  if (layer.kind != LayerKind::Concat) return;
  std::vector<LayerIndex>& inputs = layer.inputs;
  auto longest = inputs.begin();  // the longest run begins here
  std::ptrdiff_t length = 1;
  LayerIndex found = -1;
  for (LayerIndex index = 0; index < static_cast<LayerIndex>(earlier.size()); ++index) {
    const Layer& other = earlier[static_cast<std::size_t>(index)];
    const std::vector<LayerIndex>& theirs = other.inputs;
    if (other.kind != LayerKind::Concat || std::ssize(theirs) <= length ||
        std::ssize(theirs) >= std::ssize(inputs))
      continue;
    const auto run = std::search(inputs.begin(), inputs.end(), theirs.begin(), theirs.end());
    if (run == inputs.end()) continue;
    longest = run;
    length = std::ssize(theirs);
    found = index;
  }
  if (found < 0) return;
  *longest = found;
  inputs.erase(longest + 1, longest + length);
  join_in_chain(earlier, layer);
}

}  // namespace

Network finish_network(Network network, const std::string& file,
                       const std::vector<std::string>& pointers) {
  SP_ASSERT(pointers.size() == network.layers.size(), "found {} JSON pointers for {} layers",
            pointers.size(), network.layers.size());
  if (network.batch < 1 || network.batch > largest_extent) {
    throw InputError(file, "/batch",
                     fmt::format("expected a batch of 1 to {} samples, found {}", largest_extent,
                                 network.batch));
  }
  if (network.statistics_samples < 1) {
    throw InputError(file, "/statistics_samples",
                     fmt::format("expected statistics over at least 1 sample, found {}",
                                 network.statistics_samples));
  }
  network.statistics_samples = std::min(network.statistics_samples, network.batch);
  if (const auto bad = check_micro_batches(network))
    throw InputError(file, bad->pointer, bad->text);
  check_names(network, file, pointers);

  const std::vector<LayerIndex> order = topological_order(network.layers, file, pointers);
  std::vector<LayerIndex> position(order.size());
  std::vector<std::string> ordered_pointers;
  std::vector<Layer> given = std::move(network.layers);
  network.layers.clear();
  std::int64_t total = 0;
  for (const LayerIndex index : order) {
    position[static_cast<std::size_t>(index)] = network.size();
    Layer layer = std::move(given[static_cast<std::size_t>(index)]);
    for (LayerIndex& input : layer.inputs) {
      input = position[static_cast<std::size_t>(input)];
    }
    join_in_chain(network.layers, layer);
    const std::string& pointer = pointers[static_cast<std::size_t>(index)];
    try {
      infer_shape(network, layer, total);
    } catch (const Complaint& complaint) {
      throw InputError(file, pointer, fmt::format("layer {}: {}", layer.name, complaint.text));
    }
    network.layers.push_back(std::move(layer));
    ordered_pointers.push_back(pointer);
  }
  check_ends(network, file, ordered_pointers);
  finish_parameters(network, file, ordered_pointers);
  return network;
}

}  // namespace stratplan
