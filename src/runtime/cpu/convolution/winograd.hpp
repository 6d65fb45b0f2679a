#pragma once
// Convolutions with 3 x 3 windows of stride 1 along H and W, in all three passes, by Winograd's
// minimal filtering, with a quarter of the multiplications. Windows may also extend along D.
// Products of the taps along D are summed in the transformed domain, so 3 x 3 x 3 windows gain as
// much.
#include "runtime/cpu/kernels.hpp"

namespace stratplan::cpu {

/// Whether the transforms apply. They require windows of 3 x 3 along H and W with stride 1,
/// dilation 1 and at most 2 elements of padding before x. Channels and filters must be multiples of
/// 16.
bool suits_winograd(const Kernel& kernel);
/// Prepares any of the three passes. Requires suits_winograd(kernel) and one group.
std::unique_ptr<HostKernel> make_winograd(const Kernel& kernel);

}  // namespace stratplan::cpu
