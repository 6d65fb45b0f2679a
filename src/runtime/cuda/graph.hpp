#pragma once
// A CUDA graph: what streams were given during a capture, launched as one.
#include <cuda_runtime_api.h>

#include <functional>

#include "runtime/device/backend.hpp"

namespace stratplan {

/// Threads other than the one that captures may do what they like
/// (cudaStreamCaptureModeThreadLocal): NCCL enqueues from its own, and other ranks may be threads.
class Graph final : public CapturedWork {
 public:
  /// Of what `enqueue` puts on `stream`, and on streams that wait for it and that it waits for in
  /// the end. Throws EnvironmentError, and what `enqueue` throws; the streams are as before then.
  Graph(cudaStream_t stream, const std::function<void()>& enqueue);
  ~Graph() override { cudaGraphExecDestroy(ready_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch(cudaStream_t stream) const;

 private:
  cudaGraphExec_t ready_ = nullptr;
};

}  // namespace stratplan
