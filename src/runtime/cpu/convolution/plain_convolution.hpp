#pragma once
// A convolution by its definition, in plain loops with threads. These loops serve the few forms
// that oneDNN refuses, for example windows that leave more than a stride of x unread.
#include "runtime/cpu/kernels.hpp"

namespace stratplan::cpu {

/// Prepares any of the three passes, with any number of groups.
std::unique_ptr<HostKernel> make_plain_convolution(const Kernel& kernel);

}  // namespace stratplan::cpu
