#pragma once
// Elements side by side that are loaded and stored at once: four floats are the widest access of a device.
#include <cstdint>
#include <initializer_list>

#include "runtime/cuda/own/launch.hpp"

namespace stratplan::own {

inline constexpr int pack_bytes = 16;
inline constexpr int pack_width = 4;  ///< floats

template <class T, int width>
struct alignas(width * sizeof(T)) Pack {
  T value[width];
  SP_DEVICE T& operator[](int i) { return value[i]; }
  SP_DEVICE const T& operator[](int i) const { return value[i]; }
};

template <int width, class T>
SP_DEVICE Pack<T, width> load(const T* from) {
  return *reinterpret_cast<const Pack<T, width>*>(from);
}
template <class T, int width>
SP_DEVICE void store(T* to, const Pack<T, width>& pack) {
  *reinterpret_cast<Pack<T, width>*>(to) = pack;
}

/// Whether packs may begin at all of these addresses; what is not there (null) does not object.
inline bool aligned(std::initializer_list<const void*> addresses) {
  for (const void* address : addresses)
    if (reinterpret_cast<std::uintptr_t>(address) % pack_bytes != 0) return false;
  return true;
}

}  // namespace stratplan::own
