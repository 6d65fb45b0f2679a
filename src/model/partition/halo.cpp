#include "model/partition/halo.hpp"

#include <algorithm>

namespace stratplan {

namespace {
constexpr std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
}  // namespace

Interval reading_unclipped(const Window& window, Interval input) {
  // Output o needs [o*stride - pad, o*stride - pad + reach). Output o reads part of `input` if that
  // interval ends after input.begin and begins before input.end.
  const std::int64_t first =
      floor_divide(input.begin + window.pad_before - reach(window), window.stride) + 1;
  const std::int64_t last = floor_divide(input.end - 1 + window.pad_before, window.stride);
  return {first, last + 1};
}

Interval reading(const Window& window, Interval input, std::int64_t output_extent) {
  if (input.empty()) return {};
  return intersect(reading_unclipped(window, input), {0, output_extent});
}

Window local_transposed_window(const Window& window, Interval output, std::int64_t input_extent) {
  const Interval spanned = spanned_unclipped(window, reading(window, output, input_extent));
  Window local = window;
  local.pad_before = output.begin - spanned.begin;
  local.pad_after = std::max<std::int64_t>(0, spanned.end - output.end);
  return local;
}

Interval reading(const Scale& scale, Interval input, std::int64_t output_extent) {
  if (input.empty()) return {};
  // In units of half an output element, the centre of output o is at 2o + 1, and the centre of
  // input i is at factor * (2i + 1). In linear mode, output o mixes the inputs that are closer to
  // it than 2 * factor. At a border, one of these inputs may lie beyond the tensor.
  const std::int64_t f = scale.factor;
  if (!scale.linear)
    return intersect(Interval{input.begin * f, input.end * f}, Interval{0, output_extent});
  const std::int64_t first = floor_divide(f * (2 * input.begin - 1) - 1, 2) + 1;
  const std::int64_t last = floor_divide(f * (2 * input.end + 1) - 2, 2);
  return intersect(Interval{first, last + 1}, Interval{0, output_extent});
}

}  // namespace stratplan
