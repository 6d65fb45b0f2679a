#include "runtime/cpu/convolution/winograd.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "model/base/assert.hpp"
#include "runtime/cpu/convolution/panels.hpp"
#include "runtime/cpu/convolution/winograd_tile.hpp"

namespace stratplan::cpu {
namespace {

using namespace winograd;

// ---------------------------------------------------------------- geometry

/// A pass as a convolution from `in` to `out`. Backward data is a convolution from dy to dx with
/// windows turned by 180 degrees (`turned`). The filter gradient uses the tiles of the forward
/// pass.
struct Pass {
  explicit Pass(const Kernel& kernel)
      : turned(kernel.kind == KernelKind::ConvolutionBackwardData),
        in(turned ? kernel.y : kernel.x),
        out(turned ? kernel.x : kernel.y),
        depth(kernel.windows()[0]),
        pad_h(turned ? taps - 1 - kernel.windows()[1].pad_before : kernel.windows()[1].pad_before),
        pad_w(turned ? taps - 1 - kernel.windows()[2].pad_before : kernel.windows()[2].pad_before),
        tiles_h((out[Axis::H] + outputs - 1) / outputs),
        tiles_w((out[Axis::W] + outputs - 1) / outputs),
        planes_held(std::min(depth.span(), in[Axis::D])) {
    const std::int64_t wanted = std::max<std::int64_t>(
        64, (std::int64_t{3} << 17) / (points * (in[Axis::C] + out[Axis::C])));
    rows_of_tiles =
        std::clamp<std::int64_t>((wanted + tiles_w - 1) / tiles_w, 1, out[Axis::N] * tiles_h);
  }

  /// Returns the plane of `in` that plane `plane` of `out` reads through tap `tap` along D. Returns
  /// -1 if that plane of `in` is padding or is skipped by the stride.
  std::int64_t plane_of(std::int64_t plane, std::int64_t tap) const {
    const std::int64_t offset = tap * depth.dilation - depth.pad_before;
    std::int64_t position = turned ? plane - offset : plane * depth.stride + offset;
    if (turned && position % depth.stride != 0) return -1;
    if (turned) position /= depth.stride;
    return position >= 0 && position < in[Axis::D] ? position : -1;
  }

  /// Returns the number of tiles of a full band.
  std::int64_t tiles() const { return rows_of_tiles * tiles_w; }
  // The next four functions return numbers of floats. inputs_size() and outputs_size() count the
  // transformed inputs and outputs of one plane of a band. filters_size() counts all transformed
  // filters. floats() counts all floats of the workspace.
  std::int64_t inputs_size() const { return points * tiles() * in[Axis::C]; }
  std::int64_t outputs_size() const { return points * tiles() * out[Axis::C]; }
  std::int64_t filters_size() const { return depth.kernel * points * in[Axis::C] * out[Axis::C]; }
  std::int64_t floats() const {
    return planes_held * inputs_size() + outputs_size() + filters_size();
  }
  /// After the floats, the workspace holds one int64 per held plane and one per tap along D. The
  /// number of floats is even, so the int64 values are aligned.
  Bytes workspace() const {
    return {floats() * size_of(DataType::F32) +
            (planes_held + depth.kernel) * std::int64_t{sizeof(std::int64_t)}};
  }

