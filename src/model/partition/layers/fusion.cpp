#include "model/partition/layers/fusion.hpp"

namespace stratplan {
namespace {

/// Whether the last kernel that writes a contraction's output can also apply an activation. Only
/// the kernel of a convolution and the kernel that adds the bias can do so.
bool ends_in_kernel(const Layer& layer, const Decomposition& decomposition) {
  if (layer.bias()) return true;
  const bool partial = layer.mixes_channels() && decomposition.grid.parts(Dim::C) > 1;
  return layer.kind != LayerKind::TransposedConvolution && !partial;
}

/// Whether the last kernel of a normalization can also add a tensor and apply an activation.
bool has_epilogue(const Layer& layer) {
  return has_statistics(layer.kind) && layer.kind != LayerKind::LayerNorm;
}

/// Whether the kernels of `fusion` can also compute the layer behind the fusion. Its gradient must
/// be needed where the fusion's is.
bool takes(const Network& network, const Fusion& fusion, const Decomposition& of_head,
           LayerIndex behind) {
  const Layer &head = network.layer(fusion.head), &next = network.layer(behind);
  if (fusion.activation >= 0) return false;
  if (network.needs_gradient(fusion.head) != network.needs_gradient(behind)) return false;
  if (next.kind == LayerKind::Add)
    return has_epilogue(head) && fusion.add < 0 && next.inputs.size() == 2;
  if (!activation_of(next)) return false;
  return has_epilogue(head) || (is_contraction(head.kind) && ends_in_kernel(head, of_head));
}

bool same_place(const Decomposition& a, const Decomposition& b) {
  return a.grid == b.grid && a.ranks == b.ranks;
}

}  // namespace

std::vector<LayerIndex> Fusion::layers() const {
  std::vector<LayerIndex> layers{head};
  if (add >= 0) layers.push_back(add);
  if (activation >= 0) layers.push_back(activation);
  return layers;
}

std::optional<Activation> activation_of(const Layer& layer) {
  const auto* own = std::get_if<Activation>(&layer.attributes);
  return own && own->fused_slope() ? std::optional(*own) : std::nullopt;
}

std::vector<Fusion> fuse(const Network& network, const Block& block,
                         const std::vector<Decomposition>& decompositions,
                         const Execution& execution) {
  std::vector<Fusion> fusions;
  std::size_t head = 0;  // position of the last fusion's head in the block
  for (std::size_t i = 0; i < block.layers.size(); ++i) {
    const LayerIndex index = block.layers[i];
    const bool inherits =
        i > 0 && same_place(decompositions[i],
                            inherited(network.layer(block.layers[i - 1]), decompositions[i - 1]));
    if (execution.fuse && inherits && takes(network, fusions.back(), decompositions[head], index)) {
      (network.layer(index).kind == LayerKind::Add ? fusions.back().add
                                                   : fusions.back().activation) = index;
    } else {
      fusions.push_back({index});
      head = i;
    }
  }
  return fusions;
}

std::vector<Fusion> fuse_all(const Network& network, const LayerDecompositions& decompositions,
                             const Execution& execution) {
  std::vector<Fusion> all;
  for (const Block& block : fold(network)) {
    std::vector<Decomposition> of_block;
    for (const LayerIndex index : block.layers)
      of_block.push_back(decompositions[static_cast<std::size_t>(index)]);
    for (const Fusion& fusion : fuse(network, block, of_block, execution)) all.push_back(fusion);
  }
  return all;
}

}  // namespace stratplan
