#include "model/machine/arithmetic.hpp"

#include <algorithm>
#include <array>

#include "model/base/assert.hpp"

namespace stratplan {
namespace {

constexpr std::array<std::string_view, math_count> names{"fp32", "tf32", "fp16", "bf16"};

}  // namespace

std::string_view name_of(Math math) { return names[static_cast<std::size_t>(math)]; }

Math math_of(std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  SP_ASSERT(found != names.end(), "math={}", name);
  return static_cast<Math>(found - names.begin());
}

}  // namespace stratplan
