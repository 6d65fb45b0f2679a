// Layers that put their inputs somewhere in their output: concatenation and zero padding. Forward, each input is copied to its place and zeros fill the
// rest; backward, each takes the gradient of its place. A rank whose block holds nothing of an input has nothing to copy.
#include "model/partition/lowering.hpp"

namespace stratplan {

void Lowering::forward_placement(LayerIndex index) {
  State& at = state(index);
  const Region home = at.distributions.home.owned(program.rank);
  at.home = add_buffer(layer(index).name + ".y", TensorClass::Activation, home, index);
  std::int64_t placed = 0;
  for (const Needed& input : at.distributions.inputs)
    placed += input.region(program.rank).elements();
  if (placed < home.elements()) {
    Kernel fill;
    fill.kind = KernelKind::Fill;
    fill.type = program.buffer(at.home).type;
    fill.x = fill.y = home.shape();
    add_kernel(index, fill, {}, {at.home});
  }
  for (std::size_t input = 0; input < at.needed.size(); ++input) {
    const Region region = at.distributions.inputs[input].region(program.rank);
    if (!region.empty())
      copy(index, at.needed[input], region, at.home, moved(region, layer(index).origin(input)),
           false);
  }
}

void Lowering::backward_placement(LayerIndex index, BufferId dy) {
  for (std::size_t input = 0; input < layer(index).inputs.size(); ++input) {
    if (reads_input_layer(index, input)) continue;
    const BufferId dx = input_gradient(index, input);
    const Region region = program.buffer(dx).region;
    if (!region.empty())
      copy(index, dy, moved(region, layer(index).origin(input)), dx, region, false);
    pass_back(index, input, dx);
  }
}

}  // namespace stratplan
