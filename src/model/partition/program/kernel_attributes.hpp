#pragma once
// The attributes of kernels, besides their shapes and type: one struct for each family of kinds.
// The table in kernel.cpp says which struct belongs to a kind.
#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <variant>

#include "model/base/json/fields.hpp"
#include "model/network/functions/binary.hpp"
#include "model/network/functions/local_response.hpp"
#include "model/network/functions/loss.hpp"
#include "model/network/functions/pointwise.hpp"
#include "model/network/functions/rearrangement.hpp"
#include "model/network/functions/reduction.hpp"
#include "model/network/scale.hpp"
#include "model/network/shape.hpp"
#include "model/network/window.hpp"

namespace stratplan {

/// Operations that a kernel applies to its result before it writes the result. They need no pass
/// over memory of their own (fusion.hpp).
struct Epilogue {
  std::optional<Activation> activation{};  ///< a function that has a fused_slope()
  bool addend = false;  ///< a tensor is added before the activation (only normalizations)

  /// The factor of negative results; 1 without an activation.
  double slope() const { return activation ? *activation->fused_slope() : 1; }
  static constexpr auto fields() {
    return std::tuple(Field{"activation", &Epilogue::activation},
                      Field{"addend", &Epilogue::addend});
  }
  friend auto operator<=>(const Epilogue&, const Epilogue&) = default;
};

/// The statistics sets of which a rank's buffer holds sums. Local sample n belongs to the global
/// set with index (first_sample + n) / set_samples. The buffer holds that set at this index minus
/// first_set. Instance and group normalization are batch normalization in sets of one sample.
struct StatisticsSets {
  std::int64_t set_samples = 1;   ///< samples of a full set
  std::int64_t first_sample = 0;  ///< global index of local sample 0
  std::int64_t first_set = 0;     ///< global index of the first set in the buffer
  std::int64_t sets = 1;          ///< sets in the buffer; a set without local samples holds zeros
  std::int64_t batch = 1;         ///< samples of the global batch; the last set may be shorter
  /// global D * H * W; a set has samples * positions terms per channel
  std::int64_t positions = 1;
  /// number of consecutive channels that share mean and variance; sums are kept per channel
  /// nevertheless
  std::int64_t group_channels = 1;

  /// The index in the buffer of the set to which local sample n belongs.
  constexpr std::int64_t set_of(std::int64_t n) const {
    return (first_sample + n) / set_samples - first_set;
  }
  /// The number of terms in the mean of the set at index `set` of the buffer.
  constexpr double terms(std::int64_t set) const {
    const std::int64_t before = (first_set + set) * set_samples;
    const std::int64_t samples = batch - before < set_samples ? batch - before : set_samples;
    return static_cast<double>(samples * positions * group_channels);
  }
  static constexpr auto fields() {
    using S = StatisticsSets;
    return std::tuple(
        Field{"set_samples", &S::set_samples}, Field{"first_sample", &S::first_sample},
        Field{"first_set", &S::first_set}, Field{"sets", &S::sets}, Field{"batch", &S::batch},
        Field{"positions", &S::positions}, Field{"group_channels", &S::group_channels});
  }
  friend auto operator<=>(const StatisticsSets&, const StatisticsSets&) = default;
};

/// For kinds that shapes and type describe completely.
struct NoAttributes {
  static constexpr auto fields() { return std::tuple(); }
  friend auto operator<=>(const NoAttributes&, const NoAttributes&) = default;
};

/// For convolutions, in any direction.
struct ConvolutionAttributes {
  Windows windows{};  ///< with local padding
  bool bias = false;  ///< ConvolutionForward adds a bias
  /// number of local groups; each group of y's channels reads its own group of x's channels
  std::int64_t groups = 1;
  Epilogue epilogue{};

