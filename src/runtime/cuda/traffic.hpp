#pragma once
// Emulated traffic consists of copies that act like the kernels of a communication library
// (kernels/support/traffic.hpp).
#include <cuda_runtime_api.h>

#include "runtime/device/emulated_traffic.hpp"

namespace stratplan {

/// Enqueues the copies. `clock`: cycles per second of the multiprocessors, above 0. Requires that
/// both buffers, of `buffer` bytes each, are aligned to 16 bytes.
void enqueue_traffic(const EmulatedTraffic& traffic, void* to, const void* from, Bytes buffer,
                     double clock, cudaStream_t stream);

}  // namespace stratplan
