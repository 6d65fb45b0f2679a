// Layers that rearrange the elements of a sample: shuffled channels, channels that become
// positions, and positions that become channels.
#include "model/partition/layers/splitting.hpp"

namespace stratplan::layers {
namespace {

using enum KernelKind;

std::optional<std::string> why_not(const Layer& layer, Dim dim, const ProcessGrid& grid) {
  return why_not_but_channels(layer, dim, grid,
                              layer.kind == LayerKind::ChannelShuffle
                                  ? "channels of all groups are shuffled"
                                  : "channels and positions change places");
}

/// All channels of a position are needed, and input and output have different numbers of them.
LayerDistributions distribute_rearranged(const Layer& layer, const Decomposition& decomposition) {
  LayerDistributions made = distribute_alike(layer, decomposition);
  Distribution& iteration = made.inputs.front().iteration;
  Split& channels = iteration.splits[static_cast<std::size_t>(Axis::C)];
  set_roles(iteration, channels.by, Role::Gathered);
  channels = {};
  iteration.shape[Axis::C] = layer.input[Axis::C];
  return made;
}

void forward(const Site& site, PassSink& passes) {
  passes.add(site.run(site.kernel(RearrangeForward), {site.input()}, {site.output()}));
}

void backward(const Site& site, PassSink& passes) {
  site.pass_back(passes, site.kernel(RearrangeBackward), {site.output_gradient()});
}

}  // namespace

const LayerFamily rearrangement{why_not, distribute_rearranged, forward, backward};

}  // namespace stratplan::layers
