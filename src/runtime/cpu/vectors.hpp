#pragma once
// Vectors of four and eight numbers. They are the compiler's own vector types, so that one source
// serves every instruction set. Addresses need no alignment, because only load() and store() access
// memory.
#include <cstdint>
#include <cstring>

namespace stratplan::cpu {

/// Vectors have four lanes where numbers are converted between float and double, because the
/// instruction sets convert four at once.
using Float4 = float __attribute__((vector_size(16)));
using Double4 = double __attribute__((vector_size(32)));
using Float8 = float __attribute__((vector_size(32)));
using Int8 = std::int32_t __attribute__((vector_size(32)));

/// Functions that take or return vectors are always inlined, because their calling convention
/// depends on the instruction set.
#define SP_INLINE inline __attribute__((always_inline))

template <class Vector, class Number>
SP_INLINE Vector load(const Number* from) {
  Vector values;
  std::memcpy(&values, from, sizeof values);
  return values;
}
template <class Vector, class Number>
SP_INLINE void store(Number* to, Vector values) {
  std::memcpy(to, &values, sizeof values);
}

SP_INLINE Float4 load4(const float* from) { return load<Float4>(from); }
SP_INLINE Float8 load8(const float* from) { return load<Float8>(from); }

}  // namespace stratplan::cpu
