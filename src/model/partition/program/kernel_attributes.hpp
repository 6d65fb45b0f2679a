#pragma once
// What kernels have besides their shapes and their type: one struct for each family of kinds. The
// kind decides which (the table in kernel.cpp).
#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <variant>

#include "model/base/json/fields.hpp"
#include "model/network/binary.hpp"
#include "model/network/local_response.hpp"
#include "model/network/pointwise.hpp"
#include "model/network/scale.hpp"
#include "model/network/shape.hpp"
#include "model/network/window.hpp"

namespace stratplan {

/// What is done to a result before it is written, at no pass over memory of its own (fusion.hpp).
struct Epilogue {
  std::optional<Activation> activation{};  ///< one that has a fused_slope()
  bool addend = false;  ///< something is added before the activation: normalizations alone

  /// Factor of negative results; 1 without an activation.
  double slope() const { return activation ? *activation->fused_slope() : 1; }
  static constexpr auto fields() {
    return std::tuple(Field{"activation", &Epilogue::activation},
                      Field{"addend", &Epilogue::addend});
  }
  friend auto operator<=>(const Epilogue&, const Epilogue&) = default;
};

/// Which normalization set a local sample belongs to: set (first_sample + n) / set_samples, stored
/// at that minus first_set. Instance and group normalization are batch normalization in sets of one
/// sample.
struct StatisticsSets {
  std::int64_t set_samples = 1;   ///< samples of a full set
  std::int64_t first_sample = 0;  ///< global index of local sample 0
  std::int64_t first_set = 0;     ///< global index of the first set in the buffer
  std::int64_t sets = 1;          ///< sets in the buffer; those without local samples hold zeros
  std::int64_t batch = 1;         ///< global samples: the last set may be shorter
  std::int64_t positions =
      1;  ///< global D * H * W: a set has samples * positions terms per channel
  /// Consecutive channels that share mean and variance; sums are kept per channel all the same.
  std::int64_t group_channels = 1;

  /// Place in the buffer of the set that local sample n belongs to.
  constexpr std::int64_t set_of(std::int64_t n) const {
    return (first_sample + n) / set_samples - first_set;
  }
  /// Terms of the means at that place.
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

/// Of kinds that their shapes and their type describe.
struct NoAttributes {
  static constexpr auto fields() { return std::tuple(); }
  friend auto operator<=>(const NoAttributes&, const NoAttributes&) = default;
};

/// Of a convolution, in any direction.
struct ConvolutionAttributes {
  Windows windows{};        ///< with local padding
  bool bias = false;        ///< ConvolutionForward adds one
  std::int64_t groups = 1;  ///< local; each of y's has channels of its own in x
  Epilogue epilogue{};

  static constexpr auto fields() {
    using A = ConvolutionAttributes;
    return std::tuple(Field{"windows", &A::windows}, Field{"bias", &A::bias},
                      Field{"groups", &A::groups}, Field{"epilogue", &A::epilogue});
  }
  friend auto operator<=>(const ConvolutionAttributes&, const ConvolutionAttributes&) = default;
};

/// Of BiasAdd and BiasGradient.
struct BiasAttributes {
  Epilogue epilogue{};

  static constexpr auto fields() {
    return std::tuple(Field{"epilogue", &BiasAttributes::epilogue});
  }
  friend auto operator<=>(const BiasAttributes&, const BiasAttributes&) = default;
};

/// Of a MaxPool or an AveragePool.
struct PoolAttributes {
  Windows windows{};
  bool count_padding = true;  ///< AveragePool: the padding counts in the divisor

  static constexpr auto fields() {
    return std::tuple(Field{"windows", &PoolAttributes::windows},
                      Field{"count_padding", &PoolAttributes::count_padding});
  }
  friend auto operator<=>(const PoolAttributes&, const PoolAttributes&) = default;
};

/// Of a SpatialMean.
struct MeanAttributes {
  double positions = 0;  ///< global D * H * W, which the local sum is divided by

  static constexpr auto fields() {
    return std::tuple(Field{"positions", &MeanAttributes::positions});
  }
  friend auto operator<=>(const MeanAttributes&, const MeanAttributes&) = default;
};

/// Of a BatchNorm.
struct NormalizationAttributes {
  double epsilon = 0;     ///< added to the variance; BatchNormStatistics does not read it
  StatisticsSets sets{};  ///< BatchNormInference has none
  Epilogue epilogue{};

  static constexpr auto fields() {
    using A = NormalizationAttributes;
    return std::tuple(Field{"epsilon", &A::epsilon}, Field{"sets", &A::sets},
                      Field{"epilogue", &A::epilogue});
  }
  friend auto operator<=>(const NormalizationAttributes&, const NormalizationAttributes&) = default;
};

/// Of BatchNormMoments.
struct MomentsAttributes {
  double weight = 0;  ///< of a set in the mean over all of them
  StatisticsSets sets{};

