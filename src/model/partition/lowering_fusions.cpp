// Layers that are done together: normalizations and contractions with what they are fused with.
#include <fmt/format.h>

#include "model/base/assert.hpp"
#include "model/partition/lowering.hpp"

namespace stratplan {

/// Of the last layer of a fusion.
BufferId Lowering::add_output(LayerIndex head) {
  const LayerIndex last = state(head).fusion.last();
  const Region region = state(last).distributions.home.owned(program.rank);
  return state(last).home =
             add_buffer(layer(last).name + ".y", TensorClass::Activation, region, last);
}

void Lowering::activate(const Fusion& fusion, Kernel& kernel) const {
  if (fusion.activation >= 0) kernel.activation = activation_of(layer(fusion.activation));
}

/// Which input of the addition is not the head's output.
std::size_t Lowering::addend(const Fusion& fusion) const {
  return layer(fusion.add).inputs.front() == fusion.head ? 1 : 0;
}

/// The kernel that writes the output of a normalization or of the last layer that it is fused with.
void Lowering::finish_normalization(LayerIndex head, Kernel kernel, std::vector<BufferId> reads) {
  const Fusion& fusion = state(head).fusion;
  activate(fusion, kernel);
  kernel.addend = fusion.add >= 0;
  if (kernel.addend) reads.push_back(state(fusion.add).needed[addend(fusion)]);
  add_kernel(head, kernel, std::move(reads), {add_output(head)});
}

/// `dy` is the gradient of the last layer's output. What is added needs the gradient behind the activation as a tensor, so the first pass writes it;
/// otherwise both passes make it as they read.
void Lowering::backward_normalization(LayerIndex index, BufferId dy) {
  using What = ParameterSlice::What;
  const State& at = state(index);
  const Fusion& fusion = at.fusion;
  const SetGroup group = statistics_sets(index);
  Kernel kernel = kernel_of(index, KernelKind::BatchNormBackwardSums);
  kernel.sets = group.sets;
  activate(fusion, kernel);
  const BufferId x = at.needed.front();
  const BufferId sums = add_flat("d " + layer(index).name + ".sums", TensorClass::Statistics,
                                 group.sets.sets * 2 * kernel.x[Axis::C], index, DataType::F64);
  std::vector<BufferId> reads{x, dy, at.sums},
      writes{sums, parameter(index, What::Scale).gradient, parameter(index, What::Shift).gradient};
  if (kernel.activation) {
    reads.push_back(state(fusion.activation).home);
    kernel.addend = fusion.add >= 0;
    if (kernel.addend) writes.push_back(input_gradient(fusion.activation, 0));
  }
  add_kernel(index, kernel, reads, writes);
  if (kernel.addend) {
    dy = writes.back();
    kernel.activation = {};
    kernel.addend = false;
  }
  if (fusion.add >= 0 && !reads_input_layer(fusion.add, addend(fusion)))
    pass_back(fusion.add, addend(fusion), dy);
  if (!reads_input_layer(index, 0)) {
    CollectiveStep collective{Collective::AllReduce,
                              group.ranks,
                              DataType::F64,
                              0,
                              program.buffer(sums).region.elements(),
                              {}};
    add_collective(index, Track::Halo, std::move(collective), sums, sums);
    const BufferId dx = input_gradient(index, 0);
    kernel.kind = KernelKind::BatchNormBackward;
    reads = {x, dy, at.sums, sums, value_of(index, What::Scale)};
    if (kernel.activation) reads.push_back(state(fusion.activation).home);
    add_kernel(index, kernel, std::move(reads), {dx});
    pass_back(index, 0, dx);
  }
  for (const std::size_t p : at.parameters) gradient_complete(program.parameters[p]);
}

/// Of a contraction: the gradient of its bias, if it has one, and with it the one in front of the activation, from which the other gradients go on.
BufferId Lowering::backward_bias(LayerIndex index, BufferId dy) {
  const LayerIndex activation = state(index).fusion.activation;
  const BufferId before = activation < 0 ? dy : input_gradient(activation, 0);
  if (layer(index).bias) {
    Kernel kernel;
    kernel.kind = KernelKind::BiasGradient;
    kernel.x = kernel.y = program.buffer(dy).region.shape();
    activate(state(index).fusion, kernel);
    std::vector<BufferId> reads{dy}, writes{parameter(index, ParameterSlice::What::Bias).gradient};
    if (activation >= 0) {
      reads.push_back(state(activation).home);
      writes.push_back(before);
    }
    add_kernel(index, kernel, std::move(reads), std::move(writes));
  } else if (activation >= 0) {
    add_kernel(activation, kernel_of(activation, KernelKind::PointwiseBackward),
               {state(activation).home, dy}, {before});
  }
  return before;
}

}  // namespace stratplan
