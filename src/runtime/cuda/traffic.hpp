#pragma once
// Copies that play the part of a communication library's kernels (own/traffic.hpp).
#include <cuda_runtime_api.h>

#include "runtime/device/backend.hpp"

namespace stratplan {

/// Enqueues them. `clock`: cycles per second of the multiprocessors, above 0. Both buffers are
/// aligned to 16 bytes.
void enqueue_traffic(const EmulatedTraffic& traffic, void* to, const void* from, Bytes buffer,
                     double clock, cudaStream_t stream);

}  // namespace stratplan
