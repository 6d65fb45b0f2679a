#pragma once
// A convolution as its definition says, in threads: for the few forms that the library refuses,
// such as windows that leave more than a stride of x unread.
#include "runtime/cpu/kernels.hpp"

namespace stratplan::cpu {

/// Any of the three passes, in any number of groups.
std::unique_ptr<HostKernel> make_plain_convolution(const Kernel& kernel);

}  // namespace stratplan::cpu
