#pragma once
// The kernels of this folder are written once, as functions of an index. On a device, each index is
// a thread. In the tests, each index is an iteration of a loop on the host. A kernel's Launch
// stands for the place where the kernel runs. A Launch has one operation: to call a function for
// all indices below a count, and to finish before the next launch begins. An example:
//
//   template <class Launch>
//   void relu(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
//     const float* x = call.read(0);
//     float* y = call.write(0);
//     launch(kernel.y.elements(),
//            [x, y] SP_DEVICE(std::int64_t i) { y[i] = x[i] > 0 ? x[i] : 0; });
//   }
//
// Indices run in any order, so the writes of different indices must not overlap. Sums are taken in
// parts, in a fixed order, so that the results are the same in each run. Neighbouring indices
// access neighbouring channels, which are adjacent in memory (strips.hpp, places.hpp,
// elements.hpp).
#include <cstdint>

#ifdef __CUDACC__
#define SP_DEVICE __host__ __device__
#else
#define SP_DEVICE
#endif
/// Unrolls the loop behind it, which goes over memory, so that several loads are in flight at once.
#ifdef __CUDA_ARCH__
#define SP_UNROLL _Pragma("unroll 4")
#else
#define SP_UNROLL
#endif

namespace stratplan::cuda_kernels {

/// Runs one index after the other, on the host.
struct SerialLaunch {
  template <class Work>
  void operator()(std::int64_t count, Work work) const {
    for (std::int64_t i = 0; i < count; ++i) work(i);
  }
};

}  // namespace stratplan::cuda_kernels