  bool turned;
  Shape in, out;
  Window depth;
  std::int64_t pad_h, pad_w;
  std::int64_t tiles_h, tiles_w;
  /// number of planes of transformed inputs that the workspace holds. Each plane stays until the
  /// last output plane that reads it is computed.
  std::int64_t planes_held;
  /// rows of tiles in a band. They are few enough for the band to stay in a cache, but so many that
  /// reading the filters pays off.
  std::int64_t rows_of_tiles;
};

/// Rows of tiles [begin, end), counted through N and H, that are processed together.
struct Band {
  std::int64_t begin, end;
};

struct Tile {
  std::int64_t n, h, w;  ///< sample, and first output position along H and W
};

Tile tile_at(const Pass& pass, const Band& band, std::int64_t index) {
  const std::int64_t row = band.begin + index / pass.tiles_w;
  return {row / pass.tiles_h, row % pass.tiles_h * outputs, index % pass.tiles_w * outputs};
}

/// The extents of a plane of one sample, and the offset of its first element.
struct Plane {
  std::int64_t height, width, channels;
  std::int64_t offset;
  Plane(const Shape& shape, std::int64_t n, std::int64_t d)
      : height(shape[Axis::H]),
        width(shape[Axis::W]),
        channels(shape[Axis::C]),
        offset((n * shape[Axis::D] + d) * height * width * channels) {}
};

// ---------------------------------------------------------------- transforms

/// Loads eight channels of size x size positions from (h, w) on, with zeros outside the plane.
template <int size>
SP_INLINE void load_square(const float* data, const Plane& plane, std::int64_t h, std::int64_t w,
                           std::int64_t channel, Float8 (&square)[size][size]) {
  for (int i = 0; i < size; ++i) {
    for (int j = 0; j < size; ++j) {
      const bool inside = h + i >= 0 && h + i < plane.height && w + j >= 0 && w + j < plane.width;
      square[i][j] = inside ? load8(data + plane.offset +
                                    ((h + i) * plane.width + w + j) * plane.channels + channel)
                            : Float8{};
    }
  }
}

template <int size>
SP_INLINE void store_points(const Float8 (&values)[size][size], float* to, std::int64_t stride) {
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < size; ++j) store(to + (i * size + j) * stride, values[i][j]);
}

template <int size>
SP_INLINE void load_points(const float* from, std::int64_t stride, Float8 (&values)[size][size]) {
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < size; ++j) values[i][j] = load8(from + (i * size + j) * stride);
}

/// The memory layout of a transformed tensor at one point. The tensor lies in rows of channels
/// (as_rows) or in panels of sixteen channels (as_panels).
struct Layout {
  std::int64_t tile, sixteen;  ///< distances of neighbouring tiles and panels, in floats
  std::int64_t place(std::int64_t index, std::int64_t channel) const {
    return index * tile + channel / panel_columns * sixteen + channel % panel_columns;
  }
};
Layout as_rows(std::int64_t channels) { return {channels, panel_columns}; }
Layout as_panels(std::int64_t tiles) { return {panel_columns, tiles * panel_columns}; }

/// Transforms one tile of size x size positions to 36 points. The points lie `stride` floats apart.
template <int size, class Transform>
SP_INLINE void transform_positions(const float* data, const Plane& plane, std::int64_t h,
                                   std::int64_t w, std::int64_t index, Layout layout, float* to,
                                   std::int64_t stride, Transform transform) {
  for (std::int64_t channel = 0; channel < plane.channels; channel += 8) {
    Float8 square[size][size], result[inputs][inputs];
    load_square<size>(data, plane, h, w, channel, square);
    transform_tile<size, inputs>(square, result, transform);
    store_points<inputs>(result, to + layout.place(index, channel), stride);
  }
}

SP_CLONES void transform_input(const float* in, const Plane& plane, std::int64_t h, std::int64_t w,
                               std::int64_t index, Layout layout, float* to, std::int64_t stride) {
  transform_positions<inputs>(in, plane, h, w, index, layout, to, stride, TransformInput{});
}

SP_CLONES void transform_output_gradient(const float* dy, const Plane& plane, std::int64_t h,
                                         std::int64_t w, std::int64_t index, Layout layout,
                                         float* to, std::int64_t stride) {
  transform_positions<outputs>(dy, plane, h, w, index, layout, to, stride,
                               TransformOutputGradient{});
}

/// Bias and activation, which are applied to outputs before they are stored.
struct Finish {
  const float* bias;  ///< may be null
  bool activates;
  float slope;  ///< a ReLU is a leaky ReLU of slope 0
};

/// Transforms the 36 points of one tile to outputs, and stores the outputs that lie inside the
/// plane.
SP_CLONES void transform_output(const float* from, std::int64_t stride, Finish finish,
                                const Plane& plane, std::int64_t h, std::int64_t w, float* out) {
  const std::int64_t rows = std::min<std::int64_t>(outputs, plane.height - h),
                     columns = std::min<std::int64_t>(outputs, plane.width - w);
  for (std::int64_t channel = 0; channel < plane.channels; channel += 8) {
    Float8 values[inputs][inputs], square[outputs][outputs];
    load_points<inputs>(from + channel, stride, values);
    transform_tile<inputs, outputs>(values, square, TransformOutput{});
    const Float8 added = finish.bias ? load8(finish.bias + channel) : Float8{};
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        Float8 value = square[i][j] + added;
        if (finish.activates) value = leak(value, value, finish.slope);
        store(out + plane.offset + ((h + i) * plane.width + w + j) * plane.channels + channel,
              value);
      }
  }
}

