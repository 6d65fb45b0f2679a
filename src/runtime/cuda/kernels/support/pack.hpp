#pragma once
// A pack consists of neighbouring elements that are loaded and stored at once. The widest access of
// a device is four floats.
#include <cstdint>
#include <initializer_list>

#include "runtime/cuda/kernels/support/launch.hpp"
#include "runtime/device/float16.hpp"

namespace stratplan::cuda_kernels {

inline constexpr int pack_bytes = 16;
inline constexpr int pack_width = 4;  ///< elements of a pack; four floats fill pack_bytes

template <class T, int width>
struct alignas(width * sizeof(T)) Pack {
  T value[width];
  SP_DEVICE T& operator[](int i) { return value[i]; }
  SP_DEVICE const T& operator[](int i) const { return value[i]; }
};

template <class T>
inline constexpr bool is_float16 = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

/// Loads a pack. Elements of 16 bits become floats. store() rounds floats to 16 bits again.
template <int width, class T>
SP_DEVICE auto load(const T* from) {
  const auto stored = *reinterpret_cast<const Pack<T, width>*>(from);
  if constexpr (is_float16<T>) {
    Pack<float, width> pack;
    for (int k = 0; k < width; ++k) pack[k] = stored[k];
    return pack;
  } else {
    return stored;
  }
}
template <class T, class Computed, int width>
SP_DEVICE void store(T* to, const Pack<Computed, width>& pack) {
  if constexpr (is_float16<T>) {
    Pack<T, width> stored;
    for (int k = 0; k < width; ++k) stored[k] = T(pack[k]);
    *reinterpret_cast<Pack<T, width>*>(to) = stored;
  } else {
    *reinterpret_cast<Pack<T, width>*>(to) = pack;
  }
}

/// Whether packs may begin at all of these addresses. Null counts as aligned.
inline bool aligned(std::initializer_list<const void*> addresses) {
  for (const void* address : addresses)
    if (reinterpret_cast<std::uintptr_t>(address) % pack_bytes != 0) return false;
  return true;
}

}  // namespace stratplan::cuda_kernels
