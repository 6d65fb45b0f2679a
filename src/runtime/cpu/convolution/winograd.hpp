#pragma once
// Convolutions with 3 x 3 windows of stride 1 along H and W, all three passes, by Winograd's
// minimal filtering: a quarter of the multiplications. A window along D is summed over in the
// transformed domain, so 3 x 3 x 3 windows gain as much.
#include "runtime/cpu/kernels.hpp"

namespace stratplan::cpu {

/// Whether the transforms apply: 3 x 3 taps side by side, stride 1, channels and filters in
/// sixteens.
bool suits_winograd(const Kernel& kernel);
std::unique_ptr<HostKernel> make_winograd(const Kernel& kernel);

}  // namespace stratplan::cpu