/// Loads eight input channels of one filter. Weights are stored as (F, kD, 3, 3, C). `turned`:
/// turns the window by 180 degrees.
SP_INLINE void load_filter(const float* weights, std::int64_t channels, bool turned,
                           Float8 (&filter)[taps][taps]) {
  for (int i = 0; i < taps; ++i)
    for (int j = 0; j < taps; ++j)
      filter[i][j] = load8(
          weights + ((turned ? taps - 1 - i : i) * taps + (turned ? taps - 1 - j : j)) * channels);
}

/// Transforms filters [f, f + 8) and channels [c, c + 8) for the forward pass, into panels of
/// filters with a row per channel.
SP_CLONES void transform_forward_filters(const float* weights, std::int64_t filter_size,
                                         std::int64_t channels, std::int64_t f, std::int64_t c,
                                         float* to, std::int64_t stride) {
  Float8 values[8][inputs][inputs];
  for (int i = 0; i < 8; ++i) {
    Float8 filter[taps][taps];
    load_filter(weights + i * filter_size, channels, false, filter);
    transform_tile<taps, inputs>(filter, values[i], TransformFilter{});
  }
  for (int point = 0; point < points; ++point) {
    Float8 rows[8];
    for (int i = 0; i < 8; ++i) rows[i] = values[i][point / inputs][point % inputs];
    transpose(rows);
    float* const panel =
        to + point * stride + f / panel_columns * channels * panel_columns + f % panel_columns;
    for (int i = 0; i < 8; ++i) store(panel + (c + i) * panel_columns, rows[i]);
  }
}

/// Transforms all channels of one filter for backward data, into panels of channels with a row per
/// filter.
SP_CLONES void transform_turned_filter(const float* weights, std::int64_t channels,
                                       std::int64_t filters, std::int64_t f, float* to,
                                       std::int64_t stride) {
  for (std::int64_t c = 0; c < channels; c += 8) {
    Float8 filter[taps][taps], values[inputs][inputs];
    load_filter(weights + c, channels, true, filter);
    transform_tile<taps, inputs>(filter, values, TransformFilter{});
    store_points<inputs>(
        values,
        to + c / panel_columns * filters * panel_columns + f * panel_columns + c % panel_columns,
        stride);
  }
}

SP_CLONES void add_filter_gradient(const float* from, std::int64_t stride, std::int64_t channels,
                                   float* dweights) {
  for (std::int64_t c = 0; c < channels; c += 8) {
    Float8 values[inputs][inputs], filter[taps][taps];
    load_points<inputs>(from + c, stride, values);
    transform_tile<inputs, taps>(values, filter, TransformFilterGradient{});
    for (int i = 0; i < taps; ++i)
      for (int j = 0; j < taps; ++j) {
        float* const to = dweights + (i * taps + j) * channels + c;
        store(to, load8(to) + filter[i][j]);
      }
  }
}

// ---------------------------------------------------------------- passes

/// The workspace of one run, with a record of the input planes that the workspace holds.
class Scratch {
 public:
  Scratch(const Pass& pass, void* workspace)
      : pass_(pass),
        inputs_(static_cast<float*>(workspace)),
        held_(reinterpret_cast<std::int64_t*>(inputs_ + pass.floats()),
              static_cast<std::size_t>(pass.planes_held)) {}

  void begin_band(const Band& band) {
    band_ = band;
    std::ranges::fill(held_, -1);
  }
  std::int64_t tiles() const { return (band_.end - band_.begin) * pass_.tiles_w; }
  float* transformed_outputs() const { return inputs_ + pass_.planes_held * pass_.inputs_size(); }
  float* transformed_filters() const { return transformed_outputs() + pass_.outputs_size(); }
  std::span<std::int64_t> counts_of_taps() const {
    return {held_.data() + held_.size(), static_cast<std::size_t>(pass_.depth.kernel)};
  }

