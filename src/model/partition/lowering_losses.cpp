// Losses: what they compare with, their value on every rank, and the gradient of what they read.
#include "model/base/assert.hpp"
#include "model/partition/lowering.hpp"

namespace stratplan {

/// Loss and its gradient at once; each term counts once, so the local sums are added over all ranks but the redundant ones.
void Lowering::forward_loss(LayerIndex index) {
  State& at = state(index);
  const Layer& loss = layer(index);
  const bool classes = has_labels(loss.kind);
  Region region = program.buffer(at.needed.front()).region;
  Shape global = loss.input;
  at.loss_gradient = add_buffer("d " + loss.name, TensorClass::ActivationGradient, region, index);
  if (classes) {
    region[Axis::C] = {0, 1};
    global[Axis::C] = 1;
  }
  const BufferId wanted =
      add_buffer(loss.name + (classes ? ".labels" : ".target"), TensorClass::Activation, region,
                 index, classes ? DataType::I32 : DataType::F32);
  load(index, classes ? LoadStep::What::Labels : LoadStep::What::Targets, wanted, region, global,
       loss.input[Axis::C]);
  const BufferId sum = add_flat("loss", TensorClass::Statistics, 1, index, DataType::F64);
  if (micro_batch_ == 0) program.loss = sum;
  if (loss.kind == LayerKind::DiceLoss) return forward_dice(index, wanted);
  add_loss(
      index,
      kernel_of(index, classes ? KernelKind::SoftmaxCrossEntropy : KernelKind::MeanSquaredError),
      {at.needed.front(), wanted}, {sum, at.loss_gradient});
  if (micro_batch_ > 0) copy(index, sum, program.loss, program.buffer(sum).region, true);
  if (last_micro_batch())
    all_reduce_over(index, {Dim::N, Dim::F, Dim::C, Dim::D, Dim::H, Dim::W}, program.loss);
}

/// A quotient of sums over all samples and positions: every rank has them before it makes the loss, which is then the same everywhere, and its gradient.
void Lowering::forward_dice(LayerIndex index, BufferId labels) {
  SP_ASSERT(micro_batch_ == 0 && last_micro_batch(), "layer {}: its sums run over the whole batch",
            layer(index).name);
  State& at = state(index);
  at.sums = add_flat(layer(index).name + ".sums", TensorClass::Statistics,
                     3 * layer(index).input[Axis::C], index, DataType::F64);
  add_kernel(index, kernel_of(index, KernelKind::DiceSums), {at.needed.front(), labels}, {at.sums});
  all_reduce_over(index, {Dim::N, Dim::D, Dim::H, Dim::W}, at.sums);
  add_loss(index, kernel_of(index, KernelKind::DiceLoss), {labels, at.sums},
           {program.loss, at.loss_gradient});
}

}  // namespace stratplan
