#pragma once
// The handles of cuDNN. A handle belongs to one device, enqueues on one stream and must not be used
// by two threads at once. Creating a handle takes time and device memory, so handles are kept until
// the process ends.
#include <cuda_runtime_api.h>

#include <functional>

#include "runtime/cuda/cudnn/device_properties.hpp"

namespace stratplan::cudnn {

/// Returns the handle that enqueues on this stream. The first call for a stream creates the handle,
/// so the first call must not happen while the stream is captured into a graph.
cudnnHandle_t handle_of(cudaStream_t stream);

/// Calls `make` with the current device as the target. Only one thread at a time runs `make`.
/// Throws EnvironmentError if there is no device.
void plan_for_present_device(const std::function<void(const Target&)>& make);

}  // namespace stratplan::cudnn
