#include "runtime/cuda/graph.hpp"

#include <memory>
#include <type_traits>

#include "runtime/cuda/check.hpp"

namespace stratplan {
namespace {

using Captured = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>,
                                 decltype([](cudaGraph_t graph) { cudaGraphDestroy(graph); })>;

/// Ends the capture. Returns null if the capture has failed. A failed capture ends too.
Captured end_capture(cudaStream_t stream, cudaError_t& status) {
  cudaGraph_t graph = nullptr;
  status = cudaStreamEndCapture(stream, &graph);
  if (status != cudaSuccess) cudaGetLastError();  // clears the error, which is returned in `status`
  return Captured(graph);
}

Captured capture(cudaStream_t stream, const std::function<void()>& enqueue) {
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
             "beginning a capture");
  cudaError_t status = cudaSuccess;
  try {
    enqueue();
  } catch (...) {
    end_capture(stream, status);
    throw;
  }
  Captured graph = end_capture(stream, status);
  check_cuda(status, "ending a capture");
  return graph;
}

}  // namespace

Graph::Graph(cudaStream_t stream, const std::function<void()>& enqueue) {
  const Captured graph = capture(stream, enqueue);
  check_cuda(cudaGraphInstantiate(&ready_, graph.get(), 0), "instantiating a graph");
  // Without this upload, the first launch would upload the graph, and take longer.
  if (const cudaError_t status = cudaGraphUpload(ready_, stream); status != cudaSuccess) {
    cudaGraphExecDestroy(ready_);
    check_cuda(status, "sending a graph to the device");
  }
}

void Graph::launch(cudaStream_t stream) const {
  check_cuda(cudaGraphLaunch(ready_, stream), "launching a graph");
}

}  // namespace stratplan
