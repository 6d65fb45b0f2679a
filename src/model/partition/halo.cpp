#include "model/partition/halo.hpp"

#include <algorithm>

namespace stratplan {

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

}  // namespace stratplan