  static constexpr auto fields() {
    using A = ConvolutionAttributes;
    return std::tuple(Field{"windows", &A::windows}, Field{"bias", &A::bias},
                      Field{"groups", &A::groups}, Field{"epilogue", &A::epilogue});
  }
  friend auto operator<=>(const ConvolutionAttributes&, const ConvolutionAttributes&) = default;
};

/// For BiasAdd and BiasGradient.
struct BiasAttributes {
  Epilogue epilogue{};

  static constexpr auto fields() {
    return std::tuple(Field{"epilogue", &BiasAttributes::epilogue});
  }
  friend auto operator<=>(const BiasAttributes&, const BiasAttributes&) = default;
};

/// For the MaxPool and AveragePool kinds.
struct PoolAttributes {
  Windows windows{};
  bool count_padding = true;  ///< AveragePool: the padding counts in the divisor

  static constexpr auto fields() {
    return std::tuple(Field{"windows", &PoolAttributes::windows},
                      Field{"count_padding", &PoolAttributes::count_padding});
  }
  friend auto operator<=>(const PoolAttributes&, const PoolAttributes&) = default;
};

/// For the SpatialMean kinds.
struct MeanAttributes {
  double positions = 0;  ///< global D * H * W: the divisor of the local sum

  static constexpr auto fields() {
    return std::tuple(Field{"positions", &MeanAttributes::positions});
  }
  friend auto operator<=>(const MeanAttributes&, const MeanAttributes&) = default;
};

/// For the BatchNorm kinds.
struct NormalizationAttributes {
  double epsilon = 0;     ///< added to the variance; BatchNormStatistics does not read it
  StatisticsSets sets{};  ///< not used by BatchNormInference
  Epilogue epilogue{};

  static constexpr auto fields() {
    using A = NormalizationAttributes;
    return std::tuple(Field{"epsilon", &A::epsilon}, Field{"sets", &A::sets},
                      Field{"epilogue", &A::epilogue});
  }
  friend auto operator<=>(const NormalizationAttributes&, const NormalizationAttributes&) = default;
};

/// For the LayerNorm kinds.
struct LayerNormAttributes {
  double epsilon = 0;  ///< added to the variance; LayerNormForward alone reads it

  static constexpr auto fields() {
    return std::tuple(Field{"epsilon", &LayerNormAttributes::epsilon});
  }
  friend auto operator<=>(const LayerNormAttributes&, const LayerNormAttributes&) = default;
};

/// For BatchNormMoments.
struct MomentsAttributes {
  double weight = 0;  ///< the weight of one set in the mean over all sets
  StatisticsSets sets{};

  static constexpr auto fields() {
    return std::tuple(Field{"weight", &MomentsAttributes::weight},
                      Field{"sets", &MomentsAttributes::sets});
  }
  friend auto operator<=>(const MomentsAttributes&, const MomentsAttributes&) = default;
};

/// For RunningAverage: running += momentum * (moments - running).
struct RunningAverageAttributes {
  double momentum = 0;  ///< weight of the new moments
  bool scaled = false;  ///< the loss is scaled, and the kernel reads the overflows

  static constexpr auto fields() {
    return std::tuple(Field{"momentum", &RunningAverageAttributes::momentum},
                      Field{"scaled", &RunningAverageAttributes::scaled});
  }
  friend auto operator<=>(const RunningAverageAttributes&,
                          const RunningAverageAttributes&) = default;
};

/// For optimizers. Learning rates change with the step, so they come in the KernelContext.
struct OptimizerAttributes {
  bool scaled = false;  ///< the loss is scaled, and the kernel reads the overflows

  static constexpr auto fields() {
    return std::tuple(Field{"scaled", &OptimizerAttributes::scaled});
  }
  friend auto operator<=>(const OptimizerAttributes&, const OptimizerAttributes&) = default;
};

/// For SoftmaxCrossEntropy, a mean over positions.
struct LossAttributes {
  double terms = 0;     ///< number of terms of the mean, over the whole batch
  bool scaled = false;  ///< the kernel reads the loss scale and multiplies the gradient by it
  double weight = 1;    ///< the kernel multiplies the gradient by it, but not the loss

