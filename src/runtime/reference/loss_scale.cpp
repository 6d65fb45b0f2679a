// Loss scaling. Gradients in F16 vanish below 2^-24. So the loss is multiplied by a scale before
// the backward phase. Gradients of parameters, which are floats, are divided by the scale
// afterwards. A scale that is too large makes gradients infinite or NaN, and the update of that
// step is skipped (Micikevicius et al., "Mixed precision training", ICLR 2018).
#include <cmath>

#include "runtime/device/loss_scaling.hpp"
#include "runtime/reference/kernels.hpp"

namespace stratplan::reference {

void unscale(const Kernel& kernel, const KernelCall& call) {
  const float* gradient = call.read(0);
  const double scale = call.read<double>(1)[0];
  double overflows = *call.read<double>(2);
  for (std::int64_t i = 0; i < kernel.y.elements(); ++i) {
    overflows += std::isfinite(gradient[i]) ? 0 : 1;
    call.write(0)[i] = static_cast<float>(gradient[i] / scale);
  }
  *call.write<double>(1) = overflows;
}

void adjust_loss_scale(const Kernel&, const KernelCall& call) {
  const LossScaling next = adjusted({call.read<double>(0)[0], call.read<double>(0)[1]},
                                    *call.read<double>(1) > 0, call.context.scale_growth_steps);
  call.write<double>(0)[0] = next.scale;
  call.write<double>(0)[1] = next.steps;
}

}  // namespace stratplan::reference
