#include "model/partition/program/kernel.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/assert.hpp"
#include "model/partition/program/copy_loops.hpp"

namespace stratplan {
namespace {

/// The tensors that a kind of kernel works on. `Activations` stands for activations and their
/// gradients, which have Kernel::type. `Update` stands for state that training changes from step to
/// step, and `Other` for anything else.
enum class Domain : std::uint8_t { Activations, Update, Other };

struct KindRow {
  KernelKind kind;
  std::string_view name;
  Domain domain;
  double operations;  ///< per element of y, to an order of magnitude; or `formula`
  KernelAttributes attributes{};
};
constexpr double formula = -1;  ///< Kernel::flops() has a case for the kind

using enum KernelKind;
using enum Domain;
constexpr std::array<KindRow, kernel_kind_count> kinds{{
    {ConvolutionForward, "conv_forward", Activations, formula, ConvolutionAttributes{}},
    {ConvolutionBackwardData, "conv_backward_data", Activations, formula, ConvolutionAttributes{}},
    {ConvolutionBackwardFilter, "conv_backward_filter", Activations, formula,
     ConvolutionAttributes{}},
    {BiasAdd, "bias_add", Activations, 1, BiasAttributes{}},
    {BiasGradient, "bias_gradient", Activations, 1, BiasAttributes{}},
    {MaxPoolForward, "max_pool_forward", Activations, formula, PoolAttributes{}},
    {MaxPoolBackward, "max_pool_backward", Activations, formula, PoolAttributes{}},
    {AveragePoolForward, "average_pool_forward", Activations, formula, PoolAttributes{}},
    {AveragePoolBackward, "average_pool_backward", Activations, formula, PoolAttributes{}},
    {SpatialMeanForward, "spatial_mean_forward", Activations, formula, MeanAttributes{}},
    {SpatialMeanBackward, "spatial_mean_backward", Activations, formula, MeanAttributes{}},
    {BatchNormStatistics, "batch_norm_statistics", Activations, 3, NormalizationAttributes{}},
    {BatchNormForward, "batch_norm_forward", Activations, 3, NormalizationAttributes{}},
    {BatchNormBackwardSums, "batch_norm_backward_sums", Activations, 4, NormalizationAttributes{}},
    {BatchNormBackward, "batch_norm_backward", Activations, 5, NormalizationAttributes{}},
    {PointwiseForward, "pointwise_forward", Activations, formula, Activation{}},
    {PointwiseBackward, "pointwise_backward", Activations, formula, Activation{}},
    {Add, "add", Activations, formula, AddAttributes{}},
    {Dropout, "dropout", Activations, 10, DropoutAttributes{}},
    {SoftmaxCrossEntropy, "softmax_cross_entropy", Activations, 20, LossAttributes{}},
    {ElementwiseLoss, "elementwise_loss", Activations, formula, ElementLossAttributes{}},
    {CopyRegion, "copy_region", Other, formula, CopyAttributes{}},
    {Fill, "fill", Other, formula, FillAttributes{}},
    {SgdMomentum, "sgd_momentum", Update, 6, OptimizerAttributes{}},
    {PreluForward, "prelu_forward", Activations, 1},
    {PreluBackward, "prelu_backward", Activations, 1},
    {PreluGradient, "prelu_gradient", Activations, 3},
    {SoftmaxForward, "softmax_forward", Activations, 20},
    {SoftmaxBackward, "softmax_backward", Activations, 3},
    {LocalResponseForward, "local_response_forward", Activations, formula, LocalResponse{}},
    {LocalResponseBackward, "local_response_backward", Activations, formula, LocalResponse{}},
    {DiceSums, "dice_sums", Activations, 2, DiceSumsAttributes{}},
    {DiceLoss, "dice_loss", Activations, 1, DiceLossAttributes{}},
    {UpsampleForward, "upsample_forward", Activations, formula, UpsampleAttributes{}},
    {UpsampleBackward, "upsample_backward", Activations, formula, UpsampleAttributes{}},
    {Sgd, "sgd", Update, 4, OptimizerAttributes{}},
    {SgdNesterov, "sgd_nesterov", Update, 8, OptimizerAttributes{}},
    {Adam, "adam", Update, 16, OptimizerAttributes{}},
    {AdamW, "adamw", Update, 16, OptimizerAttributes{}},
    {SquaredNorms, "squared_norms", Other, 4},
    {Lars, "lars", Update, 6, OptimizerAttributes{}},
    {BatchNormMoments, "batch_norm_moments", Other, formula, MomentsAttributes{}},
    {RunningAverage, "running_average", Update, formula, RunningAverageAttributes{}},
    {BatchNormInference, "batch_norm_inference", Activations, 3, NormalizationAttributes{}},
    {Convert, "convert", Other, 1},
    {Widen, "widen", Other, 1},
    {Unscale, "unscale", Other, 2},
    {AdjustLossScale, "adjust_loss_scale", Other, formula},
    {BinaryForward, "binary_forward", Activations, formula, Binary{}},
    {BinaryBackward, "binary_backward", Activations, formula, Binary{}},
    {BatchNormRunningSums, "batch_norm_running_sums", Other, formula, NormalizationAttributes{}},
    {LayerNormForward, "layer_norm_forward", Activations, 8, LayerNormAttributes{}},
    {LayerNormBackward, "layer_norm_backward", Activations, 12, LayerNormAttributes{}},
    {LayerNormGradient, "layer_norm_gradient", Activations, 5, LayerNormAttributes{}},
    {ReduceForward, "reduce_forward", Activations, formula, ReduceAttributes{}},
    {ReduceBackward, "reduce_backward", Activations, formula, ReduceAttributes{}},
    {RearrangeForward, "rearrange_forward", Activations, 0, Rearrangement{}},
    {RearrangeBackward, "rearrange_backward", Activations, 0, Rearrangement{}},
    {LabelWeights, "label_weights", Other, formula, CrossEntropyAttributes{}},
    {WeightedCrossEntropy, "weighted_cross_entropy", Activations, 24, CrossEntropyAttributes{}},
}};
static_assert(std::ranges::all_of(kinds, [](const KindRow& row) {
  return &row == &kinds[static_cast<std::size_t>(row.kind)];
}));

constexpr const KindRow& row_of(KernelKind kind) { return kinds[static_cast<std::size_t>(kind)]; }

std::int64_t positions(const Shape& shape) {
  return shape[Axis::D] * shape[Axis::H] * shape[Axis::W];
}

std::int64_t taps(const Kernel& kernel) {
  const auto& [d, h, w] = kernel.windows();
  return d.kernel * h.kernel * w.kernel;
}

/// Returns the number of elements of a convolution's weights; 0 for other kinds.
std::int64_t weight_elements(const Kernel& kernel) {
  const auto* convolution = std::get_if<ConvolutionAttributes>(&kernel.attributes);
  if (!convolution) return 0;
  return kernel.y[Axis::C] * (kernel.x[Axis::C] / convolution->groups) * taps(kernel);
}

std::string spatial(const Shape& shape) {
  return fmt::format("{}.{}.{}", shape[Axis::D], shape[Axis::H], shape[Axis::W]);
}

/// Returns a letter and a number per axis, as in " k1.3.3"; an empty text if all three numbers are
/// `usual`.
std::string along_windows(const Kernel& kernel, const char* letter, std::int64_t Window::*member,
                          std::int64_t usual) {
  const Windows& w = kernel.windows();
  if (w[0].*member == usual && w[1].*member == usual && w[2].*member == usual) return "";
  return fmt::format(" {}{}.{}.{}", letter, w[0].*member, w[1].*member, w[2].*member);
}

/// The number of input elements that one output element of an upsampling mixes.
std::int64_t mixed(const Kernel& kernel) {
  std::int64_t elements = 1;
  for (const Scale& scale : kernel.as<UpsampleAttributes>().scales)
    elements *= scale.linear ? 2 : 1;
  return elements;
}

std::string window_key(const Kernel& kernel) {
  return along_windows(kernel, "k", &Window::kernel, 1) +
         along_windows(kernel, "s", &Window::stride, 1) +
         along_windows(kernel, "d", &Window::dilation, 1) +
         along_windows(kernel, "pb", &Window::pad_before, 0) +
         along_windows(kernel, "pa", &Window::pad_after, 0);
}

std::string fused_key(const Epilogue& epilogue) {
  return std::string(epilogue.addend ? " add" : "") +
         (epilogue.activation ? fmt::format(" {}", name_of(epilogue.activation->function)) : "");
}

std::string copy_key(const Kernel& kernel) {
  std::string key = fmt::format(" {}{}", name_of(kernel.type),
                                kernel.as<CopyAttributes>().accumulate ? " add" : "");
  for (const CopyLoop& loop : copy_loops(kernel).loops)
    key += fmt::format(" {}:{}:{}", loop.count, loop.source_stride, loop.destination_stride);
  return key;
}

std::string convolution_key(const Kernel& kernel) {
  const auto& [windows, bias, groups, epilogue] = kernel.as<ConvolutionAttributes>();
  return fmt::format(" n{} c{} f{}{} x{} y{}{}{}", kernel.x[Axis::N], kernel.x[Axis::C],
                     kernel.y[Axis::C], groups > 1 ? fmt::format(" g{}", groups) : "",
                     spatial(kernel.x), spatial(kernel.y), window_key(kernel),
                     kernel.kind == ConvolutionForward && bias ? " bias" : "") +
         fused_key(epilogue);
}

std::string normalization_key(const Kernel& kernel) {
  const auto& [epsilon, sets, epilogue] = kernel.as<NormalizationAttributes>();
  return fmt::format(" n{} c{} p{} sets{}{}", kernel.x[Axis::N], kernel.x[Axis::C],
                     positions(kernel.x), sets.sets,
                     sets.group_channels > 1 ? fmt::format(" group{}", sets.group_channels) : "") +
         fused_key(epilogue);
}

/// The number of sets of samples over which a Dice loss sums on this rank.
std::int64_t dice_sets(const Kernel& kernel) {
  const bool per_sample = kernel.kind == DiceSums ? kernel.as<DiceSumsAttributes>().per_sample
                                                  : kernel.as<DiceLossAttributes>().per_sample;
  return per_sample ? kernel.x[Axis::N] : 1;
}

/// The key leaves out which label is ignored, and how much of a label is smoothed.
std::string cross_entropy_key(const Kernel& kernel) {
  const auto& attributes = kernel.as<CrossEntropyAttributes>();
  const bool smooths = kernel.kind == WeightedCrossEntropy && attributes.smoothing > 0;
  return fmt::format(" rows{} c{}{}{}", kernel.x[Axis::N] * positions(kernel.x), kernel.x[Axis::C],
                     attributes.weighted ? " weighted" : "", smooths ? " smooth" : "");
}

/// The key lists the shape of y, the shapes of inputs that differ from it, and for BinaryBackward
/// the input whose gradient is made.
std::string binary_key(const Kernel& kernel) {
  const Binary& binary = kernel.as<Binary>();
  std::string key =
      fmt::format(" n{} c{} p{}", kernel.y[Axis::N], kernel.y[Axis::C], positions(kernel.y));
  for (const auto& [name, shape] : {std::pair{"a", kernel.x}, {"b", binary.second}})
    if (shape != kernel.y) key += fmt::format(" {}{}.{}", name, shape[Axis::C], positions(shape));
  if (kernel.kind == KernelKind::BinaryBackward) key += binary.of == 0 ? " of a" : " of b";
  return key;
}

/// Returns the extent of the output that stands for one position of the input: "2", or "3/2".
std::string factor_text(const Scale& scale) {
  if (scale.unit % scale.step == 0) return fmt::format("{}", scale.unit / scale.step);
  return fmt::format("{}/{}", scale.unit, scale.step);
}

/// The key leaves out where the pieces begin, which hardly changes the time.
std::string upsample_key(const Kernel& kernel) {
  const auto& [d, h, w] = kernel.as<UpsampleAttributes>().scales;
  return fmt::format(" n{} c{} x{} y{} s{}.{}.{}{}", kernel.x[Axis::N], kernel.x[Axis::C],
                     spatial(kernel.x), spatial(kernel.y), factor_text(d), factor_text(h),
                     factor_text(w), mixed(kernel) > 1 ? " linear" : "");
}

std::string reduce_key(const Kernel& kernel) {
  const Shape &x = kernel.x, &y = kernel.y;
  return fmt::format(" {} n{} c{} x{} yc{} y{}",
                     kernel.as<ReduceAttributes>().function == Reduction::Max ? "max" : "sum",
                     x[Axis::N], x[Axis::C], spatial(x), y[Axis::C], spatial(y));
}

/// The key leaves out the phases, which hardly change the time. Names tell the direction.
std::string rearrange_key(const Kernel& kernel) {
  const Rearrangement& by = kernel.as<Rearrangement>();
  const std::string shape =
      fmt::format(" n{} c{} x{}", kernel.x[Axis::N], kernel.x[Axis::C], spatial(kernel.x));
  if (by.what == Rearranges::Shuffle) return fmt::format("{} shuffle{}", shape, by.groups);
  return fmt::format("{} y{} {} b{}.{}.{}{}", shape, spatial(kernel.y), name_of(by.what),
                     by.block[0], by.block[1], by.block[2],
                     by.order == DepthOrder::DCR ? " dcr" : "");
}

/// The part of a key behind the name: all that decides the time of a kernel of this kind.
std::string details(const Kernel& kernel) {
  const Shape& x = kernel.x;
  const Shape& y = kernel.y;
  switch (kernel.kind) {
    case ConvolutionForward:
    case ConvolutionBackwardData:
    case ConvolutionBackwardFilter: return convolution_key(kernel);
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
      return fmt::format(" rows{} c{}{}", y[Axis::N] * positions(y), y[Axis::C],
                         fused_key(kernel.epilogue()));
    case BatchNormStatistics:
    case BatchNormForward:
    case BatchNormBackwardSums:
    case BatchNormBackward: return normalization_key(kernel);
    case Dropout:
    case PreluForward:
    case PreluBackward:
    case PreluGradient:
    case SoftmaxForward:
    case SoftmaxBackward:
    case LayerNormForward:
    case LayerNormBackward:
    case LayerNormGradient:
    case SoftmaxCrossEntropy:
      return fmt::format(" rows{} c{}", x[Axis::N] * positions(x), x[Axis::C]);
    case DiceSums:
    case DiceLoss:
      return fmt::format(" rows{} c{}{}", x[Axis::N] * positions(x), x[Axis::C],
                         dice_sets(kernel) > 1 ? fmt::format(" sets{}", dice_sets(kernel)) : "");
    case LabelWeights:
    case WeightedCrossEntropy: return cross_entropy_key(kernel);
    case BatchNormInference:
      return fmt::format(" rows{} c{}{}", x[Axis::N] * positions(x), x[Axis::C],
                         fused_key(kernel.epilogue()));
    case BatchNormMoments: return fmt::format(" c{} sets{}", x[Axis::C], kernel.sets().sets);
    case BatchNormRunningSums:
    case RunningAverage: return fmt::format(" c{}", x[Axis::C]);
    case LocalResponseForward:
    case LocalResponseBackward:
      return fmt::format(" rows{} c{} size{}", x[Axis::N] * positions(x), x[Axis::C],
                         kernel.as<LocalResponse>().size);
    case Add: return fmt::format(" e{} inputs{}", y.elements(), kernel.as<AddAttributes>().inputs);
    case Fill: return fmt::format(" bytes{}", y.elements() * size_of(kernel.type));
    case CopyRegion: return copy_key(kernel);
    case PointwiseForward:
    case PointwiseBackward:
    case ElementwiseLoss: return fmt::format(" e{}", y.elements());
    case UpsampleForward:
    case UpsampleBackward: return upsample_key(kernel);
    case ReduceForward:
    case ReduceBackward: return reduce_key(kernel);
    case RearrangeForward:
    case RearrangeBackward: return rearrange_key(kernel);
    case SgdMomentum:
    case Sgd:
    case SgdNesterov:
    case Adam:
    case AdamW:
    case SquaredNorms:
    case Lars:
    case Convert:
    case Widen:
    case Unscale: return fmt::format(" e{}", y.elements());
    case AdjustLossScale: return "";
    case BinaryForward:
    case BinaryBackward: return binary_key(kernel);
  }
  SP_ASSERT(false, "details() has no case for kind {}", static_cast<int>(kernel.kind));
  return "";
}

/// The kernel reads the inputs that the gradient depends on, and dy.
Operands binary_backward_operands(const Kernel& kernel) {
  const auto& [function, second, of] = kernel.as<Binary>();
  const binary::Inputs reads = row_of(function).reads[static_cast<std::size_t>(of)];
  Operands operands{{}, {{kernel.type, kernel.differentiated().elements()}}};
  if (reads.first) operands.reads.push_back({kernel.type, kernel.x.elements()});
  if (reads.second) operands.reads.push_back({kernel.type, second.elements()});
  operands.reads.push_back({kernel.type, kernel.y.elements()});
  return operands;
}

/// Returns null if the attributes have no epilogue.
const Epilogue* epilogue_of(const KernelAttributes& attributes) {
  return std::visit(
      [](const auto& of) -> const Epilogue* {
        if constexpr (requires { of.epilogue; })
          return &of.epilogue;
        else
          return nullptr;
      },
      attributes);
}

Operands with_read(Operands operands, bool is_there, const Operand& read) {
  if (is_there) operands.reads.push_back(read);
  return operands;
}
Operands with_write(Operands operands, bool is_there, const Operand& write) {
  if (is_there) operands.writes.push_back(write);
  return operands;
}

}  // namespace

std::string_view name_of(KernelKind kind) { return row_of(kind).name; }

bool works_on_activations(KernelKind kind) { return row_of(kind).domain == Activations; }

bool is_update(KernelKind kind) { return row_of(kind).domain == Update; }

const KernelAttributes& attributes_of(KernelKind kind) { return row_of(kind).attributes; }

const Epilogue& Kernel::epilogue() const {
  static constexpr Epilogue none{};
  const Epilogue* epilogue = epilogue_of(attributes);
  return epilogue ? *epilogue : none;
}

Epilogue& Kernel::epilogue() {
  const Epilogue* epilogue = epilogue_of(attributes);
  if (!epilogue) has_other_attributes();
  return const_cast<Epilogue&>(*epilogue);
}

bool Kernel::scaled() const {
  return std::visit(
      [](const auto& of) {
        if constexpr (requires { of.scaled; })
          return of.scaled;
        else
          return false;
      },
      attributes);
}

double Kernel::loss_weight() const {
  return std::visit(
      [](const auto& of) {
        if constexpr (requires { of.weight, of.scaled; })
          return of.weight;
        else
          return 1.0;
      },
      attributes);
}

void Kernel::set_loss_factors(double weight, bool scaled) {
  std::visit(
      [&](auto& of) {
        if constexpr (requires { of.weight, of.scaled; }) {
          of.weight = weight;
          of.scaled = scaled;
        } else {
          has_other_attributes();
        }
      },
      attributes);
}

void Kernel::expect_own_attributes() const {
  if (attributes.index() != attributes_of(kind).index()) has_other_attributes();
}

void Kernel::has_other_attributes() const {
  SP_ASSERT(false,
            "a kernel with kind={} holds alternative {} of the attributes, not the expected one",
            name_of(kind), attributes.index());
}

std::string Kernel::name() const {
  switch (kind) {
    case PointwiseForward: return fmt::format("{}_forward", name_of(as<Activation>().function));
    case PointwiseBackward: return fmt::format("{}_backward", name_of(as<Activation>().function));
    case ElementwiseLoss: return std::string(name_of(as<ElementLossAttributes>().loss.function));
    case BinaryForward: return fmt::format("{}_forward", name_of(as<Binary>().function));
    case BinaryBackward: return fmt::format("{}_backward", name_of(as<Binary>().function));
    default: return std::string(name_of(kind));
  }
}

std::string Kernel::key() const {
  expect_own_attributes();
  // For these kinds, details() contains the type, or the number of bytes.
  const bool said = kind == KernelKind::CopyRegion || kind == KernelKind::Fill;
  return name() + details(*this) +
         (is_narrow(type) && !said ? fmt::format(" {}", name_of(type)) : "");
}

Operands Kernel::operands() const {
  expect_own_attributes();
  const Operand input{type, x.elements()}, output{type, y.elements()},
      weights{type, weight_elements(*this)};
  const Operand weight_gradient{DataType::F32, weight_elements(*this)},
      target{DataType::F32, x.elements()};
  const Operand index{DataType::I32, y.elements()}, bias_vector{DataType::F32, y[Axis::C]},
      channel{DataType::F32, x[Axis::C]};
  const Operand labels{DataType::I32, x[Axis::N] * positions(x)}, scalar_sum{DataType::F64, 1};
  const auto class_sums = [&] { return Operand{DataType::F64, dice_sets(*this) * 3 * x[Axis::C]}; };
  const Operand moments{DataType::F64, 2 * x[Axis::C]}, running{DataType::F32, 2 * x[Axis::C]};
  const Operand row_statistics{DataType::F64, 2 * x[Axis::N] * positions(x)};
  const Operand norms{DataType::F64, 2}, scaling{DataType::F64, 2}, overflows{DataType::F64, 1};
  const auto sums = [&] { return Operand{DataType::F64, sets().sets * 2 * x[Axis::C]}; };
  const bool activated = epilogue().activation.has_value(), addend = epilogue().addend;
  switch (kind) {
    case ConvolutionForward:
      return {as<ConvolutionAttributes>().bias ? std::vector{input, weights, bias_vector}
                                               : std::vector{input, weights},
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
    case ReduceForward:
    case RearrangeForward:
    case SpatialMeanForward: return {{input}, {output}};
    case AveragePoolBackward:
    case UpsampleBackward:
    case RearrangeBackward:
    case SpatialMeanBackward: return {{output}, {input}};
    case ReduceBackward:
      if (as<ReduceAttributes>().function == Reduction::Max) return {{input, output}, {input}};
      return {{output}, {input}};
    case BatchNormStatistics: return {{input}, {sums()}};
    case BatchNormForward:
      return with_read({{input, sums(), channel, channel}, {output}}, addend, input);
    case BatchNormBackwardSums:
      return with_write(
          with_read({{input, output, sums()}, {sums(), channel, channel}}, activated, output),
          addend, output);
    case BatchNormBackward:
      return with_read({{input, output, sums(), sums(), channel}, {input}}, activated, output);
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
    case LayerNormForward: return {{input, channel, channel}, {output, row_statistics}};
    case LayerNormBackward: return {{input, output, row_statistics, channel}, {input}};
    case LayerNormGradient: return {{input, output, row_statistics}, {channel, channel}};
    case Add:
      return {std::vector<Operand>(static_cast<std::size_t>(as<AddAttributes>().inputs), input),
              {output}};
    case SoftmaxCrossEntropy:
      return with_read({{input, labels}, {scalar_sum, input}}, scaled(), scaling);
    case ElementwiseLoss:
      return with_read({{input, target}, {scalar_sum, input}}, scaled(), scaling);
    case LabelWeights:
      return with_read({{labels}, {scalar_sum}}, as<CrossEntropyAttributes>().weighted, channel);
    case WeightedCrossEntropy: {
      const auto& of = as<CrossEntropyAttributes>();
      Operands operands = with_read({{input, labels}, {scalar_sum, input}}, of.weighted, channel);
      operands = with_read(std::move(operands), of.reads_divisor(), scalar_sum);
      return with_read(std::move(operands), scaled(), scaling);
    }
    case BatchNormMoments: return {{sums()}, {moments}};
    case BatchNormRunningSums: return {{running}, {sums()}};
    case RunningAverage: return with_read({{moments, running}, {running}}, scaled(), overflows);
    case BatchNormInference:
      return with_read({{input, running, channel, channel}, {output}}, addend, input);
    case DiceSums: return {{input, labels}, {class_sums()}};
    case DiceLoss:
      return with_read({{labels, class_sums()}, {scalar_sum, input}}, scaled(), scaling);
    case CopyRegion: return {{{type, x.elements()}}, {{type, y.elements()}}};
    case Fill: return {{}, {{type, y.elements()}}};
    case SgdMomentum:
    case SgdNesterov:
      return with_read({{output, output, output}, {output, output}}, scaled(), overflows);
    case Sgd: return with_read({{output, output}, {output}}, scaled(), overflows);
    case Adam:
    case AdamW:
      return with_read({{output, output, output, output}, {output, output, output}}, scaled(),
                       overflows);
    case SquaredNorms: return {{output, output}, {norms}};
    case Lars:
      return with_read({{output, output, output, norms}, {output, output}}, scaled(), overflows);
    case Convert: return {{{DataType::F32, x.elements()}}, {output}};
    case Widen: return {{{type, x.elements()}}, {{DataType::F32, y.elements()}}};
    case Unscale: return {{output, scaling, overflows}, {output, overflows}};
    case AdjustLossScale: return {{scaling, overflows}, {scaling}};
    case BinaryForward: return {{input, {type, as<Binary>().second.elements()}}, {output}};
    case BinaryBackward: return binary_backward_operands(*this);
  }
  SP_ASSERT(false, "operands() has no case for kind {}", static_cast<int>(kind));
  return {};
}

Flops Kernel::flops() const {
  const double outputs = static_cast<double>(y.elements());
  switch (kind) {
    case ConvolutionForward:
    case ConvolutionBackwardData:
    case ConvolutionBackwardFilter:
      return {2 * outputs *
              static_cast<double>(x[Axis::C] / as<ConvolutionAttributes>().groups * taps(*this))};
    case MaxPoolForward:
    case MaxPoolBackward:
    case AveragePoolForward:
    case AveragePoolBackward: return {outputs * static_cast<double>(taps(*this))};
    case SpatialMeanForward:
    case SpatialMeanBackward:
    case ReduceForward:
    case ReduceBackward: return {static_cast<double>(x.elements())};
    case PointwiseForward: return {outputs * row_of(as<Activation>().function).operations.forward};
    case PointwiseBackward:
      return {outputs * row_of(as<Activation>().function).operations.backward};
    case LabelWeights: return {static_cast<double>(x[Axis::N] * positions(x))};
    case ElementwiseLoss:
      return {outputs * row_of(as<ElementLossAttributes>().loss.function).operations};
    case BinaryForward: return {outputs * row_of(as<Binary>().function).operations.forward};
    case BinaryBackward: return {outputs * row_of(as<Binary>().function).operations.backward};
    case Add: return {outputs * (as<AddAttributes>().inputs - 1)};
    case LocalResponseForward:
      return {outputs * static_cast<double>(20 + 2 * as<LocalResponse>().size)};
    case LocalResponseBackward:
      return {outputs * static_cast<double>(25 + 3 * as<LocalResponse>().size)};
    case CopyRegion: {
      const auto& copy = as<CopyAttributes>();
      return {copy.accumulate ? static_cast<double>(copy.region.elements()) : 0};
    }
    case Fill: return {0};
    case UpsampleForward:
    case UpsampleBackward: return {2 * outputs * static_cast<double>(mixed(*this))};
    case BatchNormMoments: return {static_cast<double>(10 * sets().sets * x[Axis::C])};
    case RunningAverage: return {static_cast<double>(6 * x[Axis::C])};
    case BatchNormRunningSums: return {static_cast<double>(4 * x[Axis::C])};
    case AdjustLossScale: return {4};
    default: break;
  }
  const double operations = row_of(kind).operations;
  SP_ASSERT(operations != formula, "flops() has no case for kind {}", name_of(kind));
  return {outputs * operations};
}

Bytes Kernel::bytes() const {
  if (const auto* copy = std::get_if<CopyAttributes>(&attributes))
    return Bytes{copy->region.elements() * size_of(type)} * (copy->accumulate ? 3 : 2);
  Bytes sum{};
  const Operands all = operands();
  for (const Operand& operand : all.reads) sum += operand.bytes();
  for (const Operand& operand : all.writes) sum += operand.bytes();
  return sum;
}

}  // namespace stratplan