  static constexpr auto fields() {
    return std::tuple(Field{"terms", &LossAttributes::terms},
                      Field{"scaled", &LossAttributes::scaled},
                      Field{"weight", &LossAttributes::weight});
  }
  friend auto operator<=>(const LossAttributes&, const LossAttributes&) = default;
};

/// For LabelWeights and WeightedCrossEntropy. A label that is ignored has the weight 0. Any other
/// label has the weight of its class, or 1 without `weighted`.
struct CrossEntropyAttributes {
  double terms = 1;      ///< the divisor of the loss; a divisor that is read is multiplied by it
  double smoothing = 0;  ///< the share of a label that all classes have in equal parts
  std::optional<std::int64_t> ignored{};
  bool weighted = false;  ///< the kernel reads weights of classes
  bool scaled = false;    ///< the kernel reads the loss scale and multiplies the gradient by it
  double weight = 1;      ///< the kernel multiplies the gradient by it, but not the loss

  /// Whether WeightedCrossEntropy divides by a sum of weights, which it reads.
  bool reads_divisor() const { return weighted || ignored; }
  static constexpr auto fields() {
    using A = CrossEntropyAttributes;
    return std::tuple(Field{"terms", &A::terms}, Field{"smoothing", &A::smoothing},
                      Field{"ignored", &A::ignored}, Field{"weighted", &A::weighted},
                      Field{"scaled", &A::scaled}, Field{"weight", &A::weight});
  }
  friend auto operator<=>(const CrossEntropyAttributes&, const CrossEntropyAttributes&) = default;
};

/// For ElementwiseLoss, a mean over elements.
struct ElementLossAttributes {
  ElementLoss loss{};
  double terms = 0;     ///< number of terms of the mean, over the whole batch
  bool scaled = false;  ///< the kernel reads the loss scale and multiplies the gradient by it
  double weight = 1;    ///< the kernel multiplies the gradient by it, but not the loss

  static constexpr auto fields() {
    using A = ElementLossAttributes;
    return std::tuple(Field{"loss", &A::loss}, Field{"terms", &A::terms},
                      Field{"scaled", &A::scaled}, Field{"weight", &A::weight});
  }
  friend auto operator<=>(const ElementLossAttributes&, const ElementLossAttributes&) = default;
};

/// For DiceSums.
struct DiceSumsAttributes {
  bool per_sample = false;                ///< whether each sample has sums of its own
  std::optional<std::int64_t> ignored{};  ///< positions with this label do not count

  static constexpr auto fields() {
    return std::tuple(Field{"per_sample", &DiceSumsAttributes::per_sample},
                      Field{"ignored", &DiceSumsAttributes::ignored});
  }
  friend auto operator<=>(const DiceSumsAttributes&, const DiceSumsAttributes&) = default;
};

/// For DiceLoss, which has a quotient of sums per class.
struct DiceLossAttributes {
  double epsilon = 0;   ///< added to numerator and denominator of each class
  bool scaled = false;  ///< the kernel reads the loss scale and multiplies the gradient by it
  double weight = 1;    ///< the kernel multiplies the gradient by it, but not the loss
  bool per_sample = false;
  double divisor = 1;  ///< of the loss of each sample, or of the batch
  std::optional<std::int64_t> ignored{};

  static constexpr auto fields() {
    using A = DiceLossAttributes;
    return std::tuple(Field{"epsilon", &A::epsilon}, Field{"scaled", &A::scaled},
                      Field{"weight", &A::weight}, Field{"per_sample", &A::per_sample},
                      Field{"divisor", &A::divisor}, Field{"ignored", &A::ignored});
  }
  friend auto operator<=>(const DiceLossAttributes&, const DiceLossAttributes&) = default;
};

/// For Dropout, in both directions.
struct DropoutAttributes {
  double probability = 0;  ///< the probability that an element is dropped

