// Resize and Upsample. ONNX gives scales as floats, or sizes. The scales of a layer are ratios of
// integers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "interop/onnx/extents.hpp"
#include "interop/onnx/operators/operators.hpp"
#include "model/network/limits.hpp"

namespace stratplan::interop {
namespace {

/// Returns the first convergent of the continued fraction of `value` that rounds to `value`: 3 / 5
/// for 0.6f, which is a little more. So a ratio of small numbers is found again.
Ratio ratio_of(float value) {
  need(value > 0 && value <= static_cast<float>(largest_extent),
       fmt::format("a scale of {} is out of range", value));
  std::array<std::int64_t, 2> numerators{0, 1}, denominators{1, 0};  // of the last two convergents
  double rest = static_cast<double>(value);
  while (true) {
    const double whole = std::floor(rest);
    const auto next = [&](std::array<std::int64_t, 2>& last) {
      last = {last[1], static_cast<std::int64_t>(whole) * last[1] + last[0]};
      need(last[1] <= largest_extent, fmt::format("a scale of {} is out of range", value));
      return static_cast<double>(last[1]);
    };
    const double numerator = next(numerators), denominator = next(denominators);
    if (static_cast<float>(numerator / denominator) == value)
      return {numerators[1], denominators[1]};
    rest = 1 / (rest - whole);
  }
}

/// How a node resizes one spatial axis.
struct Resized {
  Ratio ratio{};
  std::int64_t size = 1;  ///< output extent
  bool by_size = false;   ///< the node gives the size, and the ratio follows
  bool operator==(const Resized&) const = default;
};

/// Sets the sizes that keep the ratio of the extents, and are as large as possible but not larger
/// than the given ones, or as small as possible but not smaller.
void keep_aspect_ratio(const Extents& dims, bool not_larger, std::vector<Resized>& axes,
                       const std::vector<bool>& given) {
  std::size_t decides = axes.size();
  const auto ratio = [&](std::size_t i) {
    return static_cast<double>(axes[i].size) / static_cast<double>(dims[i]);
  };
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (!given[i]) continue;
    if (decides == axes.size() ||
        (not_larger ? ratio(i) < ratio(decides) : ratio(i) > ratio(decides)))
      decides = i;
  }
  need(decides < axes.size(), "expected a size for some axis");
  const Ratio all{axes[decides].size, dims[decides]};
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (given[i])
      axes[i] = {all, (2 * all.numerator * dims[i] + all.denominator) / (2 * all.denominator),
                 false};
}

/// Returns how each axis (N, C, ...) is resized. `old`: the node has the operator's form before
/// opset 11.
std::vector<Resized> resized_axes(const Operation& op, const Tensor& x, bool old) {
  const std::size_t rank = x.dims.size();
  std::vector<std::int64_t> listed = op.node.integers("axes");
  if (listed.empty())
    for (std::size_t i = 0; i < rank; ++i) listed.push_back(static_cast<std::int64_t>(i));
  listed = from_front(listed, rank);
  std::vector<Resized> axes(rank);
  std::vector<bool> given(rank, false);
  for (std::size_t i = 0; i < rank; ++i) axes[i].size = x.dims[i];
  const auto at = [&](std::size_t i) { return static_cast<std::size_t>(listed[i]); };
  const auto sizes = old ? std::nullopt : op.optional_constant(3);
  if (sizes && sizes->elements() > 0) {
    const auto extents = sizes->integers();
    need(extents.size() == listed.size(), "expected one size for each axis of the input");
    for (std::size_t i = 0; i < extents.size(); ++i) {
      need(extents[i] >= 1 && extents[i] <= largest_extent,
           fmt::format("a size of {} is out of range", extents[i]));
      axes[at(i)] = {{extents[i], x.dims[at(i)]}, extents[i], true};
      given[at(i)] = true;
    }
    const std::string policy = op.node.text("keep_aspect_ratio_policy", "stretch");
    if (policy != "stretch") keep_aspect_ratio(x.dims, policy == "not_larger", axes, given);
    return axes;
  }
  const std::vector<float> scales =
      old && !op.given(1) ? op.node.numbers("scales") : op.constant(old ? 1 : 2).floats();
  need(scales.size() == listed.size(), "expected one scale for each axis of the input");
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const Ratio ratio = ratio_of(scales[i]);
    axes[at(i)] = {ratio, x.dims[at(i)] * ratio.numerator / ratio.denominator, false};
  }
  return axes;
}

