#pragma once
// cuDNN's handles. A handle is one device's, enqueues on one stream and must not be used by two
// threads at once; making one takes a while and device memory, so they are made once and never
// given back before the process ends.
#include <cuda_runtime_api.h>

#include <functional>

#include "runtime/cuda/cudnn/device_properties.hpp"

namespace stratplan::cudnn {

/// The handle that enqueues on this stream. The first call for a stream makes it, which must not be
/// while the stream is captured into a graph.
cudnnHandle_t handle_of(cudaStream_t stream);

/// Calls `make` with the present device as target, one thread at a time. Throws EnvironmentError if
/// there is none.
void plan_for_present_device(const std::function<void(const Target&)>& make);

}  // namespace stratplan::cudnn