  /// Returns the transformed tiles of input plane `plane` in the current band. Transforms the plane
  /// first if the workspace does not hold it.
  const float* transformed_input(const float* in, std::int64_t plane, Layout layout) {
    const std::int64_t slot = plane % pass_.planes_held, channels = pass_.in[Axis::C];
    float* const to = inputs_ + slot * pass_.inputs_size();
    if (std::exchange(held_[static_cast<std::size_t>(slot)], plane) == plane) return to;
    in_parallel(tiles(), 1, [&](auto begin, auto end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const Tile tile = tile_at(pass_, band_, i);
        transform_input(in, Plane(pass_.in, tile.n, plane), tile.h - pass_.pad_h,
                        tile.w - pass_.pad_w, i, layout, to, tiles() * channels);
      }
    });
    return to;
  }

 private:
  const Pass& pass_;
  Band band_{};
  float* inputs_;
  std::span<std::int64_t> held_;
};

template <class Visit>
void for_each_band(const Pass& pass, Scratch& scratch, Visit visit) {
  const std::int64_t rows = pass.out[Axis::N] * pass.tiles_h;
  for (std::int64_t begin = 0; begin < rows; begin += pass.rows_of_tiles) {
    const Band band{begin, std::min(rows, begin + pass.rows_of_tiles)};
    scratch.begin_band(band);
    visit(band);
  }
}

void transform_filters(const Kernel& kernel, const Pass& pass, const float* weights, float* to) {
  const std::int64_t channels = kernel.x[Axis::C], filters = kernel.y[Axis::C],
                     depth = pass.depth.kernel, of_tap = taps * taps * channels;
  for (std::int64_t tap = 0; tap < depth; ++tap, to += points * channels * filters) {
    const float* const from = weights + tap * of_tap;
    in_parallel(filters / 8, 1, [&](auto begin, auto end) {
      for (std::int64_t f = begin * 8; f < end * 8; f += pass.turned ? 1 : 8) {
        const float* const filter = from + f * depth * of_tap;
        if (pass.turned) {
          transform_turned_filter(filter, channels, filters, f, to, channels * filters);
        } else {
          for (std::int64_t c = 0; c < channels; c += 8)
            transform_forward_filters(filter + c, depth * of_tap, channels, f, c, to,
                                      channels * filters);
        }
      }
    });
  }
}

/// Computes the forward pass or backward data.
void convolve(const Kernel& kernel, const KernelCall& call) {
  const Pass pass(kernel);
  Scratch scratch(pass, call.workspace);
  const Finish finish{
      kernel.as<ConvolutionAttributes>().bias && !pass.turned ? call.read(2) : nullptr,
      kernel.epilogue().activation.has_value(), static_cast<float>(kernel.epilogue().slope())};
  float* const products = scratch.transformed_outputs();
  const std::int64_t channels = pass.in[Axis::C], filters = pass.out[Axis::C];
  transform_filters(kernel, pass, call.read(1), scratch.transformed_filters());
  for_each_band(pass, scratch, [&](const Band& band) {
    const std::int64_t tiles = scratch.tiles();
    for (std::int64_t plane = 0; plane < pass.out[Axis::D]; ++plane) {
      bool begun = false;
      for (std::int64_t tap = 0; tap < pass.depth.kernel; ++tap) {
        const std::int64_t from = pass.plane_of(plane, tap);
        if (from < 0) continue;
        const float* const input = scratch.transformed_input(call.read(0), from, as_rows(channels));
        const float* const filter =
            scratch.transformed_filters() + tap * points * channels * filters;
        in_parallel(points, 1, [&](auto begin, auto end) {
          for (std::int64_t p = begin; p < end; ++p)
            multiply({input + p * tiles * channels, channels, 1, filter + p * channels * filters,
                      products + p * tiles * filters, filters, tiles, filters, channels, begun});
        });
        begun = true;
      }
      if (!begun) std::fill_n(products, points * tiles * filters, 0.0F);
      in_parallel(tiles, 1, [&](auto begin, auto end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const Tile tile = tile_at(pass, band, i);
          transform_output(products + i * filters, tiles * filters, finish,
                           Plane(pass.out, tile.n, plane), tile.h, tile.w, call.write(0));
        }
      });
    }
  });
}

/// Computes the filter gradient. Products are summed over tiles in the transformed domain. The sums
/// are then transformed back and added to the gradient. Transformed numbers are larger and partly
/// cancel, which costs digits. A sum is therefore flushed as soon as it covers `most_pending`
/// tiles.
class FilterGradient {
 public:
  FilterGradient(const Pass& pass, const Scratch& scratch, float* dweights)
      : pass_(pass),
        sums_(scratch.transformed_filters()),
        dweights_(dweights),
        pending_(scratch.counts_of_taps()) {
    std::ranges::fill(pending_, 0);
    std::fill_n(dweights_, filters() * pass_.depth.kernel * size_of_tap(), 0.0F);
  }

