#pragma once
// One layer's parallel decomposition, what follows from it for each of the layer's tensors, and why
// a decomposition may be illegal.
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/network/network.hpp"
#include "model/partition/distribution.hpp"

namespace stratplan {

/// Where the sum over the C axis of a contraction lands. No tensor leaves its layer as Partial.
enum class OutputLayout : int { ReduceScatter, AllReduce };

struct Decomposition {
  ProcessGrid grid;
  OutputLayout output_layout =
      OutputLayout::ReduceScatter;  ///< matters only for a contraction of one group with C parts
  Ranks ranks{};                    ///< of the job, on which the grid lies

  /// "C2 F2", "C2 F2 all-reduce", or "H3 on 3,1,4".
  std::string text() const;
  static Decomposition parse(std::string_view text);
  friend bool operator==(const Decomposition&, const Decomposition&) = default;
  friend auto operator<=>(const Decomposition&, const Decomposition&) = default;
};

/// Why a decomposition is illegal for a layer: "layer conv5: H32 splits 14 output rows".
struct Rejection {
  std::string reason;
};

/// Everything about a layer's tensors that follows from its decomposition.
struct LayerDistributions {
  std::vector<Needed> inputs;  ///< per producer
  /// of the output as computed: Partial along C (or along D, H, W after a global pooling) where
  /// that is split
  Distribution raw;
  Distribution home;  ///< of the output after landing: Block and Redundant only
  /// as Layer::weights(): F (as N), C, kernel; Gathered dimensions are those that its gradient is
  /// reduced over
  std::optional<Distribution> weights;
  std::optional<Distribution> channels;  ///< of bias, scale and shift: shape (1, channels, 1, 1, 1)
};

/// Windows as the iteration space sees them: a fully connected layer is a convolution whose kernel
/// is the whole spatial extent.
std::array<Window, 3> iteration_windows(const Layer& layer);

/// Requires that check() has nothing to say.
LayerDistributions distribute(const Layer& layer, const Decomposition& decomposition);

/// Nothing if the decomposition is legal: every rank gets work, and no dimension is split that the
/// layer cannot split.
std::optional<Rejection> check(const Layer& layer, const Decomposition& decomposition);

/// The decomposition that layers folded behind this one inherit, under which their tensors already
/// lie where they are needed: dimensions that the landing has made redundant become R.
Decomposition inherited(const Layer& layer, const Decomposition& decomposition);

/// The nearest legal decomposition: dimensions that the layer cannot split become R, at the place
/// where they were. `reason` says why (empty if the decomposition was legal already).
struct Nearest {
  Decomposition decomposition;
  std::string reason;
};
Nearest nearest_legal(const Layer& layer, const Decomposition& wanted);

}  // namespace stratplan