template <class Enumeration, std::size_t count>
Enumeration named(const std::string& name, const std::array<std::string_view, count>& names,
                  const char* what) {
  const auto found = std::ranges::find(names, name);
  need(found != names.end(), fmt::format("{} {} is not supported", what, name));
  return static_cast<Enumeration>(found - names.begin());
}

/// Returns how the node maps positions; the ratio is left open. Before opset 11, output element i
/// is input element i / scale, rounded down; Resize in opset 10 rounds up where it reduces an axis.
Resizing mapping_of(const Operation& op, const std::vector<Resized>& axes, bool old) {
  const std::string mode = op.node.text("mode", "nearest");
  Resizing made{.linear = mode.starts_with("linear") || mode == "bilinear"};
  need(made.linear || mode == "nearest", fmt::format("the mode {} is not supported", mode));
  need(op.node.integer("antialias", 0) == 0, "an antialiased resize is not supported");
  if (!old) {
    made.coordinates =
        named<Coordinates>(op.node.text("coordinate_transformation_mode", "half_pixel"),
                           coordinates_names, "a resize with coordinates");
    made.rounding = named<Rounding>(op.node.text("nearest_mode", "round_prefer_floor"),
                                    rounding_names, "the nearest element by");
    return made;
  }
  made.coordinates = Coordinates::Asymmetric;
  made.rounding = Rounding::Floor;
  const auto count = [&](auto holds) { return std::ranges::count_if(axes, holds); };
  const auto fewer =
      count([](const Resized& a) { return a.ratio.numerator < a.ratio.denominator; });
  const auto broken = count([](const Resized& a) {
    return a.ratio.numerator > a.ratio.denominator && a.ratio.denominator > 1;
  });
  if (made.linear || fewer == 0) return made;
  need(broken == 0, "in opset 10, it enlarges one axis by a fraction and reduces another");
  made.rounding = Rounding::Ceil;
  return made;
}

}  // namespace

void resize(const Operation& op) {
  const Tensor x = op.image(0, 1);
  const bool old = op.node.op() == "Upsample" || op.opset < 11;
  const auto axes = resized_axes(op, x, old);
  Resizing how = mapping_of(op, axes, old);
  for (const std::size_t i : {0U, 1U})
    need(axes[i].size == x.dims[i] && axes[i].ratio.numerator == axes[i].ratio.denominator,
         "expected a scale of 1 along samples and channels");
  const std::size_t rank = x.dims.size();
  Shape output = op.graph.shape(x);
  std::array<Resized, 3> along{};  // along D, H, W
  bool changes = false, by_size = false, usual = true;
  for (std::size_t i = 2; i < rank; ++i) {
    const Resized& axis = axes[i];
    const std::size_t place = 3 + i - rank;
    need(axis.size >= 1 && axis.size <= largest_extent, "the output has too many positions");
    along[place] = axis;
    output.extent[2 + place] = axis.size;
    how.ratio = axis.ratio;
    const Scale scale = scale_of(how, x.dims[i], axis.size);
    changes = changes || axis.size != x.dims[i] || !scale.is_identity();
    by_size = by_size || (axis.by_size && axis.size % x.dims[i] != 0);
    usual = usual && scale == scale_of({axis.ratio, how.linear}, x.dims[i], axis.size);
  }
  if (!changes) return op.output(x);
  const auto list = [&](auto value) {
    return op.along({value(along[0]), value(along[1]), value(along[2])});
  };
  Json attributes = Json::object();
  const bool sized = std::ranges::any_of(axes, [&](const Resized& axis) {
    const auto i = static_cast<std::size_t>(&axis - axes.data());
    return axis.size != x.dims[i] * axis.ratio.numerator / axis.ratio.denominator;
  });
  if (!by_size)
    attributes["scale"] = list([](const Resized& axis) -> Json {
      const std::int64_t whole = axis.ratio.numerator / axis.ratio.denominator;
      if (whole * axis.ratio.denominator == axis.ratio.numerator) return whole;
      return {axis.ratio.numerator, axis.ratio.denominator};
    });
  if (by_size || sized)
    for (std::size_t i = 3 - op.graph.spatial_axes(); i < along.size(); ++i)
      attributes["size"].push_back(along[i].size);
  if (how.linear) attributes["mode"] = "linear";
  if (!usual) {
    attributes["coordinates"] = coordinates_names[static_cast<std::size_t>(how.coordinates)];
    if (!how.linear && how.rounding != Rounding::PreferFloor)
      attributes["rounding"] = rounding_names[static_cast<std::size_t>(how.rounding)];
  }
  op.layer(LayerKind::Upsample, x, output, attributes);
}

}  // namespace stratplan::interop
