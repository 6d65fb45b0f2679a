#pragma once
// The arithmetic of contractions.
#include <string_view>

namespace stratplan {

/// The arithmetic in which contractions on fp32 tensors multiply. Sums are always in fp32.
/// Contractions on tensors of another type multiply in that type.
enum class Math : int { Fp32, Tf32, Fp16, Bf16 };
inline constexpr int math_count = static_cast<int>(Math::Bf16) + 1;
/// Returns "fp32", "tf32", "fp16" or "bf16".
std::string_view name_of(Math math);
/// The inverse of name_of().
Math math_of(std::string_view name);

}  // namespace stratplan
