#pragma once
// Which input interval an output interval needs: the whole knowledge of what a halo is.
//
// Worked table: 9-wide input, kernel 3, stride 2, padding 1 and 1, so a 5-wide output, on 3 ranks.
//   rank  owns input  owns output  needs unclipped  needs   halo before/after  local padding before/after
//   0     [0,3)       [0,2)        [-1,4)           [0,4)   0 / 1              1 / 0
//   1     [3,6)       [2,4)        [3,8)            [3,8)   0 / 2              0 / 0
//   2     [6,9)       [4,5)        [7,10)           [7,9)   -1 / 0 (unused)    0 / 1
#include "model/network/window.hpp"
#include "model/partition/interval.hpp"

namespace stratplan {

/// Input interval that output positions [begin, end) read; it reaches below 0 and beyond the extent where they read padding.
constexpr Interval needed_unclipped(const Window& window, Interval output) {
  return {output.begin * window.stride - window.pad_before, (output.end - 1) * window.stride - window.pad_before + window.span()};
}

/// The part of needed_unclipped that lies within [0, input_extent). Empty if only padding is read.
constexpr Interval needed(const Window& window, Interval output, std::int64_t input_extent) {
  return intersect(needed_unclipped(window, output), {0, input_extent});
}

/// The same window over a dense local buffer that holds just needed(): padding remains where the tensor ends.
constexpr Window local_window(const Window& window, Interval output, std::int64_t input_extent) {
  const Interval wanted = needed_unclipped(window, output);
  Window local = window;
  local.pad_before = wanted.begin < 0 ? -wanted.begin : 0;
  local.pad_after = wanted.end > input_extent ? wanted.end - input_extent : 0;
  return local;
}

/// Output positions whose windows read any of `input` (padding apart): the adjoint view of needed().
Interval reading(const Window& window, Interval input, std::int64_t output_extent);

}  // namespace stratplan
