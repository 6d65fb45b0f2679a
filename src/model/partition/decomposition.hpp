#pragma once
// The parallel decomposition of one layer, the distributions of the layer's tensors that follow
// from it, and the reasons why a decomposition is illegal.
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/network/network.hpp"
#include "model/partition/distribution.hpp"

namespace stratplan {

/// How the output of a contraction lies after the sum over the ranks along C. ReduceScatter splits
/// the output's channels over these ranks. AllReduce makes the output redundant on them. No tensor
/// leaves its layer as Partial.
enum class OutputLayout : int { ReduceScatter, AllReduce };

struct Decomposition {
  ProcessGrid grid;
  /// has an effect only on a contraction with one group of channels, on a grid that splits C
  OutputLayout output_layout = OutputLayout::ReduceScatter;
  Ranks ranks{};  ///< the job's ranks on which the grid lies

  /// "C2 F2", "C2 F2 all-reduce", or "H3 on 3,1,4".
  std::string text() const;
  /// Inverse of text(). Throws std::invalid_argument with a one-line reason.
  static Decomposition parse(std::string_view text);
  friend bool operator==(const Decomposition&, const Decomposition&) = default;
  friend auto operator<=>(const Decomposition&, const Decomposition&) = default;
};

/// Why a decomposition is illegal for a layer: "layer conv5: H32 cannot split 14 output positions".
struct Rejection {
  std::string reason;
};

/// How a layer's tensors lie under one decomposition.
struct LayerDistributions {
  std::vector<Needed> inputs;  ///< one per producer
  /// the output as it is computed, before a sum over ranks; Partial along C after a contraction,
  /// and along reduced axes after a global pooling or a reduction
  Distribution raw;
  Distribution home;  ///< the output in its output layout: Block and Redundant only
  /// axes as in Layer::weights(); the weights' gradient is summed over the Gathered dimensions
  std::optional<Distribution> weights;
  std::optional<Distribution> channels;  ///< bias, scale, shift, slope: (1, channels, 1, 1, 1)

  /// The distribution of one of the layer's parameters.
  const Distribution& parameter(ParameterRole role) const {
    return role == ParameterRole::Weights ? *weights : *channels;
  }
};

/// The windows through which the iteration space reads the input. A fully connected layer counts as
/// a convolution whose kernel is the whole spatial extent of the input.
std::array<Window, 3> iteration_windows(const Layer& layer);

/// Returns the distributions of the layer's tensors. Requires that check() accepts the
/// decomposition.
LayerDistributions distribute(const Layer& layer, const Decomposition& decomposition);

/// Returns nothing if the decomposition is legal: every rank gets work, and the layer can be split
/// along every dimension that the grid splits.
std::optional<Rejection> check(const Layer& layer, const Decomposition& decomposition);

/// Returns the decomposition that a layer folded behind this layer inherits. Under it, this layer's
/// output already lies where the folded layer needs it. Dimensions along which the output is
/// redundant become R.
Decomposition inherited(const Layer& layer, const Decomposition& decomposition);

/// The nearest legal decomposition: each dimension that the layer cannot split becomes R, at the
/// same place in the grid.
struct Nearest {
  Decomposition decomposition;
  std::string reason;  ///< why dimensions became R; empty if the wanted decomposition was legal
};
Nearest nearest_legal(const Layer& layer, const Decomposition& wanted);

}  // namespace stratplan
