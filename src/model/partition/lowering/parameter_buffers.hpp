#pragma once
// Flat buffers of parameters: the places of slices in these buffers, and the kernels that run over
// them. Both lower() and the closed-form costs use this file.
#include <cstdint>

#include "model/network/training.hpp"
#include "model/partition/program/kernel.hpp"

namespace stratplan {

/// Slices start at multiples of 64 bytes, which are 16 elements in F32.
inline constexpr std::int64_t slice_elements = 16;
constexpr std::int64_t padded_slice(std::int64_t elements) {
  return (elements + slice_elements - 1) / slice_elements * slice_elements;
}

/// The kind of the optimizer's kernel. For LARS, the kind for tensors with a trust ratio.
KernelKind update_kernel(OptimizerKind optimizer);

}  // namespace stratplan
