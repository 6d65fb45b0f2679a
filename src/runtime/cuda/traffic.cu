#include "runtime/cuda/traffic.hpp"

#include "runtime/cuda/check.hpp"
#include "runtime/cuda/kernels/support/traffic.hpp"

namespace stratplan {
namespace {

using cuda_kernels::TrafficPlan;
using Words = cuda_kernels::Pack<float, cuda_kernels::pack_width>;

struct ProcessorClock {
  __device__ std::int64_t operator()() const { return clock64(); }
};

/// Copies memory at a limited rate. Thread blocks never wait for each other, so the kernel cannot
/// deadlock on a device that cannot run all of them at once.
__global__ void __launch_bounds__(TrafficPlan::threads)
    copy_beside(TrafficPlan plan, Words* to, const Words* from) {
  cuda_kernels::copy_pieces(plan, static_cast<int>(blockIdx.x), static_cast<int>(threadIdx.x), to,
                            from, ProcessorClock{});
}

}  // namespace

void enqueue_traffic(const EmulatedTraffic& traffic, void* to, const void* from, Bytes buffer,
                     double clock, cudaStream_t stream) {
  const TrafficPlan plan(traffic, buffer, clock);
  copy_beside<<<static_cast<unsigned>(plan.blocks), TrafficPlan::threads, 0, stream>>>(
      plan, static_cast<Words*>(to), static_cast<const Words*>(from));
  check_cuda(cudaGetLastError(), "launching emulated traffic");
}

}  // namespace stratplan
