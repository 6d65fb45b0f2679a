// Makes a network from layers in any order: sorts and checks them, and infers their shapes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "model/network/limits.hpp"
#include "model/network/network.hpp"

namespace stratplan {
namespace {

/// The result of a failed check. finish_network adds file and pointer.
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
    check_extent(
        shape[axis], 1,
        fmt::format("{} of an extent along {}", what, axis_names[static_cast<std::size_t>(axis)]));
    if (!multiply_within(elements, shape[axis], largest_tensor)) {
      throw Complaint{fmt::format("expected {} of at most {} elements, found {}", what,
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
      std::ranges::reverse(way);  // inputs were followed backwards
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

/// Returns the output extent of a transposed convolution. The convolution whose gradient the layer
/// computes would map this extent back to the input's extent.
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
    throw Complaint{fmt::format("padding {} and {} leaves nothing of {} windows of {} along {}",
                                window.pad_before, window.pad_after, input, window.span(), name)};
  }
  check_extent(padded + added, 1, fmt::format("an output with its padding along {}", name));
  return extent;
}

/// Throws Complaint unless the window's numbers and its span are within the limits.
void check_window(const Window& window, const char* name) {
  const auto check = [&](std::int64_t value, std::int64_t least, const char* what) {
    check_extent(value, least, fmt::format("{} along {}", what, name));
  };
  check(window.kernel, 1, "a kernel");
  check(window.stride, 1, "a stride");
  check(window.dilation, 1, "a dilation");
  check(window.pad_before, 0, "padding");
  check(window.pad_after, 0, "padding");
  check(window.span(), 1, "a dilated window");
}

std::int64_t output_extent(const Layer& layer, Axis axis) {
  const Window& window = layer.windows()[static_cast<std::size_t>(spatial_index(axis))];
  const char* name = axis_names[static_cast<std::size_t>(axis)];
  check_window(window, name);
  const std::int64_t input = layer.input[axis];
  if (layer.kind == LayerKind::TransposedConvolution) {
    return transposed_extent(layer, axis);
  }
  check_extent(input + window.pad_before + window.pad_after, 1,
               fmt::format("an input with its padding along {}", name));
  const std::int64_t extent = window.output_extent(input);
  if (extent < 1) {
    throw Complaint{fmt::format("a window of {} does not fit {} = {} with padding {} and {}",
                                window.span(), name, input, window.pad_before, window.pad_after)};
  }
  // A window over padding alone has no maximum and no mean.
  const bool reads_padding_alone =
      std::max(window.pad_before, window.pad_after) >= window.span() ||
      (window.dilation > input && window.pad_before + window.pad_after > 0);
  if (std::holds_alternative<PoolLayer>(layer.attributes) && reads_padding_alone) {
    throw Complaint{
        fmt::format("some window of {} reads nothing but padding along {}", window.span(), name)};
  }
  return extent;
}

std::int64_t enlarged_extent(const Layer& layer, Axis axis) {
  const std::int64_t factor = layer.scales()[static_cast<std::size_t>(spatial_index(axis))].factor;
  check_extent(factor, 1,
               fmt::format("a scale along {}", axis_names[static_cast<std::size_t>(axis)]));
  return layer.input[axis] * factor;
}

/// Checks the tensor that windows slide over, padding included, against the limits.
void check_padded(const Layer& layer) {
  const bool transposed = layer.kind == LayerKind::TransposedConvolution;
  Shape padded = transposed ? layer.output : layer.input;
  for (const Axis axis : spatial_axes) {
    const Window& window = layer.windows()[static_cast<std::size_t>(spatial_index(axis))];
    padded[axis] += window.pad_before + window.pad_after;
  }
  elements_of(padded, transposed ? "outputs with their padding" : "inputs with their padding");
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
      output[axis] = enlarged_extent(layer, axis);
    }
  }
  if (layer.kind == LayerKind::Concat) {
    output[Axis::C] = 0;  // cannot overflow: two billion inputs of two billion channels would fit
    for (const Shape& input : layer.input_shapes) output[Axis::C] += input[Axis::C];
  }
  if (layer.kind == LayerKind::Binary)
    for (const Axis axis : all_axes)
      output[axis] = std::max(layer.input_shapes[0][axis], layer.input_shapes[1][axis]);
  if (layer.kind == LayerKind::GlobalAveragePool || layer.kind == LayerKind::FullyConnected) {
    output[Axis::D] = output[Axis::H] = output[Axis::W] = 1;
  }
  if (is_contraction(layer.kind)) {
    check_extent(layer.filters(), 1, "filters");
    if (layer.groups() < 1 || layer.input[Axis::C] % layer.groups() != 0 ||
        layer.filters() % layer.groups() != 0) {
      throw Complaint{
          fmt::format("expected groups that divide {} input channels and {} filters, found {}",
                      layer.input[Axis::C], layer.filters(), layer.groups())};
    }
    output[Axis::C] = layer.filters();
  }
  return output;
}

/// Checks attributes that depend on each other or on shapes, which a schema cannot do.
void check_attributes(const Layer& layer) {
  if (layer.kind == LayerKind::GroupNorm &&
      (layer.groups() < 1 || layer.input[Axis::C] % layer.groups() != 0)) {
    throw Complaint{
        fmt::format("expected a number of groups that divides the {} channels, found {}",
                    layer.input[Axis::C], layer.groups())};
  }
  const auto* response = std::get_if<LocalResponse>(&layer.attributes);
  if (response && response->size % 2 == 0) {
    throw Complaint{fmt::format(
        "expected an odd local_size, as many channels before as behind, found {}", response->size)};
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
    case LayerKind::Concat: return "one shape (N, C, D, H, W) but for C";
    case LayerKind::Binary: return "one shape (N, C, D, H, W), where all but N may also be 1";
    default: return "one shape (N, C, D, H, W)";
  }
}

void check_inputs(const Network& network, const Layer& layer) {
  const std::size_t least = layer.kind == LayerKind::Input ? 0 : joins(layer.kind) ? 2 : 1;
  const std::size_t count = layer.inputs.size();
  const bool any_number = joins(layer.kind) && layer.kind != LayerKind::Binary;
  if (count < least || (count > least && !any_number)) {
    throw Complaint{
        fmt::format("expected {}{} inputs, found {}", any_number ? "at least " : "", least, count)};
  }
  for (const LayerIndex producer : layer.inputs) {
    const Layer& first = network.layer(layer.inputs.front());
    const Layer& other = network.layer(producer);
    if (is_loss(other.kind)) {
      throw Complaint{
          fmt::format("it reads the loss {}, but no layer can read a loss", other.name)};
    }
    if (!fit_together(layer.kind, first.output, other.output)) {
      throw Complaint{fmt::format("expected inputs of {}, found {} of {} and {} of {}",
                                  what_fits_together(layer.kind), first.name,
                                  fmt::join(first.output.extent, " x "), other.name,
                                  fmt::join(other.output.extent, " x "))};
    }
  }
}

/// Sets the shapes of input and output. Adds the elements of output and weights to `total`.
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
        "expected outputs and weights of at most {} elements in all layers up to this one",
        largest_network)};
  }
}

