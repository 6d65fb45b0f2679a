#pragma once
// Vectors of eight numbers, at any address. They are the compiler's own vector types, so that one
// source serves every instruction set.
#include <cstdint>

namespace stratplan::cpu {

using Float8 = float __attribute__((vector_size(32), aligned(4), may_alias));
using Int8 = std::int32_t __attribute__((vector_size(32), aligned(4), may_alias));

/// Functions of vectors are always inlined, because the way vectors are passed depends on the
/// instruction set.
#define SP_INLINE inline __attribute__((always_inline))

SP_INLINE Float8 load8(const float* from) { return *reinterpret_cast<const Float8*>(from); }
SP_INLINE void store8(float* to, Float8 values) { *reinterpret_cast<Float8*>(to) = values; }

}  // namespace stratplan::cpu
