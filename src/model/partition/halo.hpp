#pragma once
// Which input interval an output interval needs. Nothing outside model/partition computes a halo.
//
// Worked table: a 9-wide input, kernel 3, stride 2, padding 1 and 1, so a 5-wide output, on 3
// ranks.
//   rank  owns input  owns output  needs unclipped  needs   halo               local padding
//                                                           before/after       before/after
//   0     [0,3)       [0,2)        [-1,4)           [0,4)   0 / 1              1 / 0
//   1     [3,6)       [2,4)        [3,8)            [3,8)   0 / 2              0 / 0
//   2     [6,9)       [4,5)        [7,10)           [7,9)   -1 / 0 (6 unused)  0 / 1
//
// Worked table: a 5-wide input that is enlarged 2 times, in nearest and in linear mode, so a
// 10-wide output, on 3 ranks. `start` is Scale::start of the rank's piece, in units of 1 / 2
// (nearest) or 1 / 4 (linear) of an input element.
//   rank  owns input  owns output  nearest needs  start  linear needs  start
//   0     [0,2)       [0,4)        [0,2)          0      [0,3)         -1
//   1     [2,4)       [4,7)        [2,4)          0      [1,4)         3
//   2     [4,5)       [7,10)       [3,5)          1      [3,5)         1
#include <algorithm>

#include "model/network/scale.hpp"
#include "model/network/window.hpp"
#include "model/partition/interval.hpp"

namespace stratplan {

/// Returns the number of input positions that belong to one output position: the positions that its
/// window spans, and the positions that a longer stride skips before the next window. So the
/// intervals of consecutive blocks leave no gap in the input. If blocks of input and output are
/// aligned, no forward copy has to cut off the skipped rows, and no backward copy has to fill
/// them with zeros.
constexpr std::int64_t reach(const Window& window) {
  return std::max(window.span(), window.stride);
}

/// Returns the input interval that the windows of output positions [begin, end) span. The interval
/// is not clipped: below 0 and beyond the extent, the windows read padding.
constexpr Interval spanned_unclipped(const Window& window, Interval output) {
  return {output.begin * window.stride - window.pad_before,
          (output.end - 1) * window.stride - window.pad_before + window.span()};
}

/// Returns the input interval that output positions [begin, end) need. The interval reaches below 0
/// or beyond the extent where the windows read padding.
constexpr Interval needed_unclipped(const Window& window, Interval output) {
  const Interval spanned = spanned_unclipped(window, output);
  return {spanned.begin, spanned.end + reach(window) - window.span()};
}

/// The part of needed_unclipped() within [0, input_extent). Empty if all of needed_unclipped() is
/// padding.
constexpr Interval needed(const Window& window, Interval output, std::int64_t input_extent) {
  return intersect(needed_unclipped(window, output), {0, input_extent});
}

/// Returns `window` for a dense local buffer that holds exactly needed(). Padding remains only at
/// the borders of the tensor.
constexpr Window local_window(const Window& window, Interval output, std::int64_t input_extent) {
  const Interval spanned = spanned_unclipped(window, output);
  Window local = window;
  local.pad_before = std::max<std::int64_t>(0, -spanned.begin);
  local.pad_after = std::max<std::int64_t>(0, spanned.end - input_extent);
  return local;
}

/// Returns the output positions that need any part of `input`: the adjoint of needed_unclipped().
/// The interval is not clipped to the output.
Interval reading_unclipped(const Window& window, Interval input);

/// The part of reading_unclipped() within the output: the adjoint of needed().
Interval reading(const Window& window, Interval input, std::int64_t output_extent);

/// Returns the input interval from which an upsampling, or a padding with elements of the input,
/// computes output positions [begin, end). The interval includes positions that a reduction skips
/// before the next output position, as reach() does, and an end at which positions are mirrored.
/// Where the input wraps around, the interval reaches below 0 or beyond the extent; otherwise it
/// does not. Requires that `output` is not empty; then the interval is not empty either.
///
/// Worked table: a 5-wide input, padding 3 and 1, so a 9-wide output, on 3 ranks.
///   rank  owns output  positions  edge needs  reflect needs     wrap needs
///   0     [0,3)        [-3,0)     [0,1)       [0,4): 3 2 1      [-3,0): 2 3 4
///   1     [3,6)        [0,3)      [0,3)       [0,3)             [0,3)
///   2     [6,9)        [3,6)      [3,5)       [3,5): 3 4 3      [3,6): 3 4 0
constexpr Interval needed(const Scale& scale, Interval output, std::int64_t input_extent) {
  const std::int64_t first = mixture(scale, output.begin).before,
                     last = mixture(scale, output.end - 1).after;
  if (scale.ends == Ends::Wrap) return {first, last + 1};
  const auto clamped = [&](std::int64_t at) { return inside(Ends::Clamp, at, input_extent); };
  Interval read{clamped(first),
                std::max(clamped(last), clamped(mixture(scale, output.end).before - 1)) + 1};
  if (scale.ends == Ends::Mirror && first < 0) read.end = std::max(read.end, clamped(-first) + 1);
  if (scale.ends == Ends::Mirror && last >= input_extent)
    read.begin = std::min(read.begin, clamped(inside(Ends::Mirror, last, input_extent)));
  return read;
}

/// Returns `scale` for a dense local buffer that holds exactly needed(). The buffer ends where the
/// tensor ends, or behind the last element that is read.
constexpr Scale local_scale(const Scale& scale, Interval output, std::int64_t input_extent) {
  Scale local = scale;
  local.start += scale.step * output.begin - scale.unit * needed(scale, output, input_extent).begin;
  return local;
}

/// Returns the window of a transposed convolution over two dense local buffers. One buffer holds
/// exactly a block of outputs, the other exactly the inputs that the block needs. In a transposed
/// convolution, each window belongs to an input position and spans output positions. So a block of
/// outputs [begin, end) needs the inputs reading([begin, end)), and no other rank adds to the
/// block. The parts of windows beyond the block's borders are padding.
///
/// Worked table: a 4-wide input, kernel 3, stride 2, padding 1 and 1, output padding 1, so an
/// 8-wide output, on 3 ranks.
///   rank  owns input  owns output  needs   first window begins at       local padding before/after
///   0     [0,2)       [0,3)        [0,2)   -1                           1 / 1
///   1     [2,3)       [3,6)        [1,4)   1                            2 / 2
///   2     [3,4)       [6,8)        [3,4)   5                            1 / 0
Window local_transposed_window(const Window& window, Interval output, std::int64_t input_extent);

}  // namespace stratplan
