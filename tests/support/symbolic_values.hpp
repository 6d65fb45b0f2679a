#pragma once
// The values that every tensor of a network should hold if each layer computed a made-up integer
// per global element. This judge of data movement needs no arithmetic of layers. It follows from
// global shapes and regions alone, element by element, and knows of no message.
//
//   forward   value(layer, g)     A hash of layer and element. Where the layer sums over ranks,
//                                 each rank's term is part_value, and the value is their sum.
//   backward  gradient(layer, g)  The sum of the consumers' contributions. A point-wise layer
//                                 contributes its own gradient. A layer that places its inputs
//                                 contributes the gradient at that place. Any other layer
//                                 contributes a hash of (consumer, rank) on the region that the
//                                 rank read; each Redundant group contributes once.
#include <algorithm>
#include <array>
#include <vector>

#include "model/partition/block.hpp"
#include "model/partition/decomposition.hpp"

namespace stratplan::test {

using Element = std::array<std::int64_t, axis_count>;  ///< global index along N, C, D, H, W

/// Calls visit(element) for each element of a region, channels innermost, as in memory.
template <class Visit>
void for_each_element(const Region& region, Visit&& visit) {
  const auto& in = region.interval;
  for (std::int64_t n = in[0].begin; n < in[0].end; ++n)
    for (std::int64_t d = in[2].begin; d < in[2].end; ++d)
      for (std::int64_t h = in[3].begin; h < in[3].end; ++h)
        for (std::int64_t w = in[4].begin; w < in[4].end; ++w)
          for (std::int64_t c = in[1].begin; c < in[1].end; ++c) visit(Element{n, c, d, h, w});
}

/// Returns the position of an element in a dense channels-last buffer over `region`.
inline std::size_t position_in(const Region& region, const Element& element) {
  std::int64_t position = 0;
  for (const std::size_t axis : {0U, 2U, 3U, 4U, 1U}) {
    const Interval& along = region.interval[axis];
    position = position * along.size() + element[axis] - along.begin;
  }
  return static_cast<std::size_t>(position);
}

/// Returns a small made-up integer, different for most neighbours.
inline double made_up(std::int64_t a, std::int64_t b, const Element& element) {
  std::uint64_t hash = static_cast<std::uint64_t>(a * 7919 + b * 104729 + 17);
  for (const std::int64_t index : element)
    hash = (hash ^ static_cast<std::uint64_t>(index)) * 0x9e3779b97f4a7c15ULL, hash ^= hash >> 29;
  return static_cast<double>(hash % 61 + 1);
}

class SymbolicValues {
 public:
  SymbolicValues(const Network& network, const LayerDecompositions& decompositions)
      : network_(network), decompositions_(decompositions) {
    for (int index = 0; index < network.size(); ++index) {
      const bool input = network.layer(index).kind == LayerKind::Input;
      distributions_.push_back(input ? LayerDistributions{}
                                     : distribute(network.layer(index), grid_of(index)));
      gradients_.emplace_back(static_cast<std::size_t>(network.layer(index).output.elements()),
                              0.0);
    }
    for (int index = network.size() - 1; index >= 0; --index) add_contributions(index);
  }

  const LayerDistributions& of(LayerIndex layer) const {
    return distributions_[static_cast<std::size_t>(layer)];
  }
  const Decomposition& grid_of(LayerIndex layer) const {
    return decompositions_[static_cast<std::size_t>(layer)];
  }

