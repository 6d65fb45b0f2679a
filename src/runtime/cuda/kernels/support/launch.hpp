#pragma once
// Kernels of our own are written once, as functions of an index that may run anywhere: on a device
// each index is a thread's, in the tests a loop's. What a kernel needs of the place where it runs
// is to have such a function called for all indices below a count, and one such call after the
// other:
//
//   template <class Launch> void pointwise_forward(const Kernel& kernel, const KernelCall& call,
//   const Launch& launch) {
//     const float* x = call.read(0);
//     float* y = call.write(0);
//     launch(kernel.y.elements(), [x, y] SP_DEVICE(std::int64_t i) { y[i] = x[i] > 0 ? x[i] : 0;
//   });
//   }
//
// Indices run in any order, so what they write must not overlap; sums are taken in parts, in a
// fixed order, so that they come out equal each time. Neighbouring indices touch neighbouring
// channels, which lie side by side in memory (strips.hpp, places.hpp, elements.hpp).
#include <cstdint>

#ifdef __CUDACC__
#define SP_DEVICE __host__ __device__
#else
#define SP_DEVICE
#endif
/// Before loops over memory: several loads are on their way at once.
#ifdef __CUDA_ARCH__
#define SP_UNROLL _Pragma("unroll 4")
#else
#define SP_UNROLL
#endif

namespace stratplan::cuda_kernels {

/// One index after the other, on the host.
struct SerialLaunch {
  template <class Work>
  void operator()(std::int64_t count, Work work) const {
    for (std::int64_t i = 0; i < count; ++i) work(i);
  }
};

}  // namespace stratplan::cuda_kernels
