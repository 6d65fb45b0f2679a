// Gradients in F16 have little room below: the loss is multiplied by a scale, so that all gradients are, and those of parameters divided by it behind their
// reductions. If one of them has overflowed on any rank, all ranks leave the step out and the scale is lowered; nothing of this waits for the host.
#include <numeric>

#include "model/partition/lowering.hpp"
#include "model/partition/parameter_buffers.hpp"

namespace stratplan {

void Lowering::add_loss_scale() {
  if (scales_loss())
    program.loss_scale = add_flat("loss scale", TensorClass::OptimizerState, 2, -1, DataType::F64);
}

/// Of what this rank keeps of them; ranks that hold different parameters tell each other whether there were overflows. What there is
/// once of this is counted with the loss, where layers are lowered alone.
void Lowering::unscale_gradients() {
  if (!scales_loss()) return;
  overflows_ = add_flat("overflows", TensorClass::Statistics, 1, -1, DataType::F64);
  const bool once = program.loss >= 0;
  Kernel none = flat_kernel(KernelKind::Fill, 1);
  none.type = DataType::F64;
  if (once) add_kernel(-1, none, {}, {overflows_});
  for (const ReductionGroup& group : groups_) {
    const BufferId gradient = shares(group, 2) ? group.gradient_share : group.gradient;
    add_kernel(-1, flat_kernel(KernelKind::Unscale, program.buffer(gradient).region.elements()),
               {gradient, program.loss_scale, overflows_}, {gradient, overflows_});
  }
  if (!once) return;
  std::vector<int> ranks(static_cast<std::size_t>(program.ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  add_collective(-1, Track::Gradient,
                 {Collective::AllReduce, std::move(ranks), DataType::F64, 0, 1, {}}, overflows_,
                 overflows_);
}

void Lowering::add_update(LayerIndex index, Kernel kernel, std::vector<BufferId> reads,
                          std::vector<BufferId> writes) {
  kernel.scaled = overflows_ >= 0;
  if (kernel.scaled) reads.push_back(overflows_);
  add_kernel(index, std::move(kernel), std::move(reads), std::move(writes));
}

void Lowering::adjust_loss_scale() {
  if (overflows_ >= 0 && program.loss >= 0)
    add_kernel(-1, flat_kernel(KernelKind::AdjustLossScale, 1), {program.loss_scale, overflows_},
               {program.loss_scale});
}

}  // namespace stratplan
