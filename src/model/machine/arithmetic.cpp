#include "model/machine/arithmetic.hpp"

#include <algorithm>
#include <array>

#include "model/base/assert.hpp"

namespace stratplan {
namespace {

constexpr std::array<std::string_view, math_count> math_names{"fp32", "tf32", "fp16", "bf16"};

}  // namespace

std::string_view name_of(Math math) { return math_names[static_cast<std::size_t>(math)]; }

Math math_of(std::string_view name) {
  const auto found = std::find(math_names.begin(), math_names.end(), name);
  SP_ASSERT(found != math_names.end(), "math={}", name);
  return static_cast<Math>(found - math_names.begin());
}

}  // namespace stratplan