  static constexpr auto fields() {
    return std::tuple(Field{"probability", &DropoutAttributes::probability});
  }
  friend auto operator<=>(const DropoutAttributes&, const DropoutAttributes&) = default;
};

/// For Add.
struct AddAttributes {
  int inputs = 1;  ///< number of tensors that are added

  static constexpr auto fields() { return std::tuple(Field{"inputs", &AddAttributes::inputs}); }
  friend auto operator<=>(const AddAttributes&, const AddAttributes&) = default;
};

/// For CopyRegion.
struct CopyAttributes {
  bool accumulate = false;                      ///< whether the kernel adds to the destination
  Shape region{};                               ///< extents of the copied region
  std::array<std::int64_t, axis_count> from{};  ///< start of the region in the source
  std::array<std::int64_t, axis_count> to{};    ///< start of the region in the destination

  static constexpr auto fields() {
    using A = CopyAttributes;
    return std::tuple(Field{"accumulate", &A::accumulate}, Field{"region", &A::region},
                      Field{"from", &A::from}, Field{"to", &A::to});
  }
  friend auto operator<=>(const CopyAttributes&, const CopyAttributes&) = default;
};

/// For the Binary kinds: functions of two tensors. The first tensor has shape Kernel::x. Along an
/// axis on which a tensor has extent 1, its element is repeated.
struct Binary {
  BinaryFunction function{};
  Shape second{};  ///< local shape of the second tensor
  int of = 0;      ///< BinaryBackward: the input (0 or 1) whose gradient the kernel makes

  static constexpr auto fields() {
    return std::tuple(Field{"function", &Binary::function}, Field{"second", &Binary::second},
                      Field{"of", &Binary::of});
  }
  friend auto operator<=>(const Binary&, const Binary&) = default;
};

/// For Fill.
struct FillAttributes {
  double value = 0;  ///< the value of each element

  static constexpr auto fields() { return std::tuple(Field{"value", &FillAttributes::value}); }
  friend auto operator<=>(const FillAttributes&, const FillAttributes&) = default;
};

/// For the Upsample kinds, which a Pad with elements of its input uses too.
struct UpsampleAttributes {
  std::array<Scale, 3> scales{};  ///< along D, H, W, between the local pieces

  static constexpr auto fields() {
    return std::tuple(Field{"scales", &UpsampleAttributes::scales});
  }
  friend auto operator<=>(const UpsampleAttributes&, const UpsampleAttributes&) = default;
};

/// For the Reduce kinds. Axes along which y has extent 1 are reduced.
struct ReduceAttributes {
  Reduction function = Reduction::Mean;
  double divisor = 1;  ///< Mean: the global number of terms, which divides the local sum; else 1

  static constexpr auto fields() {
    return std::tuple(Field{"function", &ReduceAttributes::function},
                      Field{"divisor", &ReduceAttributes::divisor});
  }
  friend auto operator<=>(const ReduceAttributes&, const ReduceAttributes&) = default;
};

/// Pointwise kinds hold an Activation, LocalResponse kinds a LocalResponse, Rearrange kinds a
/// Rearrangement.
using KernelAttributes =
    std::variant<NoAttributes, ConvolutionAttributes, BiasAttributes, PoolAttributes,
                 MeanAttributes, NormalizationAttributes, MomentsAttributes,
                 RunningAverageAttributes, OptimizerAttributes, LossAttributes, DiceLossAttributes,
                 DropoutAttributes, AddAttributes, CopyAttributes, Activation, Binary,
                 LocalResponse, UpsampleAttributes, LayerNormAttributes, FillAttributes,
                 ReduceAttributes, Rearrangement, ElementLossAttributes, CrossEntropyAttributes,
                 DiceSumsAttributes>;
/// Kernels are copied often while passes are priced.
static_assert(std::is_trivially_copyable_v<KernelAttributes>);

}  // namespace stratplan
