#pragma once
// Own kernels are written once, as functions of an index that run anywhere: on a device each index
// is a thread, in the tests a turn of a loop. A kernel asks one thing of its Launch, the place
// where it runs: to call a function for all indices below a count, and to finish before the next
// such call begins:
//
//   template <class Launch>
//   void relu(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
//     const float* x = call.read(0);
//     float* y = call.write(0);
//     launch(kernel.y.elements(),
//            [x, y] SP_DEVICE(std::int64_t i) { y[i] = x[i] > 0 ? x[i] : 0; });
//   }
//
// Indices run in any order, so their writes must not overlap. Sums are taken in parts, in a fixed
// order, so that the results are equal each time. Neighbouring indices touch neighbouring channels,
// which lie side by side in memory (strips.hpp, places.hpp, elements.hpp).
#include <cstdint>

#ifdef __CUDACC__
#define SP_DEVICE __host__ __device__
#else
#define SP_DEVICE
#endif
/// Put before loops over memory, so that several loads are in flight at once.
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