  /// Returns this rank's term of an element, before any sum over ranks.
  double part_value(LayerIndex layer, int rank, const Element& element) const {
    return made_up(layer, 0, element) + 3 * part_of(layer, rank);
  }
  /// `element` may lie beyond the tensor, for a reader around which the tensor wraps.
  double value(LayerIndex layer, const Element& element) const {
    const Layer& made = network_.layer(layer);
    const Element inside = wrapped(made.output, element);
    if (places(made)) return placed_value(made, inside);
    const double parts = terms(layer);
    return parts * made_up(layer, 0, inside) + 3 * parts * (parts - 1) / 2;
  }
  double gradient(LayerIndex layer, const Element& element) const {
    return gradients_[static_cast<std::size_t>(layer)]
                     [position_in(whole(network_.layer(layer).output), element)];
  }
  /// Returns the contribution of `consumer`'s kernel on `rank` to the gradient of its input.
  double contribution(LayerIndex consumer, std::size_t input, int rank,
                      const Element& element) const {
    const Layer& layer = network_.layer(consumer);
    const bool repeats =
        std::ranges::any_of(all_axes, [&](Axis axis) { return layer.repeats(input, axis); });
    if (is_point_wise(layer.kind) && !is_loss(layer.kind) && !repeats)
      return gradient(consumer, element);
    if (places(layer)) return gradient(consumer, translated(element, layer.origin(input), 1));
    return made_up(consumer * 16 + static_cast<int>(input),
                   1 + representative(consumer, input, rank), element);
  }

 private:
  static Element translated(Element element, const Element& by, std::int64_t sign) {
    for (std::size_t axis = 0; axis < axis_count; ++axis) element[axis] += sign * by[axis];
    return element;
  }
  static bool places(const Layer& layer) { return places_inputs(layer.kind) && !layer.resamples(); }
  static Element wrapped(const Shape& shape, Element element) {
    for (std::size_t axis = 0; axis < axis_count; ++axis)
      element[axis] =
          (element[axis] % shape.extent[axis] + shape.extent[axis]) % shape.extent[axis];
    return element;
  }
  /// Returns the value of the input that lies at this element, or the constant of a padding.
  double placed_value(const Layer& layer, const Element& element) const {
    for (std::size_t input = 0; input < layer.inputs.size(); ++input) {
      const Element inside = translated(element, layer.origin(input), -1);
      const auto* pad = std::get_if<PadLayer>(&layer.attributes);
      bool lies_there = true;
      if (pad && pad->mode == PaddingMode::Wrap) return value(layer.inputs[input], inside);
      for (std::size_t axis = 0; axis < axis_count; ++axis)
        lies_there =
            lies_there && inside[axis] >= 0 && inside[axis] < layer.input_shape(input).extent[axis];
      if (lies_there) return value(layer.inputs[input], inside);
      if (pad) return pad->value;
    }
    return 0;
  }
  int terms(LayerIndex layer) const {
    if (network_.layer(layer).kind == LayerKind::Input) return 1;
    int parts = 1;
    for (const Dim dim : of(layer).raw.dims_with(Role::Partial))
      parts *= of(layer).raw.grid.parts(dim);
    return parts;
  }
  int part_of(LayerIndex layer, int rank) const {
    if (network_.layer(layer).kind == LayerKind::Input) return 0;
    int part = 0;
    for (const Dim dim : of(layer).raw.dims_with(Role::Partial))
      part = part * of(layer).raw.grid.parts(dim) + of(layer).raw.grid.index(dim, rank);
    return part;
  }
  int representative(LayerIndex consumer, std::size_t input, int rank) const {
    const Distribution& iteration = of(consumer).inputs[input].iteration;
    return iteration.grid.group(rank, iteration.dims_with(Role::Redundant)).front();
  }
  void add_contributions(LayerIndex consumer) {
    const Layer& layer = network_.layer(consumer);
    for (std::size_t input = 0; input < layer.inputs.size(); ++input) {
      const Shape& shape = network_.layer(layer.inputs[input]).output;
      std::vector<double>& gradient = gradients_[static_cast<std::size_t>(layer.inputs[input])];
      for (int rank = 0; rank < grid_of(consumer).grid.ranks(); ++rank) {
        if (representative(consumer, input, rank) != rank) continue;
        for_each_element(of(consumer).inputs[input].region(rank), [&](const Element& element) {
          gradient[position_in(whole(shape), wrapped(shape, element))] +=
              contribution(consumer, input, rank, element);
        });
      }
    }
  }

  const Network& network_;
  const LayerDecompositions& decompositions_;
  std::vector<LayerDistributions> distributions_;
  std::vector<std::vector<double>> gradients_;  ///< per layer, over its whole output
};

}  // namespace stratplan::test
