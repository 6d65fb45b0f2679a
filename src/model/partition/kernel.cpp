#include "model/partition/kernel.hpp"

#include <fmt/format.h>

#include "model/base/assert.hpp"
#include "model/partition/contraction.hpp"
#include "model/partition/copy_loops.hpp"

namespace stratplan {
namespace {

// clang-format off
constexpr std::array<std::string_view, kernel_kind_count> kernel_names{
    "conv_forward", "conv_backward_data", "conv_backward_filter", "bias_add", "bias_gradient",
    "max_pool_forward", "max_pool_backward", "average_pool_forward", "average_pool_backward", "spatial_mean_forward", "spatial_mean_backward",
    "batch_norm_statistics", "batch_norm_forward", "batch_norm_backward_sums", "batch_norm_backward",
    "pointwise_forward", "pointwise_backward",
    "add", "dropout", "softmax_cross_entropy", "mean_squared_error",
    "copy_region", "fill", "sgd_momentum",
    "prelu_forward", "prelu_backward", "prelu_gradient", "softmax_forward", "softmax_backward",
    "local_response_forward", "local_response_backward", "dice_sums", "dice_loss",
    "upsample_forward", "upsample_backward",
    "sgd", "sgd_nesterov", "adam", "adamw", "squared_norms", "lars",
    "batch_norm_moments", "running_average", "batch_norm_inference",
    "convert", "unscale", "adjust_loss_scale", "binary_forward", "binary_backward"};
// clang-format on

std::int64_t positions(const Shape& shape) {
  return shape[Axis::D] * shape[Axis::H] * shape[Axis::W];
}

std::int64_t taps(const Kernel& kernel) {
  return kernel.windows[0].kernel * kernel.windows[1].kernel * kernel.windows[2].kernel;
}

std::int64_t weight_elements(const Kernel& kernel) {
  if (!is_contraction(kernel.kind)) return 0;  // x and y may hold all parameters of a network
  return kernel.y[Axis::C] * (kernel.x[Axis::C] / kernel.groups) * taps(kernel);
}

std::string spatial(const Shape& shape) {
  return fmt::format("{}.{}.{}", shape[Axis::D], shape[Axis::H], shape[Axis::W]);
}

/// One letter and one number per axis, left out where it is the usual number on all three.
std::string along_windows(const Kernel& kernel, const char* letter, std::int64_t Window::*member,
                          std::int64_t usual) {
  const auto& w = kernel.windows;
  if (w[0].*member == usual && w[1].*member == usual && w[2].*member == usual) return "";
  return fmt::format(" {}{}.{}.{}", letter, w[0].*member, w[1].*member, w[2].*member);
}

/// Elements that one output element of an upsampling mixes.
std::int64_t mixed(const Kernel& kernel) {
  std::int64_t elements = 1;
  for (const Scale& scale : kernel.scales) elements *= scale.linear && scale.factor > 1 ? 2 : 1;
  return elements;
}

std::string window_key(const Kernel& kernel) {
  return along_windows(kernel, "k", &Window::kernel, 1) +
         along_windows(kernel, "s", &Window::stride, 1) +
         along_windows(kernel, "d", &Window::dilation, 1) +
         along_windows(kernel, "pb", &Window::pad_before, 0) +
         along_windows(kernel, "pa", &Window::pad_after, 0);
}

std::string copy_key(const Kernel& kernel) {
  std::string key = fmt::format(" {}{}", name_of(kernel.type), kernel.accumulate ? " add" : "");
  for (const CopyLoop& loop : copy_loops(kernel).loops)
    key += fmt::format(" {}:{}:{}", loop.count, loop.source_stride, loop.destination_stride);
  return key;
}

std::string fused_key(const Kernel& kernel) {
  return std::string(kernel.addend ? " add" : "") +
         (kernel.activation ? fmt::format(" {}", name_of(kernel.activation->function)) : "");
}

/// Where the inputs have fewer elements than y, those: "x" and "of" which.
std::string binary_key(const Kernel& kernel) {
  std::string key =
      fmt::format(" n{} c{} p{}", kernel.y[Axis::N], kernel.y[Axis::C], positions(kernel.y));
  for (const auto& [name, shape] : {std::pair{"a", kernel.x}, {"b", kernel.binary.second}})
    if (shape != kernel.y) key += fmt::format(" {}{}.{}", name, shape[Axis::C], positions(shape));
  if (kernel.kind == KernelKind::BinaryBackward) key += kernel.binary.of == 0 ? " of a" : " of b";
  return key;
}

/// What decides the time of this kind, behind its name.
std::string details(const Kernel& kernel) {
  const Shape& x = kernel.x;
  const Shape& y = kernel.y;
  using enum KernelKind;
  switch (kernel.kind) {
    case ConvolutionForward:
    case ConvolutionBackwardData:
    case ConvolutionBackwardFilter:
      return fmt::format(" n{} c{} f{}{} x{} y{}{}{}", x[Axis::N], x[Axis::C], y[Axis::C],
                         kernel.groups > 1 ? fmt::format(" g{}", kernel.groups) : "", spatial(x),
                         spatial(y), window_key(kernel),
                         kernel.kind == ConvolutionForward && kernel.bias ? " bias" : "") +
             fused_key(kernel);
    case MaxPoolForward:
    case MaxPoolBackward:
    case AveragePoolForward:
    case AveragePoolBackward:
      return fmt::format(" n{} c{} x{} y{}{}", x[Axis::N], x[Axis::C], spatial(x), spatial(y),
                         window_key(kernel));
    case SpatialMeanForward:
    case SpatialMeanBackward:
      return fmt::format(" n{} c{} p{}", x[Axis::N], x[Axis::C], positions(x));
    case BiasAdd:
    case BiasGradient:
      return fmt::format(" rows{} c{}{}", y[Axis::N] * positions(y), y[Axis::C], fused_key(kernel));
    case BatchNormStatistics:
    case BatchNormForward:
    case BatchNormBackwardSums:
    case BatchNormBackward:
      return fmt::format(" n{} c{} p{} sets{}", x[Axis::N], x[Axis::C], positions(x),
                         kernel.sets.sets) +
             (kernel.sets.group_channels > 1 ? fmt::format(" group{}", kernel.sets.group_channels)
                                             : "") +
             fused_key(kernel);
    case Dropout:
    case PreluForward:
    case PreluBackward:
    case PreluGradient:
    case SoftmaxForward:
    case SoftmaxBackward:
    case DiceSums:
    case DiceLoss:
    case SoftmaxCrossEntropy:
      return fmt::format(" rows{} c{}", x[Axis::N] * positions(x), x[Axis::C]);
    case BatchNormInference:
      return fmt::format(" rows{} c{}{}", x[Axis::N] * positions(x), x[Axis::C], fused_key(kernel));
    case BatchNormMoments: return fmt::format(" c{} sets{}", x[Axis::C], kernel.sets.sets);
    case RunningAverage: return fmt::format(" c{}", x[Axis::C]);
    case LocalResponseForward:
    case LocalResponseBackward:
      return fmt::format(" rows{} c{} size{}", x[Axis::N] * positions(x), x[Axis::C],
                         kernel.response.size);
    case Add: return fmt::format(" e{} inputs{}", y.elements(), kernel.inputs);
    case Fill: return fmt::format(" bytes{}", y.elements() * size_of(kernel.type));
    case CopyRegion: return copy_key(kernel);
    case PointwiseForward:
    case PointwiseBackward:
    case MeanSquaredError: return fmt::format(" e{}", y.elements());
    case UpsampleForward:
    case UpsampleBackward:  // where in an element a piece begins hardly matters
      return fmt::format(" n{} c{} x{} y{} s{}.{}.{}{}", x[Axis::N], x[Axis::C], spatial(x),
                         spatial(y), kernel.scales[0].factor, kernel.scales[1].factor,
                         kernel.scales[2].factor, mixed(kernel) > 1 ? " linear" : "");
    case SgdMomentum:
    case Sgd:
    case SgdNesterov:
    case Adam:
    case AdamW:
    case SquaredNorms:
    case Lars:
    case Convert:
    case Unscale: return fmt::format(" e{}", y.elements());
    case AdjustLossScale: return "";
    case BinaryForward:
    case BinaryBackward: return binary_key(kernel);
  }
  SP_ASSERT(false, "kind={}", static_cast<int>(kernel.kind));
  return "";
}

/// Reads what the gradient depends on, and dy.
Operands binary_backward_operands(const Kernel& kernel) {
  const binary::Reads reads =
      row_of(kernel.binary.function).reads[static_cast<std::size_t>(kernel.binary.of)];
  Operands operands{{}, {{kernel.type, kernel.differentiated().elements()}}};
  if (reads.first) operands.reads.push_back({kernel.type, kernel.x.elements()});
  if (reads.second) operands.reads.push_back({kernel.type, kernel.binary.second.elements()});
  operands.reads.push_back({kernel.type, kernel.y.elements()});
  return operands;
}

Operands with_read(Operands operands, bool is_there, const Operand& read) {
  if (is_there) operands.reads.push_back(read);
  return operands;
}
Operands with_write(Operands operands, bool is_there, const Operand& write) {
  if (is_there) operands.writes.push_back(write);
  return operands;
}

/// Operations per element of the kinds that do little work on each; order of magnitude, for floors.
double operations_per_element(KernelKind kind) {
  using enum KernelKind;
  switch (kind) {
    case BatchNormStatistics:
    case BatchNormForward: return 3;
    case BatchNormBackwardSums: return 4;
    case BatchNormBackward: return 5;
    case SoftmaxForward:
    case SoftmaxCrossEntropy: return 20;
    case SoftmaxBackward:
    case PreluGradient: return 3;
    case DiceSums: return 2;
    case SgdMomentum:
    case Lars: return 6;
    case Sgd:
    case SquaredNorms: return 4;
    case SgdNesterov: return 8;
    case Adam:
    case AdamW: return 16;
    case Dropout: return 10;
    case MeanSquaredError: return 4;
    case Unscale: return 2;
    default: return 1;
  }
}

}  // namespace

std::string_view name_of(KernelKind kind) { return kernel_names[static_cast<std::size_t>(kind)]; }

bool works_on_activations(KernelKind kind) {
  using enum KernelKind;
  switch (kind) {
    case CopyRegion:
    case Fill:
    case Convert:
    case BatchNormMoments:
    case SquaredNorms:
    case Unscale:
    case AdjustLossScale: return false;
    default: return !is_update(kind);
  }
}

bool is_update(KernelKind kind) {
  using enum KernelKind;
  switch (kind) {
    case Sgd:
    case SgdMomentum:
    case SgdNesterov:
    case Adam:
    case AdamW:
    case Lars:
    case RunningAverage: return true;
    default: return false;
  }
}

std::string Kernel::name() const {
  using enum KernelKind;
  switch (kind) {
    case PointwiseForward: return fmt::format("{}_forward", name_of(pointwise.function));
    case PointwiseBackward: return fmt::format("{}_backward", name_of(pointwise.function));
    case BinaryForward: return fmt::format("{}_forward", name_of(binary.function));
    case BinaryBackward: return fmt::format("{}_backward", name_of(binary.function));
    default: return std::string(name_of(kind));
  }
}

std::string Kernel::key() const {
  const bool said = kind == KernelKind::CopyRegion || kind == KernelKind::Fill;  // by their details
  return name() + details(*this) +
         (is_narrow(type) && !said ? fmt::format(" {}", name_of(type)) : "");
}

Operands Kernel::operands() const {
  const Operand input{type, x.elements()}, output{type, y.elements()},
      weights{type, weight_elements(*this)};
  const Operand weight_gradient{DataType::F32, weight_elements(*this)},
      target{DataType::F32, x.elements()};
  const Operand index{DataType::I32, y.elements()}, bias_vector{DataType::F32, y[Axis::C]},
      channel{DataType::F32, x[Axis::C]};
  const Operand sums{DataType::F64, sets.sets * 2 * x[Axis::C]},
      labels{DataType::I32, x[Axis::N] * positions(x)}, scalar_sum{DataType::F64, 1};
  const Operand class_sums{DataType::F64, 3 * x[Axis::C]}, moments{DataType::F64, 2 * x[Axis::C]},
      running{DataType::F32, 2 * x[Axis::C]};
  const Operand norms{DataType::F64, 2}, scaling{DataType::F64, 2}, overflows{DataType::F64, 1};
  const bool activated = activation.has_value();
  using enum KernelKind;
  switch (kind) {
    case ConvolutionForward:
      return {bias ? std::vector{input, weights, bias_vector} : std::vector{input, weights},
              {output}};
    case ConvolutionBackwardData: return {{output, weights}, {input}};
    case ConvolutionBackwardFilter: return {{input, output}, {weight_gradient}};
    case BiasAdd: return {{output, bias_vector}, {output}};
    case BiasGradient:
      return with_write(with_read({{output}, {bias_vector}}, activated, output), activated, output);
    case MaxPoolForward: return {{input}, {output, index}};
    case MaxPoolBackward: return {{output, index}, {input}};
    case AveragePoolForward:
    case UpsampleForward:
    case SpatialMeanForward: return {{input}, {output}};
    case AveragePoolBackward:
    case UpsampleBackward:
    case SpatialMeanBackward: return {{output}, {input}};
    case BatchNormStatistics: return {{input}, {sums}};
    case BatchNormForward:
      return with_read({{input, sums, channel, channel}, {output}}, addend, input);
    case BatchNormBackwardSums:
      return with_write(
          with_read({{input, output, sums}, {sums, channel, channel}}, activated, output), addend,
          output);
    case BatchNormBackward:
      return with_read({{input, output, sums, sums, channel}, {input}}, activated, output);
    case PointwiseForward:
    case SoftmaxForward:
    case LocalResponseForward:
    case Dropout: return {{input}, {output}};
    case PointwiseBackward:
    case SoftmaxBackward:
    case LocalResponseBackward: return {{output, output}, {input}};
    case PreluForward: return {{input, channel}, {output}};
    case PreluBackward: return {{input, output, channel}, {input}};
    case PreluGradient: return {{input, output}, {channel}};
    case Add: return {std::vector<Operand>(static_cast<std::size_t>(inputs), input), {output}};
    case SoftmaxCrossEntropy:
      return with_read({{input, labels}, {scalar_sum, input}}, scaled, scaling);
    case MeanSquaredError:
      return with_read({{input, target}, {scalar_sum, input}}, scaled, scaling);
    case BatchNormMoments: return {{sums}, {moments}};
    case RunningAverage: return with_read({{moments, running}, {running}}, scaled, overflows);
    case BatchNormInference:
      return with_read({{input, running, channel, channel}, {output}}, addend, input);
    case DiceSums: return {{input, labels}, {class_sums}};
    case DiceLoss: return with_read({{labels, class_sums}, {scalar_sum, input}}, scaled, scaling);
    case CopyRegion: return {{{type, x.elements()}}, {{type, y.elements()}}};
    case Fill: return {{}, {{type, y.elements()}}};
    case SgdMomentum:
    case SgdNesterov:
      return with_read({{output, output, output}, {output, output}}, scaled, overflows);
    case Sgd: return with_read({{output, output}, {output}}, scaled, overflows);
    case Adam:
    case AdamW:
      return with_read({{output, output, output, output}, {output, output, output}}, scaled,
                       overflows);
    case SquaredNorms: return {{output, output}, {norms}};
    case Lars:
      return with_read({{output, output, output, norms}, {output, output}}, scaled, overflows);
    case Convert: return {{{DataType::F32, x.elements()}}, {output}};
    case Unscale: return {{output, scaling, overflows}, {output, overflows}};
    case AdjustLossScale: return {{scaling, overflows}, {scaling}};
    case BinaryForward: return {{input, {type, binary.second.elements()}}, {output}};
    case BinaryBackward: return binary_backward_operands(*this);
  }
  SP_ASSERT(false, "kind={}", static_cast<int>(kind));
  return {};
}

Flops Kernel::flops() const {
  const double outputs = static_cast<double>(y.elements());
  using enum KernelKind;
  switch (kind) {
    case ConvolutionForward:
    case ConvolutionBackwardData:
    case ConvolutionBackwardFilter:
      return {2 * outputs * static_cast<double>(x[Axis::C] / groups * taps(*this))};
    case MaxPoolForward:
    case MaxPoolBackward:
    case AveragePoolForward:
    case AveragePoolBackward: return {outputs * static_cast<double>(taps(*this))};
    case SpatialMeanForward:
    case SpatialMeanBackward: return {static_cast<double>(x.elements())};
    case PointwiseForward: return {outputs * row_of(pointwise.function).operations.forward};
    case PointwiseBackward: return {outputs * row_of(pointwise.function).operations.backward};
    case BinaryForward: return {outputs * row_of(binary.function).operations.forward};
    case BinaryBackward: return {outputs * row_of(binary.function).operations.backward};
    case Add: return {outputs * (inputs - 1)};
    case LocalResponseForward: return {outputs * static_cast<double>(20 + 2 * response.size)};
    case LocalResponseBackward: return {outputs * static_cast<double>(25 + 3 * response.size)};
    case CopyRegion: return {accumulate ? static_cast<double>(region.elements()) : 0};
    case Fill: return {0};
    case UpsampleForward:
    case UpsampleBackward: return {2 * outputs * static_cast<double>(mixed(*this))};
    case BatchNormMoments: return {static_cast<double>(10 * sets.sets * x[Axis::C])};
    case RunningAverage: return {static_cast<double>(6 * x[Axis::C])};
    case BatchNormInference: return {3 * outputs};
    case AdjustLossScale: return {4};
    default: return {outputs * operations_per_element(kind)};
  }
}

Bytes Kernel::bytes() const {
  if (kind == KernelKind::CopyRegion)
    return Bytes{region.elements() * size_of(type)} * (accumulate ? 3 : 2);
  Bytes sum{};
  const Operands all = operands();
  for (const Operand& operand : all.reads) sum += operand.bytes();
  for (const Operand& operand : all.writes) sum += operand.bytes();
  return sum;
}

}  // namespace stratplan
