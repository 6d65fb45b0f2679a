#pragma once
// A CUDA graph holds the work that was put on streams during a capture, and launches it as one
// unit.
#include <cuda_runtime_api.h>

#include <functional>

#include "runtime/device/backend.hpp"

namespace stratplan {

/// Captures use cudaStreamCaptureModeThreadLocal, which leaves the CUDA calls of other threads
/// unrestricted. NCCL enqueues from its own threads, and other ranks may be threads of this
/// process.
class Graph final : public CapturedWork {
 public:
  /// Captures the work that `enqueue` puts on `stream`. Work on another stream is captured too, if
  /// that stream waits for `stream` first and `stream` waits for it last. Throws EnvironmentError
  /// if the capture fails, and rethrows exceptions of `enqueue`. After an exception the streams are
  /// as before the call.
  Graph(cudaStream_t stream, const std::function<void()>& enqueue);
  ~Graph() override { cudaGraphExecDestroy(ready_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch(cudaStream_t stream) const;

 private:
  cudaGraphExec_t ready_ = nullptr;
};

}  // namespace stratplan
