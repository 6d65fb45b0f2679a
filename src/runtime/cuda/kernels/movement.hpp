#pragma once
// Packing and unpacking of halos, copies, rearrangements, fills and conversions between types.
// Copies move packs of sixteen bytes where all offsets and lengths are multiples of a pack.
#include "model/partition/program/copy_loops.hpp"
#include "runtime/cuda/kernels/support/divisor.hpp"
#include "runtime/cuda/kernels/support/pack.hpp"
#include "runtime/cuda/kernels/support/places.hpp"
#include "runtime/device/fill_pattern.hpp"
#include "runtime/device/kernel_call.hpp"

namespace stratplan::cuda_kernels {

/// The loops of a copy (model/partition/program/copy_loops.hpp), the innermost first, counted by
/// one index.
struct CopyIndices {
  int depth = 0;
  std::int64_t count = 1;
  Divisor counts[axis_count];
  std::int64_t source_strides[axis_count] = {}, destination_strides[axis_count] = {};

  explicit CopyIndices(const std::vector<CopyLoop>& loops) {
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop, ++depth) {
      count *= loop->count;
      counts[depth] = Divisor(loop->count);
      source_strides[depth] = loop->source_stride;
      destination_strides[depth] = loop->destination_stride;
    }
  }
};

template <class T, int width>
struct CopyWork {
  CopyIndices loops;
  const T* source;
  T* destination;
  bool accumulate;

  SP_DEVICE void operator()(std::int64_t index) const {
    const T* from = source;
    T* to = destination;
    for (int loop = 0; loop < loops.depth; ++loop) {
      const std::int64_t i = loop + 1 < loops.depth ? loops.counts[loop].split(index) : index;
      from += i * loops.source_strides[loop];
      to += i * loops.destination_strides[loop];
    }
    auto value = load<width>(from);
    if (accumulate) {
      const auto before = load<width>(to);
      for (int k = 0; k < width; ++k) value[k] += before[k];
    }
    store(to, value);
  }
};

/// Makes the innermost loop go over packs of `width` elements, if all packs then begin at multiples
/// of a pack. Returns whether the loop was changed.
inline bool in_packs(CopyLoops& copy, std::int64_t width) {
  CopyLoop& inner = copy.loops.back();
  bool fits = inner.source_stride == 1 && inner.destination_stride == 1 &&
              inner.count % width == 0 && copy.source % width == 0 && copy.destination % width == 0;
  for (std::size_t i = 0; i + 1 < copy.loops.size(); ++i)
    fits = fits && copy.loops[i].source_stride % width == 0 &&
           copy.loops[i].destination_stride % width == 0;
  if (!fits) return false;
  inner = {inner.count / width, width, width};
  return true;
}

template <class T, class Launch>
void copy_elements(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  constexpr int width = pack_bytes / static_cast<int>(sizeof(T));
  const bool accumulate = kernel.as<CopyAttributes>().accumulate;
  CopyLoops copy = copy_loops(kernel);
  const bool packed = aligned({call.reads[0], call.writes[0]}) && in_packs(copy, width);
  const CopyIndices loops(copy.loops);
  const T* source = call.read<T>(0) + copy.source;
  T* destination = call.write<T>(0) + copy.destination;
  packed ? launch(loops.count, CopyWork<T, width>{loops, source, destination, accumulate})
         : launch(loops.count, CopyWork<T, 1>{loops, source, destination, accumulate});
}

template <class Launch>
void copy_region(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  if (kernel.as<CopyAttributes>().region.elements() == 0) return;
  switch (kernel.type) {
    case DataType::F32: return copy_elements<float>(kernel, call, launch);
    case DataType::F64: return copy_elements<double>(kernel, call, launch);
    case DataType::I32: return copy_elements<std::int32_t>(kernel, call, launch);
    case DataType::F16: return copy_elements<Float16>(kernel, call, launch);
    case DataType::BF16: return copy_elements<Bfloat16>(kernel, call, launch);
  }
}

/// Writes a pattern. Each index writes pack_bytes bytes.
struct FillWork {
  char* to;
  std::int64_t bytes;
  bool packed;
  float pattern[pack_width];

  SP_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t first = index * pack_bytes;
    if (packed && first + pack_bytes <= bytes) {
      Pack<float, pack_width> pack;
      for (int i = 0; i < pack_width; ++i) pack[i] = pattern[i];
      return store(reinterpret_cast<float*>(to + first), pack);
    }
    const char* from = reinterpret_cast<const char*>(pattern);
    for (int i = 0; i < pack_bytes && first + i < bytes; ++i) to[first + i] = from[i];
  }
};
template <class Launch>
void fill(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const std::int64_t bytes = kernel.y.elements() * size_of(kernel.type);
  FillWork work{call.write<char>(0), bytes, aligned({call.writes[0]}), {}};
  const FillPattern pattern = fill_pattern(kernel);
  static_assert(sizeof(pattern.bytes) == pack_bytes);
  std::memcpy(work.pattern, pattern.bytes.data(), pack_bytes);
  launch((bytes + pack_bytes - 1) / pack_bytes, work);
}

template <class From, class To>
struct ConvertWork {
  const From* from;
  To* to;
  std::int64_t count;
  bool packed;

  SP_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t first = index * pack_width;
    if (packed && first + pack_width <= count)
      return store(to + first, load<pack_width>(from + first));
    for (std::int64_t i = first; i < first + pack_width && i < count; ++i) to[i] = To(from[i]);
  }
};
template <class From, class To, class Launch>
void convert_all(std::int64_t count, const KernelCall& call, const Launch& launch) {
  const ConvertWork<From, To> work{call.read<From>(0), call.write<To>(0), count,
                                   aligned({call.reads[0], call.writes[0]})};
  launch((count + pack_width - 1) / pack_width, work);
}
template <class Launch>
void convert(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  kernel.type == DataType::F16 ? convert_all<float, Float16>(kernel.y.elements(), call, launch)
                               : convert_all<float, Bfloat16>(kernel.y.elements(), call, launch);
}
template <class Launch>
void widen(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  kernel.type == DataType::F16 ? convert_all<Float16, float>(kernel.y.elements(), call, launch)
                               : convert_all<Bfloat16, float>(kernel.y.elements(), call, launch);
}

/// Writes each element from its origin (model/network/functions/rearrangement.hpp).
template <class T>
struct RearrangeWork {
  Rearrangement by;
  bool backward;
  Shape written, read;
  const T* from;
  T* to;

  template <int width>
  SP_DEVICE void run(const Place& at) const {
    for (int k = 0; k < width; ++k) {
      const Origin origin =
          origin_of(by, backward, written, read, at.channel + k, {at.d, at.h, at.w});
      const auto& [d, h, w] = origin.position;
      to[at.element + k] =
          origin.inside ? from[row_of(read, at.n, d, h, w) + origin.channel] : T(0.0F);
    }
  }
};
template <class T, class Launch>
void rearrange(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const bool backward = kernel.kind == KernelKind::RearrangeBackward;
  const Shape &written = backward ? kernel.x : kernel.y, &read = backward ? kernel.y : kernel.x;
  T* to = call.write<T>(0);
  for_places(
      launch, written, {to},
      RearrangeWork<T>{kernel.as<Rearrangement>(), backward, written, read, call.read<T>(0), to});
}

}  // namespace stratplan::cuda_kernels
