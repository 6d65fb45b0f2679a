// Operators that slide windows over positions, or reduce all of them.
#include <fmt/format.h>

#include <algorithm>

#include "interop/onnx/extents.hpp"
#include "interop/onnx/operators/operators.hpp"
#include "model/network/limits.hpp"

namespace stratplan::interop {
namespace {

/// Returns the index among D, H, W of the i-th of `axes` spatial axes. One axis is W, two axes are
/// H and W.
std::size_t place_of(std::size_t i, std::size_t axes) { return 3 - axes + i; }

/// Returns an attribute's list. Throws unless the list has `count` numbers from `least` to
/// largest_extent. Without the attribute, every number is `otherwise`.
std::vector<std::int64_t> checked(const Operation& op, const char* attribute, std::size_t count,
                                  std::int64_t otherwise, std::int64_t least) {
  auto values = op.node.integers(attribute, std::vector<std::int64_t>(count, otherwise));
  need(values.size() == count,
       fmt::format("its list {} has {} numbers, expected {}", attribute, values.size(), count));
  for (const std::int64_t value : values)
    need(value >= least && value <= largest_extent,
         fmt::format("its list {} has the value {}, which is out of range", attribute, value));
  return values;
}

/// Returns windows with the kernel, strides and dilations of the node. They also have its padding,
/// unless auto_pad chooses the padding.
Windows window_of(const Operation& op, const std::vector<std::int64_t>& kernel) {
  const std::size_t axes = kernel.size();
  need(axes >= 1 && axes <= 3, fmt::format("expected a window along 1 to 3 axes, found {}", axes));
  const auto strides = checked(op, "strides", axes, 1, 1),
             dilations = checked(op, "dilations", axes, 1, 1);
  const auto pads = checked(op, "pads", 2 * axes, 0, 0);
  const bool explicit_pads = op.node.text("auto_pad", "NOTSET") == "NOTSET";
  Windows windows{};
  for (std::size_t i = 0; i < axes; ++i) {
    need(kernel[i] >= 1 && kernel[i] <= largest_extent,
         fmt::format("the kernel extent {} is out of range", kernel[i]));
    Window& window = windows[place_of(i, axes)];
    window = {kernel[i], strides[i], dilations[i], explicit_pads ? pads[i] : 0,
              explicit_pads ? pads[axes + i] : 0};
    need(window.span() <= largest_extent,
         fmt::format("a window of {} elements with dilation {} is too large", window.kernel,
                     window.dilation));
  }
  return windows;
}

/// Sets the padding that auto_pad chooses. SAME pads so that there are ceil(extent / stride)
/// outputs. If the total is odd, the additional element lies behind the input (UPPER) or before it
/// (LOWER).
void pad_automatically(const Operation& op, const Shape& input, std::size_t axes,
                       Windows& windows) {
  const std::string mode = op.node.text("auto_pad", "NOTSET");
  if (mode == "NOTSET" || mode == "VALID" || mode.empty()) return;
  need(mode == "SAME_UPPER" || mode == "SAME_LOWER", fmt::format("auto_pad {} is unknown", mode));
  for (std::size_t i = 0; i < axes; ++i) {
    Window& window = windows[place_of(i, axes)];
    const std::int64_t extent = input.extent[2 + place_of(i, axes)],
                       outputs = (extent + window.stride - 1) / window.stride;
    const std::int64_t total =
        std::max<std::int64_t>(0, (outputs - 1) * window.stride + window.span() - extent);
    window.pad_before = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    window.pad_after = total - window.pad_before;
  }
}

/// Turns ceil_mode into padding behind the last element. The padding makes room for a window that
/// would reach beyond the end, if that window begins within the input or the padding before it.
/// Returns whether padding was added.
bool round_up(const Operation& op, const Shape& input, Windows& windows) {
  if (op.node.integer("ceil_mode", 0) == 0) return false;
  bool more = false;
  for (std::size_t i = 0; i < 3; ++i) {
    Window& window = windows[i];
    const std::int64_t extent = input.extent[2 + i],
                       padded = extent + window.pad_before + window.pad_after;
    std::int64_t outputs = (padded - window.span() + window.stride - 1) / window.stride + 1;
    if ((outputs - 1) * window.stride >= extent + window.pad_before) --outputs;
    const std::int64_t added =
        std::max<std::int64_t>(0, (outputs - 1) * window.stride + window.span() - padded);
    window.pad_after += added;
    more = more || added > 0;
  }
  return more;
}

Shape slid(Shape shape, const Windows& windows) {
  for (std::size_t i = 0; i < 3; ++i) {
    std::int64_t& extent = shape.extent[2 + i];
    const std::int64_t outputs = windows[i].output_extent(extent);
    need(outputs >= 1 && outputs <= largest_extent,
         fmt::format("a window of {} does not fit {} positions", windows[i].span(), extent));
    extent = outputs;
  }
  return shape;
}

Json padding_of(const Window& window) {
  if (window.pad_before == window.pad_after) return window.pad_before;
  return Json{window.pad_before, window.pad_after};
}

/// Returns the attributes that differ from network.json's defaults. The default stride of a pooling
/// is its kernel.
Json attributes_of(const Operation& op, const Windows& windows, bool pools) {
  const auto each = [&](auto value) {
    return op.along({value(windows[0]), value(windows[1]), value(windows[2])});
  };
  const auto any = [&](auto differs) {
    return std::any_of(windows.begin(), windows.end(), differs);
  };
  Json attributes{{"kernel", each([](const Window& window) -> Json { return window.kernel; })}};
  if (any([pools](const Window& window) { return window.stride != (pools ? window.kernel : 1); }))
    attributes["stride"] = each([](const Window& window) -> Json { return window.stride; });
  if (any([](const Window& window) { return window.pad_before + window.pad_after > 0; }))
    attributes["padding"] = each(padding_of);
  if (any([](const Window& window) { return window.dilation != 1; }))
    attributes["dilation"] = each([](const Window& window) -> Json { return window.dilation; });
  return attributes;
}

/// Returns the extents (F, C, kD, kH, kW) of a parameter for weights (F, C, [[kD,] kH,] kW).
Extents with_three(const Extents& weights) {
  Extents shape{weights[0], weights[1], 1, 1, 1};
  std::copy(weights.begin() + 2, weights.end(), shape.end() - std::ssize(weights) + 2);
  return shape;
}

/// Returns the weights and the bias, unless it is zero and no parameter of the model.
std::vector<Parameter> weights_and_bias(const Operation& op, const Constant& weights,
                                        std::int64_t filters, Json& attributes) {
  std::vector<Parameter> parameters{
      op.parameter("weights", with_three(weights.extents()), weights, 1)};
  const auto bias = op.optional_constant(2);
  if (!bias) return parameters;
  need(bias->elements() == filters,
       fmt::format("its bias has {} elements, expected one for each of {} filters",
                   bias->elements(), filters));
  if (bias->origin() == Origin::Literal && is_filled(*bias, 0.0F)) return parameters;
  parameters.push_back(op.parameter("bias", {filters}, *bias, 2));
  attributes["bias"] = true;
  return parameters;
}

/// Reports weights that look like a fixed kernel, for example a blur: those of a convolution of
/// each channel alone, with equal filters. Training hardly ever leaves two filters equal.
void report_fixed_kernel(const Operation& op, const Constant& weights) {
  const Extents& extents = weights.extents();
  const std::int64_t filters = extents[0],
                     each = weights.elements() / std::max<std::int64_t>(filters, 1);
  if (!op.graph.request().buffers || filters < 2 || extents[1] != 1 ||
      op.node.integer("group", 1) != filters || each < 2 || weights.elements() > most_in_document ||
      weights.origin() != Origin::Stored || is_filled(weights))
    return;
  const std::vector<float> values = as_floats(weights).floats();
  for (std::size_t i = static_cast<std::size_t>(each); i < values.size(); ++i)
    if (values[i] != values[i - static_cast<std::size_t>(each)]) return;
  const std::string& tensor = op.node.input(1);
  if (!op.graph.decisions().asked({tensor, weights.tensor()}))
    op.graph.decisions().report(fmt::format(
        "{}, the weights of {} ({}), are trained, although all filters are equal, as in "
        "a fixed kernel; --constant {} or --freeze {} changes this",
        tensor, op.node.name(), op.node.op(), tensor, tensor));
}

/// Returns the node's input 1: the weights of a convolution of the image x.
Constant weights_for(const Operation& op, const Tensor& x) {
  Constant weights = op.constant(1);
  need(weights.extents().size() == x.dims.size() && weights.elements() > 0,
       "expected weights that have elements and as many axes as the input");
  const std::vector<std::int64_t> kernel(weights.extents().begin() + 2, weights.extents().end());
  need(op.node.integers("kernel_shape", kernel) == kernel,
       "its kernel_shape differs from the kernel of its weights");
  report_fixed_kernel(op, weights);
  return weights;
}

/// Whether the exporter seems to have folded the layer behind the convolution into it.
/// TorchScript's exporter then computes the bias. That of torch.export gives the output the name of
/// the other layer's output, which is one of several outputs for a batch normalization.
bool seems_folded(const Operation& op) {
  const auto bias = op.optional_constant(2);
  return (bias && bias->origin() == Origin::Stored && is_made_by_exporter(*bias)) ||
         op.node.output(0).starts_with("getitem");
}

void pool_all(const Operation& op, const Tensor& x, LayerKind kind) {
  Shape output = op.graph.shape(x);
  Json attributes = Json::object();
  if (kind == LayerKind::MaxPool)
    attributes["kernel"] = op.along({output[Axis::D], output[Axis::H], output[Axis::W]});
  output[Axis::D] = output[Axis::H] = output[Axis::W] = 1;
  op.layer(kind, x, output, attributes);
}

}  // namespace

void convolution(const Operation& op) {
  const Tensor x = op.image(0, 1);
  const Constant weights = weights_for(op, x);
  const Extents& extents = weights.extents();
  const std::int64_t groups = op.node.integer("group", 1), filters = extents[0];
  need(groups >= 1 && filters % groups == 0 && op.channels(x) % groups == 0 &&
           extents[1] == op.channels(x) / groups,
       fmt::format(
           "weights of {} filters, {} channels and {} groups do not fit an input of {} channels",
           filters, extents[1], groups, op.channels(x)));
  Windows windows = window_of(op, {extents.begin() + 2, extents.end()});
  pad_automatically(op, op.graph.shape(x), extents.size() - 2, windows);
  Json attributes{{"filters", filters}};
  attributes.update(attributes_of(op, windows, false));
  if (groups > 1) attributes["groups"] = groups;
  auto parameters = weights_and_bias(op, weights, filters, attributes);
  op.graph.folded += seems_folded(op);
  Shape output = slid(op.graph.shape(x), windows);
  output[Axis::C] = filters;
  op.layer(LayerKind::Convolution, x, output, attributes, parameters);
}

namespace {

/// Sets the padding that yields the wanted output extents. These are output_shape, or with auto_pad
/// SAME the input's extents times the strides. If the total is odd, the additional element lies
/// before the first one, except with SAME_UPPER. `added`: the output padding along D, H and W,
/// which grows if the output reaches beyond all windows.
void pad_to_output(const Operation& op, const Shape& input, std::size_t axes, Windows& windows,
                   std::array<std::int64_t, 3>& added) {
  const std::string mode = op.node.text("auto_pad", "NOTSET");
  std::vector<std::int64_t> wanted = op.node.integers("output_shape");
  if (wanted.empty() && mode.starts_with("SAME"))
    for (std::size_t i = 0; i < axes; ++i)
      wanted.push_back(input.extent[2 + place_of(i, axes)] * windows[place_of(i, axes)].stride);
  if (wanted.empty()) return;
  need(wanted.size() >= axes, "its output_shape has too few extents");
  wanted.erase(wanted.begin(), wanted.end() - static_cast<std::ptrdiff_t>(axes));
  for (const std::int64_t extent : wanted)
    need(extent >= 1, fmt::format("an output of {} positions is out of range", extent));
  elements_of(wanted);
  for (std::size_t i = 0; i < axes; ++i) {
    const std::size_t at = place_of(i, axes);
    Window& window = windows[at];
    std::int64_t total =
        (input.extent[2 + at] - 1) * window.stride + added[at] + window.span() - wanted[i];
    if (total < 0) {  // the output reaches beyond all windows
      added[at] -= total;
      total = 0;
    }
    window.pad_before = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    window.pad_after = total - window.pad_before;
  }
}

}  // namespace

void transposed_convolution(const Operation& op) {
  const Tensor x = op.image(0, 1);
  const Constant weights = weights_for(op, x);
  const Extents& extents = weights.extents();
  const std::size_t axes = extents.size() - 2;
  const std::int64_t groups = op.node.integer("group", 1);
  need(groups >= 1 && extents[0] == op.channels(x) && op.channels(x) % groups == 0,
       fmt::format("weights of {} channels in {} groups do not fit an input of {} channels",
                   extents[0], groups, op.channels(x)));
  const std::int64_t filters = extents[1] * groups;
  Windows windows = window_of(op, {extents.begin() + 2, extents.end()});
  const auto given = checked(op, "output_padding", axes, 0, 0);
  std::array<std::int64_t, 3> added{};
  for (std::size_t i = 0; i < axes; ++i) added[place_of(i, axes)] = given[i];
  pad_to_output(op, op.graph.shape(x), axes, windows, added);
  Json attributes{{"filters", filters}};
  attributes.update(attributes_of(op, windows, false));
  if (added != std::array<std::int64_t, 3>{})
    attributes["output_padding"] = op.along({added[0], added[1], added[2]});
  if (groups > 1) attributes["groups"] = groups;
  auto parameters = weights_and_bias(op, weights, filters, attributes);
  Shape output = op.graph.shape(x);
  for (std::size_t i = 0; i < 3; ++i) {
    std::int64_t& extent = output.extent[2 + i];
    extent = (extent - 1) * windows[i].stride + windows[i].span() + added[i] -
             windows[i].pad_before - windows[i].pad_after;
    need(extent >= 1, "its padding leaves nothing of the output");
    need(extent <= largest_extent,
         fmt::format("an output of {} positions is out of range", extent));
  }
  output[Axis::C] = filters;
  op.layer(LayerKind::TransposedConvolution, x, output, attributes, parameters);
}

/// Returns the extents of the windows that slide over the image x.
std::vector<std::int64_t> kernel_over(const Operation& op, const Tensor& x) {
  std::vector<std::int64_t> kernel = op.node.integers("kernel_shape");
  need(kernel.size() == x.dims.size() - 2,
       fmt::format("its kernel_shape has {} numbers, expected {}", kernel.size(),
                   x.dims.size() - 2));
  return kernel;
}

void max_pool(const Operation& op) {
  Tensor x = op.image(0, 1);
  const std::vector<std::int64_t> kernel = kernel_over(op, x);
  Windows windows = window_of(op, kernel);
  pad_automatically(op, op.graph.shape(x), kernel.size(), windows);
  round_up(op, op.graph.shape(x), windows);
  merge_padding(op, x, windows);
  op.layer(LayerKind::MaxPool, x, slid(op.graph.shape(x), windows),
           attributes_of(op, windows, true));
}

void average_pool(const Operation& op) {
  const Tensor x = op.image(0, 1);
  const Shape shape = op.graph.shape(x);
  const std::vector<std::int64_t> kernel = kernel_over(op, x);
  Windows windows = window_of(op, kernel);
  pad_automatically(op, shape, kernel.size(), windows);
  const bool padded = std::any_of(windows.begin(), windows.end(), [](const Window& window) {
    return window.pad_before + window.pad_after > 0;
  });
  bool counts = op.node.integer("count_include_pad", 0) != 0;
  need(!round_up(op, shape, windows) || !counts,
       "no layer counts the padding of pads (count_include_pad) without that of ceil_mode");
  const bool all = !padded && std::equal(windows.begin(), windows.end(), shape.extent.begin() + 2,
                                         [](const Window& window, std::int64_t extent) {
                                           return window.kernel == extent && window.dilation == 1;
                                         });
  if (all) return pool_all(op, x, LayerKind::GlobalAveragePool);
  Json attributes = attributes_of(op, windows, true);
  if (attributes.contains("padding") && !counts) attributes["count_padding"] = false;
  op.layer(LayerKind::AveragePool, x, slid(shape, windows), attributes);
}

void global_average_pool(const Operation& op) {
  pool_all(op, op.image(0), LayerKind::GlobalAveragePool);
}

void global_max_pool(const Operation& op) { pool_all(op, op.image(0, 1), LayerKind::MaxPool); }

}  // namespace stratplan::interop
