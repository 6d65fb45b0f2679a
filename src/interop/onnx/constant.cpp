#include "interop/onnx/constant.hpp"

#include <fmt/format.h>

#include "model/base/assert.hpp"

namespace stratplan::interop {
namespace {

constexpr std::int64_t element_limit = std::int64_t{1} << 58;
constexpr std::int64_t small = 1 << 16;

template <class To, class From>
std::vector<To> converted(const std::vector<From>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

void need(bool condition, const std::string& reason) {
  if (!condition) throw Inexpressible{reason};
}

std::int64_t elements_of(const Extents& extents) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : extents) {
    need(extent >= 0, fmt::format("an extent of {}", extent));
    need(!__builtin_mul_overflow(elements, extent, &elements) && elements <= element_limit,
         "a tensor of more elements than the program's counters hold");
  }
  return elements;
}

Constant::Constant(Extents extents, bool integral, std::function<Values()> make) {
  const std::int64_t elements = elements_of(extents);
  state_ = std::make_shared<State>(
      State{std::move(extents), elements, integral, std::move(make), nullptr});
}

Constant Constant::of(Extents extents, std::vector<std::int64_t> integers) {
  return {std::move(extents), true, [integers = std::move(integers)] { return Values(integers); }};
}

Constant Constant::of(Extents extents, std::vector<float> numbers) {
  return {std::move(extents), false, [numbers = std::move(numbers)] { return Values(numbers); }};
}

Constant::Values Constant::values() const {
  if (state_->kept) return *state_->kept;
  Values values = state_->make();
  const auto count = std::visit([](const auto& list) { return std::ssize(list); }, values);
  SP_ASSERT(count == state_->elements &&
                std::holds_alternative<std::vector<std::int64_t>>(values) == state_->integral,
            "{} values for {} elements", count, state_->elements);
  if (state_->elements <= small) state_->kept = std::make_unique<Values>(values);
  return values;
}

std::vector<float> Constant::floats() const {
  Values found = values();
  if (auto* numbers = std::get_if<std::vector<float>>(&found)) return std::move(*numbers);
  return converted<float>(std::get<std::vector<std::int64_t>>(found));
}

std::vector<std::int64_t> Constant::integers() const {
  need(elements() <= small,
       fmt::format("{} elements where extents, axes or positions belong", elements()));
  Values found = values();
  if (auto* integers = std::get_if<std::vector<std::int64_t>>(&found)) return std::move(*integers);
  return converted<std::int64_t>(std::get<std::vector<float>>(found));
}

double Constant::scalar() const {
  need(elements() == 1, fmt::format("{} elements where one number belongs", elements()));
  return state_->integral ? static_cast<double>(integers()[0]) : static_cast<double>(floats()[0]);
}

}  // namespace stratplan::interop
