#pragma once
// Parameters of layers: the tensors that layers read besides their inputs. A layer has its own
// trainable parameters unless the network declares something else: a name, a parameter that several
// layers share, a parameter that training does not change, or a constant.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stratplan {

using LayerIndex = int;
using ParameterIndex = int;

/// What a parameter is to a layer.
/// ClassWeights belong to a loss, which declares them as a constant.
enum class ParameterRole : int { Weights, Bias, Scale, Shift, Slope, ClassWeights };
inline constexpr std::array<std::string_view, 6> parameter_role_names{
    "weights", "bias", "scale", "shift", "slope", "class_weights"};
constexpr std::string_view name_of(ParameterRole role) {
  return parameter_role_names[static_cast<std::size_t>(role)];
}

/// How training treats a parameter. Neither Frozen nor Constant parameters have a gradient or
/// optimizer state. The values of a Constant belong to the network, so checkpoints leave it out.
enum class Learning : std::uint8_t { Trained, Frozen, Constant };
inline constexpr std::array<std::string_view, 3> learning_names{"trainable", "frozen", "constant"};
constexpr std::string_view name_of(Learning learning) {
  return learning_names[static_cast<std::size_t>(learning)];
}

/// Returns the product of a tensor's extents; nothing if one is negative or the product overflows.
constexpr std::optional<std::int64_t> element_count(const std::vector<std::int64_t>& extents) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : extents)
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements)) return {};
  return elements;
}

/// How the model from which a network was imported stores a parameter.
struct StoredTensor {
  std::vector<std::int64_t> shape;  ///< empty: a scalar
  bool transposed = false;          ///< (K, F) instead of (F, K), for a fully connected layer
  bool channels_last = false;       ///< K is ordered (D, H, W, C) instead of (C, D, H, W)
};

/// A parameter that network.json declares.
struct Parameter {
  std::string name;
  Learning learning = Learning::Trained;
  std::vector<float> values{};  ///< of a Constant: one value for all elements, or one per element
  std::optional<StoredTensor> stored{};  ///< none: the model has no tensor of this name
  /// the layers that read the parameter, ascending; set by finish_network()
  std::vector<LayerIndex> users{};

  bool shared() const { return users.size() > 1; }
};

/// Declared names of the running statistics of batch normalizations. Layers that share their
/// running statistics update them one after the other, in the order of layers.
struct RunningNames {
  std::string mean, variance;
  std::vector<LayerIndex> users{};  ///< as for a Parameter
};

/// A tensor of the imported model that no layer reads, but that the model's own file has.
struct StateBuffer {
  static constexpr std::int64_t most_elements = 65536;

  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;  ///< one value for all elements, or one per element
};

}  // namespace stratplan
