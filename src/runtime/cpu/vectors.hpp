#pragma once
// Eight numbers at a time, wherever they lie in memory: the compiler's own vectors, so that one
// text serves every instruction set.
#include <cstdint>

namespace stratplan::cpu {

using Float8 = float __attribute__((vector_size(32), aligned(4), may_alias));
using Int8 = std::int32_t __attribute__((vector_size(32), aligned(4), may_alias));

/// Vectors are not passed between functions: how depends on the instruction set.
#define SP_INLINE inline __attribute__((always_inline))

SP_INLINE Float8 load8(const float* from) { return *reinterpret_cast<const Float8*>(from); }
SP_INLINE void store8(float* to, Float8 values) { *reinterpret_cast<Float8*>(to) = values; }

}  // namespace stratplan::cpu