  /// Adds the products of one tap along D for one plane. Both operands lie in panels with a row per
  /// tile.
  void add(std::int64_t tap, const float* gradient, const float* input, std::int64_t tiles) {
    std::int64_t& pending = pending_[static_cast<std::size_t>(tap)];
    float* const to = sums_ + tap * points * channels() * filters();
    in_parallel(points, 1, [&](auto begin, auto end) {
      for (std::int64_t p = begin; p < end; ++p)
        for (std::int64_t f = 0; f < filters(); f += panel_columns)
          multiply({gradient + (p * filters() + f) * tiles, 1, panel_columns,
                    input + p * channels() * tiles, to + (p * filters() + f) * channels(),
                    channels(), panel_columns, channels(), tiles, pending > 0});
    });
    pending += tiles;
    if (pending >= most_pending) flush(tap);
  }

  void finish() {
    for (std::int64_t tap = 0; tap < pass_.depth.kernel; ++tap) flush(tap);
  }

 private:
  static constexpr std::int64_t most_pending = 256;
  std::int64_t channels() const { return pass_.in[Axis::C]; }
  std::int64_t filters() const { return pass_.out[Axis::C]; }
  std::int64_t size_of_tap() const { return taps * taps * channels(); }

  void flush(std::int64_t tap) {
    std::int64_t& pending = pending_[static_cast<std::size_t>(tap)];
    if (std::exchange(pending, 0) == 0) return;
    const float* const from = sums_ + tap * points * channels() * filters();
    in_parallel(filters(), 1, [&](auto begin, auto end) {
      for (std::int64_t f = begin; f < end; ++f)
        add_filter_gradient(from + f * channels(), filters() * channels(), channels(),
                            dweights_ + (f * pass_.depth.kernel + tap) * size_of_tap());
    });
  }

  const Pass& pass_;
  float *sums_, *dweights_;
  std::span<std::int64_t> pending_;  ///< for each tap along D: number of tiles in its sums
};

void winograd_backward_filter(const Kernel& kernel, const KernelCall& call) {
  const Pass pass(kernel);
  Scratch scratch(pass, call.workspace);
  const std::int64_t filters = pass.out[Axis::C];
  float* const gradient = scratch.transformed_outputs();
  FilterGradient sums(pass, scratch, call.write(0));
  for_each_band(pass, scratch, [&](const Band& band) {
    const std::int64_t tiles = scratch.tiles();
    for (std::int64_t plane = 0; plane < pass.out[Axis::D]; ++plane) {
      in_parallel(tiles, 1, [&](auto begin, auto end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const Tile tile = tile_at(pass, band, i);
          transform_output_gradient(call.read(1), Plane(pass.out, tile.n, plane), tile.h, tile.w, i,
                                    as_panels(tiles), gradient, tiles * filters);
        }
      });
      for (std::int64_t tap = 0; tap < pass.depth.kernel; ++tap) {
        const std::int64_t from = pass.plane_of(plane, tap);
        if (from >= 0)
          sums.add(tap, gradient, scratch.transformed_input(call.read(0), from, as_panels(tiles)),
                   tiles);
      }
    }
  });
  sums.finish();
}

}  // namespace

bool suits_winograd(const Kernel& kernel) {
  const auto suits = [](const Window& window) {
    return window.kernel == taps && window.stride == 1 && window.dilation == 1 &&
           window.pad_before < taps;
  };
  return suits(kernel.windows()[1]) && suits(kernel.windows()[2]) &&
         kernel.x[Axis::C] % panel_columns == 0 && kernel.y[Axis::C] % panel_columns == 0;
}

std::unique_ptr<HostKernel> make_winograd(const Kernel& kernel) {
  SP_ASSERT(suits_winograd(kernel), "Winograd's transform does not apply to the kernel {}",
            kernel.key());
  const auto function =
      kernel.kind == KernelKind::ConvolutionBackwardFilter ? winograd_backward_filter : convolve;
  return std::make_unique<FunctionKernel>(kernel, function, "winograd 4x4",
                                          Pass(kernel).workspace());
}

}  // namespace stratplan::cpu