// ---------------------------------------------------------------- the whole

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
  LayerIndex losses = 0;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const Layer& layer = network.layers[i];
    losses += is_loss(layer.kind);
    if (is_loss(layer.kind) && losses > 1) {
      throw InputError(file, pointers[i],
                       fmt::format("layer {}: expected one loss, this is another", layer.name));
    }
    if (!is_loss(layer.kind) && !is_read[i]) {
      throw InputError(
          file, pointers[i],
          fmt::format("layer {}: no layer reads it, and it is not a loss", layer.name));
    }
  }
  if (losses == 0) {
    throw InputError(file, "/layers",
                     "expected a loss (softmax_cross_entropy, mean_squared_error or dice_loss)");
  }
}

/// The reason against a number of micro-batches, and the JSON pointer of the value that forbids it.
struct BadMicroBatches {
  std::string pointer, text;
};

/// Checks that micro-batches divide the batch and cut neither a statistics set of batch
/// normalization nor a loss over the whole batch. Returns nothing if all is well.
std::optional<BadMicroBatches> check_micro_batches(const Network& network) {
  const std::int64_t parts = network.training.micro_batches;
  if (parts < 1 || network.batch % parts != 0)
    return BadMicroBatches{
        "/batch",
        fmt::format("a batch of {} does not divide into {} micro-batches", network.batch, parts)};
  const bool normalizes = std::ranges::any_of(
      network.layers, [](const Layer& layer) { return layer.kind == LayerKind::BatchNorm; });
  if (parts > 1 && normalizes && network.micro_batch() % network.statistics_samples != 0) {
    return BadMicroBatches{
        "/statistics_samples",
        network.local_statistics
            ? fmt::format("\"local\" needs all samples of a rank at once, but {} micro-batches "
                          "divide them; expected a number of samples",
                          parts)
            : fmt::format("batch normalization takes its statistics over {} samples, which do not "
                          "fit into micro-batches of {} (batch {} in {} parts)",
                          network.statistics_samples, network.micro_batch(), network.batch, parts)};
  }
  const bool whole_batch = std::ranges::any_of(
      network.layers, [](const Layer& layer) { return layer.kind == LayerKind::DiceLoss; });
  if (parts > 1 && whole_batch)
    return BadMicroBatches{
        "/layers",
        fmt::format("the Dice loss sums over the whole batch, so the batch cannot be divided into "
                    "{} micro-batches",
                    parts)};
  return {};
}

}  // namespace

Network finish_network(Network network, const std::string& file,
                       const std::vector<std::string>& pointers) {
  SP_ASSERT(pointers.size() == network.layers.size(), "{} pointers for {} layers", pointers.size(),
            network.layers.size());
  if (network.batch < 1 || network.batch > largest_extent) {
    throw InputError(
        file, "/batch",
        fmt::format("expected from 1 to {} samples, found {}", largest_extent, network.batch));
  }
  if (network.statistics_samples < 1) {
    throw InputError(
        file, "/statistics_samples",
        fmt::format("expected at least 1 sample, found {}", network.statistics_samples));
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
  return network;
}

std::optional<Network> with_micro_batches(const Network& network, std::int64_t micro_batches) {
  Network changed = network;
  changed.training.micro_batches = micro_batches;
  if (check_micro_batches(changed)) return {};
  const std::string name = network.name;
  return finish_network(std::move(changed), name, std::vector<std::string>(network.layers.size()));
}

}  // namespace stratplan