  static constexpr auto fields() {
    return std::tuple(Field{"weight", &MomentsAttributes::weight},
                      Field{"sets", &MomentsAttributes::sets});
  }
  friend auto operator<=>(const MomentsAttributes&, const MomentsAttributes&) = default;
};

/// Of a RunningAverage: running += momentum * (moments - running).
struct RunningAverageAttributes {
  double momentum = 0;  ///< weight of the new moments
  bool scaled = false;  ///< the loss is: overflows are read

  static constexpr auto fields() {
    return std::tuple(Field{"momentum", &RunningAverageAttributes::momentum},
                      Field{"scaled", &RunningAverageAttributes::scaled});
  }
  friend auto operator<=>(const RunningAverageAttributes&,
                          const RunningAverageAttributes&) = default;
};

/// Of an optimizer; its rates come with the op (KernelContext).
struct OptimizerAttributes {
  bool scaled = false;  ///< the loss is: overflows are read

  static constexpr auto fields() {
    return std::tuple(Field{"scaled", &OptimizerAttributes::scaled});
  }
  friend auto operator<=>(const OptimizerAttributes&, const OptimizerAttributes&) = default;
};

/// Of a loss that is a mean: SoftmaxCrossEntropy, MeanSquaredError.
struct LossAttributes {
  double terms = 0;     ///< of the mean over the whole batch
  bool scaled = false;  ///< the scale is read, and the gradient multiplied by it

  static constexpr auto fields() {
    return std::tuple(Field{"terms", &LossAttributes::terms},
                      Field{"scaled", &LossAttributes::scaled});
  }
  friend auto operator<=>(const LossAttributes&, const LossAttributes&) = default;
};

/// Of a DiceLoss, which is a quotient of sums.
struct DiceLossAttributes {
  double epsilon = 0;   ///< added above and below, of each class
  bool scaled = false;  ///< as of the other losses

  static constexpr auto fields() {
    return std::tuple(Field{"epsilon", &DiceLossAttributes::epsilon},
                      Field{"scaled", &DiceLossAttributes::scaled});
  }
  friend auto operator<=>(const DiceLossAttributes&, const DiceLossAttributes&) = default;
};

/// Of a Dropout, in both directions.
struct DropoutAttributes {
  double probability = 0;  ///< with which an element is dropped

  static constexpr auto fields() {
    return std::tuple(Field{"probability", &DropoutAttributes::probability});
  }
  friend auto operator<=>(const DropoutAttributes&, const DropoutAttributes&) = default;
};

/// Of an Add.
struct AddAttributes {
  int inputs = 1;  ///< number of reads

  static constexpr auto fields() { return std::tuple(Field{"inputs", &AddAttributes::inputs}); }
  friend auto operator<=>(const AddAttributes&, const AddAttributes&) = default;
};

/// Of a CopyRegion.
struct CopyAttributes {
  bool accumulate = false;                      ///< adds to what is there
  Shape region{};                               ///< extents moved
  std::array<std::int64_t, axis_count> from{};  ///< start in the source
  std::array<std::int64_t, axis_count> to{};    ///< start in the destination

  static constexpr auto fields() {
    using A = CopyAttributes;
    return std::tuple(Field{"accumulate", &A::accumulate}, Field{"region", &A::region},
                      Field{"from", &A::from}, Field{"to", &A::to});
  }
  friend auto operator<=>(const CopyAttributes&, const CopyAttributes&) = default;
};

/// Of a Binary: a function of two tensors, of which the first has shape Kernel::x. Extents of 1 are
/// read again along y's.
struct Binary {
  BinaryFunction function{};
  Shape second{};  ///< local
  int of = 0;      ///< BinaryBackward: which input's gradient it makes

  static constexpr auto fields() {
    return std::tuple(Field{"function", &Binary::function}, Field{"second", &Binary::second},
                      Field{"of", &Binary::of});
  }
  friend auto operator<=>(const Binary&, const Binary&) = default;
};

/// Of an Upsample.
struct UpsampleAttributes {
  std::array<Scale, 3> scales{};  ///< along D, H, W, with local phases

  static constexpr auto fields() {
    return std::tuple(Field{"scales", &UpsampleAttributes::scales});
  }
  friend auto operator<=>(const UpsampleAttributes&, const UpsampleAttributes&) = default;
};

/// Activation is what a Pointwise kernel has, LocalResponse what a LocalResponse has.
using KernelAttributes =
    std::variant<NoAttributes, ConvolutionAttributes, BiasAttributes, PoolAttributes,
                 MeanAttributes, NormalizationAttributes, MomentsAttributes,
                 RunningAverageAttributes, OptimizerAttributes, LossAttributes, DiceLossAttributes,
                 DropoutAttributes, AddAttributes, CopyAttributes, Activation, Binary,
                 LocalResponse, UpsampleAttributes>;
/// Kernels are copied as passes are priced.
static_assert(std::is_trivially_copyable_v<KernelAttributes>);

}  // namespace stratplan
