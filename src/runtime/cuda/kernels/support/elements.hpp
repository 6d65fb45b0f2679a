#pragma once
// Applies a function to each element of tensors of one shape, four elements per index. T is the
// type in which the tensors are stored. The function reads and writes floats.
#include "runtime/cuda/kernels/support/pack.hpp"
#include "runtime/device/kernel_call.hpp"

namespace stratplan::cuda_kernels {

template <class T, int reads, int writes>
struct Streams {
  const T* from[reads];
  T* to[writes];

  bool are_aligned() const {
    bool all = true;
    for (const T* address : from) all = all && aligned({address});
    for (const T* address : to) all = all && aligned({address});
    return all;
  }
};

template <class T, int reads, int writes, class Function>
struct ElementWork {
  Streams<T, reads, writes> streams;
  std::int64_t count;
  bool packed;
  Function function;

  SP_DEVICE void operator()(std::int64_t i) const {
    const std::int64_t first = i * pack_width;
    if (packed && first + pack_width <= count) return pack_at(first);
    for (std::int64_t element = first; element < first + pack_width && element < count; ++element)
      element_at(element);
  }
  SP_DEVICE void pack_at(std::int64_t first) const {
    Pack<float, pack_width> in[reads], out[writes];
    for (int r = 0; r < reads; ++r) in[r] = load<pack_width>(streams.from[r] + first);
    for (int k = 0; k < pack_width; ++k) {
      float x[reads], y[writes];
      for (int r = 0; r < reads; ++r) x[r] = in[r][k];
      function(x, y);
      for (int w = 0; w < writes; ++w) out[w][k] = y[w];
    }
    for (int w = 0; w < writes; ++w) store(streams.to[w] + first, out[w]);
  }
  SP_DEVICE void element_at(std::int64_t element) const {
    float x[reads], y[writes];
    for (int r = 0; r < reads; ++r) x[r] = streams.from[r][element];
    function(x, y);
    for (int w = 0; w < writes; ++w) streams.to[w][element] = T(y[w]);
  }
};

/// Calls function(const float (&x)[reads], float (&y)[writes]) for each of `count` elements. A
/// tensor may be both read and written.
template <class T, int reads, int writes, class Launch, class Function>
void for_elements(const Launch& launch, std::int64_t count,
                  const Streams<T, reads, writes>& streams, const Function& function) {
  launch((count + pack_width - 1) / pack_width,
         ElementWork<T, reads, writes, Function>{streams, count, streams.are_aligned(), function});
}

template <class Function>
struct OfOne {
  Function function;
  SP_DEVICE void operator()(const float (&x)[1], float (&y)[1]) const { y[0] = function(x[0]); }
};
template <class Function>
struct OfTwo {
  Function function;
  SP_DEVICE void operator()(const float (&x)[2], float (&y)[1]) const {
    y[0] = function(x[0], x[1]);
  }
};

/// write(0)[i] = function(read(0)[i])
template <class T, class Launch, class Function>
void map(const Kernel& kernel, const KernelCall& call, const Launch& launch,
         const Function& function) {
  for_elements<T, 1, 1>(launch, kernel.y.elements(), {{call.read<T>(0)}, {call.write<T>(0)}},
                        OfOne<Function>{function});
}
/// write(0)[i] = function(read(0)[i], read(1)[i])
template <class T, class Launch, class Function>
void map2(const Kernel& kernel, const KernelCall& call, const Launch& launch,
          const Function& function) {
  for_elements<T, 2, 1>(launch, kernel.y.elements(),
                        {{call.read<T>(0), call.read<T>(1)}, {call.write<T>(0)}},
                        OfTwo<Function>{function});
}

}  // namespace stratplan::cuda_kernels
