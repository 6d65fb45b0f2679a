#pragma once
// The lives of tensors under a framework that runs a program op by op, such as PyTorch. The
// framework keeps for the backward phase what Software::kept says, frees a tensor after its last
// use, and rounds each tensor's size.
#include <vector>

#include "model/machine/software.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

/// A tensor that lives from one op of a step to another.
struct Life {
  TensorClass tensor_class = TensorClass::Activation;
  Bytes bytes{};
  int first = 0, last = 0;  ///< indices in Program::ops
  bool kept = false;        ///< an activation for which a backward phase waits
};

/// Returns the lives of all tensors that do not stay from step to step. Requires that
/// Software::kept is not empty and that plan_buffers() has run.
std::vector<Life> framework_lives(const Program& program, const Software& software, bool on_gpus);

/// Whether a persistent buffer stays from step to step. Frameworks may free gradients.
bool stays(const Buffer& buffer, const Software& software);

/// Returns the bytes that an allocator hands out for a tensor.
Bytes rounded(Bytes bytes, const Software& software);

}  // namespace stratplan
