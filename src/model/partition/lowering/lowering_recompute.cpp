// Recomputation of outputs that were not kept for the backward phase. The ops of the forward phase
// run again and write new buffers. So backward passes find their inputs as usual, and the lifetimes
// of buffers need no special case.
#include "model/partition/layers/backward_reads.hpp"
#include "model/partition/lowering/lowering.hpp"

namespace stratplan {

void Lowering::bring_again(LayerIndex consumer, std::size_t input) {
  State& to = state(consumer);
  const LayerIndex producer = layer(consumer).inputs[input];
  if (state(producer).head == to.head || !recomputation_.dropped(producer)) return;
  if (!to.brought_again.insert(input).second) return;
  if (reads_input_layer(consumer, input)) return edge_forward(producer, consumer, input);
  if (!state(producer).placed) {  // a buffer that no op writes, as in lower_fusion()
    to.needed[input] = add_buffer("x", TensorClass::Activation,
                                  to.distributions.inputs[input].region(to.rank), consumer);
    return;
  }
  make_again(state(producer).head);
  edge_forward(producer, consumer, input);
}

void Lowering::make_again(LayerIndex head) {
  State& at = state(head);
  if (!recomputation_.dropped(at.fusion.last()) || at.recomputed) return;
  at.recomputed = true;
  for (const LayerIndex index : at.fusion.layers())
    for (std::size_t input = 0; input < layer(index).inputs.size(); ++input)
      bring_again(index, input);
  layer_forward(at.fusion.last());
}

/// Recomputes the tensors that a fusion's backward passes read, just before the first of these
/// passes.
void Lowering::make_ready_for_backward(LayerIndex head) {
  if (execution_.recompute.empty()) return;
  const LayerIndex last = state(head).fusion.last();
  for (const LayerIndex index : state(head).fusion.layers()) {
    if (!backward_reads(network_, index).inputs) continue;
    for (std::size_t input = 0; input < layer(index).inputs.size(); ++input)
      bring_again(index, input);
  }
  if (backward_reads(network_, last).output) make_again(head);
}

}  // namespace stratplan
