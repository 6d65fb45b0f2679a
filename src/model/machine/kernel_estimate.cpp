#include "model/machine/kernel_estimate.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "model/base/assert.hpp"
#include "model/machine/kernel_family.hpp"
#include "model/partition/program/contraction.hpp"

namespace stratplan {

namespace {

// Assumptions about inner loops; the shares of KernelShares were fitted on top of them.
/// By Math: loading a tile's operands costs as much as this many additional rows, and as many
/// additional columns.
constexpr std::array<double, math_count> tile_edge{4, 24, 24, 24};
/// The beginning and end of a tile cost as much as this many additional terms of its sums.
constexpr double prologue = 16;
/// Rate of a contraction whose tensors are too large for tensor cores, relative to the rate of its
/// family in fp32.
constexpr double beyond_share = 0.36;

Math math_of(const Kernel& kernel, const DeviceRates& device) {
  if (kernel.type == DataType::F16) return Math::Fp16;
  if (kernel.type == DataType::BF16) return Math::Bf16;
  return device.math;
}

/// The multiple to which a matrix product pads channels, a power of two. Tensor cores take operands
/// in pieces of 16 bytes.
std::int64_t granule(Math math) { return math == Math::Fp32 ? 1 : math == Math::Tf32 ? 4 : 8; }

/// ceiling() and floor_of() replace std::ceil and std::floor for non-negative values that fit
/// std::int64_t. Calls to the mathematical library would dominate the time of an estimate.
double ceiling(double value) {
  const auto whole = static_cast<double>(static_cast<std::int64_t>(value));
  return whole + (whole < value ? 1 : 0);
}
double floor_of(double value) { return static_cast<double>(static_cast<std::int64_t>(value)); }

double round_up(double value, double multiple) { return ceiling(value / multiple) * multiple; }

/// `count` products of a rows x depth matrix with a depth x columns matrix.
struct Product {
  double count = 1;
  double rows = 1;
  double columns = 1;
  double depth = 1;
};

double positions(const Shape& shape) {
  return static_cast<double>(shape[Axis::N] * shape[Axis::D] * shape[Axis::H] * shape[Axis::W]);
}

double taps(const Kernel& kernel) {
  const auto& [d, h, w] = kernel.windows();
  return static_cast<double>(d.kernel * h.kernel * w.kernel);
}

/// The matrix product of the backward data kernel. At each position of x, it sums over the taps
/// that reach the position. Along each axis, these are one tap in `stride`. If the window is
/// shorter than the stride, only as many positions of x count as y has, each with one tap. If one
/// window covers the axis, as in a fully connected layer, each position has a tap of its own.
Product backward_data_product(const Kernel& kernel, double groups, double channels,
                              double filters) {
  Product product{groups, static_cast<double>(kernel.x[Axis::N]), channels, filters};
  for (std::size_t i = 0; i < 3; ++i) {
    const Window& window = kernel.windows()[i];
    const Axis axis = std::array{Axis::D, Axis::H, Axis::W}[i];
    if (kernel.y[axis] == 1 && window.kernel == kernel.x[axis]) {
      product.columns *= static_cast<double>(window.kernel);
      continue;
    }
    const bool all_reached = window.kernel >= window.stride;
    product.rows *= static_cast<double>(all_reached ? kernel.x[axis] : kernel.y[axis]);
    product.depth *=
        all_reached ? static_cast<double>(window.kernel) / static_cast<double>(window.stride) : 1;
  }
  return product;
}

Product product_of(const Kernel& kernel, double granule) {
  const double groups = static_cast<double>(kernel.as<ConvolutionAttributes>().groups);
  const double channels = round_up(static_cast<double>(kernel.x[Axis::C]) / groups, granule),
               filters = round_up(static_cast<double>(kernel.y[Axis::C]) / groups, granule);
  switch (kernel.kind) {
    case KernelKind::ConvolutionForward:
      return {groups, positions(kernel.y), filters, channels * taps(kernel)};
    case KernelKind::ConvolutionBackwardData:
      return backward_data_product(kernel, groups, channels, filters);
    default: return {groups, channels * taps(kernel), filters, positions(kernel.y)};
  }
}

/// A tile of the result. Rows and columns are powers of two.
struct Tile {
  double rows;
  double columns;
  double per_row = 1 / rows;  ///< exact; a product with it saves a division per estimate
  double per_column = 1 / columns;
};
constexpr std::array tiles{Tile{256, 128}, Tile{128, 128}, Tile{128, 64},
                           Tile{64, 64},   Tile{128, 32},  Tile{64, 32}};

/// Rates of one device under one kind of arithmetic.
struct Rates {
  double units;
  double per_unit;               ///< 1 / units
  double unit_seconds_per_flop;  ///< attained by one unit
  double seconds_per_byte;       ///< attained
  double tile_edge;
  double prologue;
};

/// The time of matrix products whose results are computed in tiles. Each unit processes its share
/// of the tiles, one after the other. If there are at least two units per tile, each sum is split
/// into parts of at least `shortest_part` terms. Several units then share a tile, and the parts of
/// its sums are added up through memory.
double seconds_in_tiles(const Product& product, const Tile& tile, const Rates& rates) {
  constexpr double shortest_part = 64;
  const double whole = std::max(1.0, product.count * ceiling(product.rows * tile.per_row) *
                                         ceiling(product.columns * tile.per_column));
  const double loading = 1 + rates.tile_edge * (tile.per_row + tile.per_column);
  const double seconds_per_term =
      2 * tile.rows * tile.columns * loading * rates.unit_seconds_per_flop;
  if (2 * whole > rates.units)
    return ceiling(whole * rates.per_unit) * (product.depth + rates.prologue) * seconds_per_term;
  const double parts = std::min(floor_of(rates.units / whole),
                                std::max(1.0, floor_of(product.depth / shortest_part)));
  const double adding_up = parts > 1 ? 8 * parts * product.count * product.rows * product.columns *
                                           rates.seconds_per_byte
                                     : 0;
  return ceiling(whole * parts * rates.per_unit) *
             (ceiling(product.depth / parts) + rates.prologue) * seconds_per_term +
         adding_up;
}

double seconds_of(const Product& product, const Rates& rates) {
  double least = std::numeric_limits<double>::infinity();
  for (const Tile& tile : tiles) least = std::min(least, seconds_in_tiles(product, tile, rates));
  return least;
}

/// Whether Winograd's F(2x2, 3x3) can compute the kernel. Per channel and filter, it needs 16
/// multiplications for four outputs instead of 36.
bool winograd_applies(const Kernel& kernel) {
  const auto& [windows, bias, groups, epilogue] = kernel.as<ConvolutionAttributes>();
  const auto& [depth, height, width] = windows;
  const auto three = [](const Window& window) {
    return window.kernel == 3 && window.stride == 1 && window.dilation == 1;
  };
  return groups == 1 && depth.kernel == 1 && depth.stride == 1 && three(height) && three(width);
}

Product winograd_product(const Kernel& kernel) {
  constexpr double points = 16;
  const Shape& outputs = kernel.kind == KernelKind::ConvolutionBackwardData ? kernel.x : kernel.y;
  const double blocks =
      static_cast<double>(outputs[Axis::N] * outputs[Axis::D] * ((outputs[Axis::H] + 1) / 2) *
                          ((outputs[Axis::W] + 1) / 2));
  const double channels = static_cast<double>(kernel.x[Axis::C]),
               filters = static_cast<double>(kernel.y[Axis::C]);
  switch (kernel.kind) {
    case KernelKind::ConvolutionForward: return {points, blocks, filters, channels};
    case KernelKind::ConvolutionBackwardData: return {points, blocks, channels, filters};
    default: return {points, channels, filters, blocks};
  }
}

/// Groups with fewer channels than this are not computed as matrix products.
constexpr std::int64_t narrow = 8;

/// For a tensor with this many elements or more, cuDNN (9.19, on H100 and H200) has only one
/// engine. That engine does not use tensor cores.
constexpr std::int64_t beyond_tensor_cores = std::int64_t{1} << 31;

bool has_narrow_groups(const Kernel& kernel) {
  const std::int64_t groups = kernel.as<ConvolutionAttributes>().groups;
  return groups > 1 && kernel.x[Axis::C] / groups < narrow;
}

bool is_beyond_tensor_cores(const Kernel& kernel, Math math) {
  return math != Math::Fp32 &&
         std::max(kernel.x.elements(), kernel.y.elements()) >= beyond_tensor_cores;
}

/// Whether the kernel computes its sums directly rather than as a matrix product.
bool is_direct(const Kernel& kernel, Math math) {
  return has_narrow_groups(kernel) || is_beyond_tensor_cores(kernel, math);
}

/// The tiles of a contraction on multiprocessors, at the peak rate.
void add_products(const Kernel& kernel, const DeviceRates& device, KernelWork& work) {
  const Math math = math_of(kernel, device);
  const auto index = static_cast<std::size_t>(math);
  if (is_direct(kernel, math)) {
    work.product = kernel.flops().value / device.rate(Math::Fp32);
    if (!has_narrow_groups(kernel)) work.product /= beyond_share;
    return;
  }
  if (device.channels_first && math != Math::Fp32 && family_of(kernel) != KernelFamily::Product)
    work.transposes =
        2 *
        static_cast<double>((kernel.x.elements() + kernel.y.elements()) * size_of(kernel.type)) /
        device.bytes_per_s;
  const double units = device.units;
  const Rates rates{
      units,   1 / units, units / device.rate(math), 1 / device.bytes_per_s, tile_edge[index],
      prologue};
  work.product = seconds_of(product_of(kernel, static_cast<double>(granule(math))), rates);
  if (math == Math::Fp32 && device.winograd && winograd_applies(kernel))
    work.winograd = seconds_of(winograd_product(kernel), rates);
}

/// The time of a contraction if the units are cores with vectors. A piece of work is one row of
/// outputs for one vector of output channels. The units divide the pieces among themselves.
double seconds_in_vectors(const Kernel& kernel, const DeviceRates& device) {
  const double width = device.vector_width, units = device.units;
  const bool to_inputs = kernel.kind == KernelKind::ConvolutionBackwardData;
  const Shape& outputs = to_inputs ? kernel.x : kernel.y;
  const std::int64_t groups = kernel.as<ConvolutionAttributes>().groups;
  const double channels = static_cast<double>(outputs[Axis::C] / groups),
               vectors = ceiling(channels / width);
  const double pieces =
      static_cast<double>(outputs[Axis::N] * outputs[Axis::D] * outputs[Axis::H] * groups) *
      vectors;
  const double waste = vectors * width / channels * ceiling(pieces / units) * units / pieces;
  return kernel.flops().value * waste / device.rate(Math::Fp32);
}

/// The bytes that a kernel moves, and the copy kernels that run before and after it.
struct Traffic {
  double bytes = 0;
  double copied = 0;  ///< bytes read and written by copies
  int copies = 0;
};

/// The memory traffic of a contraction whose matrix product pads the channels of each group to a
/// multiple of `granule`. A tensor is stored with c channels and enters the product with p >= c
/// channels. At each position of the tensor, the kernels move this many elements:
///   the product   p
///   the copy      c + p if p > c; otherwise there is no copy
/// The same holds for weights, which are copied if their input or output channels are padded. It
/// holds for the forward kernel and for both backward kernels. The gradient of weights counts like
/// the weights. Some of cuDNN's engines read images of three or four fp16 channels without a copy.
/// This exception is not modelled.
Traffic contraction_traffic(const Kernel& kernel, std::int64_t granule) {
  const std::int64_t groups = kernel.as<ConvolutionAttributes>().groups,
                     channels = kernel.x[Axis::C], filters = kernel.y[Axis::C];
  const auto padded = [&](std::int64_t count) {
    return groups * ((count / groups + granule - 1) & -granule);
  };
  const std::int64_t padded_channels = padded(channels), padded_filters = padded(filters);
  const double size = static_cast<double>(size_of(kernel.type));
  Traffic traffic;
  const auto add = [&](double places, std::int64_t stored, std::int64_t in_product, bool copied) {
    traffic.bytes += places * static_cast<double>(in_product) * size;
    if (!copied) return;
    traffic.copied += places * static_cast<double>(stored + in_product) * size;
    ++traffic.copies;
  };
  const bool pads_x = padded_channels > channels, pads_y = padded_filters > filters;
  add(positions(kernel.x), channels, padded_channels, pads_x);
  add(positions(kernel.y), filters, padded_filters, pads_y);
  add(taps(kernel), filters * (channels / groups), padded_filters * (padded_channels / groups),
      pads_x || pads_y);
  return traffic;
}

/// The memory traffic of a kernel. Copies count only for matrix products in tf32, fp16 or bf16 on
/// multiprocessors. These are taken to run on tensor cores.
Traffic traffic_of(const Kernel& kernel, const DeviceRates& device) {
  if (!is_contraction(kernel.kind)) return {static_cast<double>(kernel.bytes().value)};
  const bool on_tensor_cores =
      device.units > 0 && device.vector_width == 0 && !is_direct(kernel, math_of(kernel, device));
  return contraction_traffic(kernel, on_tensor_cores ? granule(math_of(kernel, device)) : 1);
}

}  // namespace

KernelWork work_of(const Kernel& kernel, const DeviceRates& device) {
  SP_ASSERT(device.flops_per_s > 0 && device.bytes_per_s > 0,
            "expected positive rates of the device, found {} FLOP/s and {} bytes/s",
            device.flops_per_s, device.bytes_per_s);
  const Traffic traffic = traffic_of(kernel, device);
  KernelWork work;
  work.traffic = traffic.bytes / device.bytes_per_s;
  work.copies = traffic.copied / device.bytes_per_s;
  work.launches = 1 + traffic.copies;
  if (!is_contraction(kernel.kind))
    work.product = kernel.flops().value / device.flops_per_s;
  else if (device.units == 0)
    work.product = kernel.flops().value / device.rate(math_of(kernel, device));
  else if (device.vector_width > 0)
    work.product = seconds_in_vectors(kernel, device);
  else
    add_products(kernel, device, work);
  return work;
}

Seconds estimate_kernel(const Kernel& kernel, const DeviceRates& device) {
  const KernelWork work = work_of(kernel, device);
  if (device.units == 0)
    return Seconds{std::max(work.product, work.traffic) + work.copies} +
           device.launch * static_cast<double>(work.launches);
  const KernelShares& shares = device.shares;
  const auto family = static_cast<std::size_t>(family_of(kernel));
  const auto direction = static_cast<std::size_t>(direction_of(kernel.kind));
  const auto math = static_cast<std::size_t>(math_of(kernel, device));
  double computing = work.product;
  if (is_contraction(kernel.kind)) {
    computing /= shares.product[math][family][direction];
    if (device.channels_first && math_of(kernel, device) != Math::Fp32)
      computing /= shares.channels_first[family][direction];
  }
  if (work.winograd > 0)
    computing = std::min(computing, work.winograd / shares.winograd[direction]);
  const double bandwidth = shares.bandwidth[family][direction];
  return Seconds{std::max(computing, work.traffic / bandwidth) + work.copies / bandwidth +
                 work.transposes * shares.transposes[math] / bandwidth} +
         device.launch * static_cast<double>(work.launches);
}

}  // namespace stratplan
