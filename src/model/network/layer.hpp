#pragma once
// A layer: an operation with its attributes and global shapes. It knows nothing of ranks.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/network/shape.hpp"
#include "model/network/window.hpp"

namespace stratplan {

enum class LayerKind : int {
  Input,
  Convolution,
  MaxPool,
  AveragePool,
  GlobalAveragePool,
  BatchNorm,
  ReLU,
  LeakyReLU,
  Sigmoid,
  Add,
  FullyConnected,
  Dropout,
  SoftmaxCrossEntropy,
  MeanSquaredError,
  TransposedConvolution,
};

/// The spelling in network.json: "convolution", "max_pool", ...
std::string_view name_of(LayerKind kind);

/// Slides a kernel of weights over its input, or over its output.
constexpr bool is_convolution(LayerKind kind) { return kind == LayerKind::Convolution || kind == LayerKind::TransposedConvolution; }
/// Sums over input channels, has weights (convolutions, FullyConnected).
constexpr bool is_contraction(LayerKind kind) { return is_convolution(kind) || kind == LayerKind::FullyConnected; }
/// Slides a window (convolutions, MaxPool, AveragePool).
constexpr bool has_window(LayerKind kind) { return is_convolution(kind) || kind == LayerKind::MaxPool || kind == LayerKind::AveragePool; }
constexpr bool is_loss(LayerKind kind) { return kind == LayerKind::SoftmaxCrossEntropy || kind == LayerKind::MeanSquaredError; }
/// Each output element needs just the input elements at its own index (statistics of BatchNorm apart).
constexpr bool is_point_wise(LayerKind kind) {
  return kind == LayerKind::BatchNorm || kind == LayerKind::ReLU || kind == LayerKind::LeakyReLU || kind == LayerKind::Sigmoid ||
         kind == LayerKind::Add || kind == LayerKind::Dropout || kind == LayerKind::MeanSquaredError;
}

using LayerIndex = int;

struct Layer {
  std::string name;
  LayerKind kind = LayerKind::Input;
  std::vector<LayerIndex> inputs;      ///< producers; Add has two or more, Input none, all others one

  std::array<Window, 3> windows{};     ///< convolutions, MaxPool, AveragePool: along D, H, W; a transposed convolution's slide over its output
  std::int64_t filters = 0;            ///< convolutions, FullyConnected: F
  bool bias = false;                   ///< convolutions, FullyConnected
  bool count_padding = true;           ///< AveragePool: whether padded zeros count in the divisor
  double epsilon = 1e-5;               ///< BatchNorm
  double slope = 0.01;                 ///< LeakyReLU: factor for negative input
  double probability = 0.5;            ///< Dropout: of an element being dropped
  std::int64_t groups = 1;             ///< convolutions: each group of F / groups filters reads its own C / groups channels
  std::array<std::int64_t, 3> output_padding{};  ///< TransposedConvolution: rows of output more, along D, H, W

  Shape input;                         ///< of the first producer; of Input: the same as output
  Shape output;                        ///< of a loss: the input's shape (its gradient's home)

  /// Every output channel is a sum over all input channels: a contraction of one group. Where not, F and C split the same thing.
  bool mixes_channels() const { return is_contraction(kind) && groups == 1; }
  /// Shape of the weights, (F, C / groups, kD, kH, kW) in the places of N, C, D, H, W; zero elements if the layer has none. Those of a transposed
  /// convolution are those of the convolution whose gradient it is: (C, F / groups, kD, kH, kW).
  Shape weights() const;
  /// Products that are added up to one output element, away from the borders; of a transposed convolution: on average.
  double fan_in() const;
  /// Trainable parameters: weights and bias, or scale and shift.
  std::int64_t parameter_count() const;
  /// Forward operations over the whole batch; a multiply-add counts as two. Contractions only: the rest is bound by memory.
  Flops forward_flops() const;
};

}  // namespace stratplan
