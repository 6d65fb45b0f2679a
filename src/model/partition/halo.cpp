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

Interval reading(const Scale& scale, Interval input, std::int64_t input_extent,
                 std::int64_t output_extent) {
  if (input.empty()) return {};
  // Ends of needed intervals ascend with the output position, so a bisection finds where they pass
  // an end of `input`.
  const auto first_with = [&](const auto& holds) {
    std::int64_t begin = 0, end = output_extent;
    while (begin < end) {
      const std::int64_t middle = begin + (end - begin) / 2;
      if (holds(needed(scale, {middle, middle + 1}, input_extent)))
        end = middle;
      else
        begin = middle + 1;
    }
    return begin;
  };
  return {first_with([&](Interval read) { return read.end > input.begin; }),
          first_with([&](Interval read) { return read.begin >= input.end; })};
}

}  // namespace stratplan
