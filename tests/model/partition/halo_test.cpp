// The part of the input that an interval of outputs needs. The judge reads the window tap by tap.
#include "model/partition/halo.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "support/generators.hpp"

namespace stratplan {
namespace {

using test::any_int;

struct HaloCase {
  const char* what;
  Window window;  // kernel, stride, dilation, before, after
  std::int64_t input;
  Interval output, unclipped, needed;
  std::int64_t local_before, local_after;
};

TEST(Halo, Table) {
  const std::vector<HaloCase> cases{
      // what: kernel, stride, dilation, padding before, padding after; input, output, unclipped,
      // needed, local padding
      {"9 wide on 3, rank 0", {3, 2, 1, 1, 1}, 9, {0, 2}, {-1, 4}, {0, 4}, 1, 0},
      {"9 wide on 3, rank 1", {3, 2, 1, 1, 1}, 9, {2, 4}, {3, 8}, {3, 8}, 0, 0},
      {"9 wide on 3, rank 2", {3, 2, 1, 1, 1}, 9, {4, 5}, {7, 10}, {7, 9}, 0, 1},
      {"pointwise", {1, 1, 1, 0, 0}, 8, {2, 4}, {2, 4}, {2, 4}, 0, 0},
      {"1x1 stride 2", {1, 2, 1, 0, 0}, 8, {2, 4}, {4, 8}, {4, 8}, 0, 0},
      {"1x1 stride 2, odd", {1, 2, 1, 0, 0}, 7, {2, 4}, {4, 8}, {4, 7}, 0, 0},
      {"7x7 stride 2, first half", {7, 2, 1, 3, 3}, 14, {0, 4}, {-3, 10}, {0, 10}, 3, 0},
      {"7x7 stride 2, last half", {7, 2, 1, 3, 3}, 14, {4, 7}, {5, 16}, {5, 14}, 0, 2},
      {"even kernel", {2, 2, 1, 0, 0}, 8, {1, 3}, {2, 6}, {2, 6}, 0, 0},
      {"even kernel, same", {4, 1, 1, 1, 2}, 6, {0, 3}, {-1, 5}, {0, 5}, 1, 0},
      {"even kernel, same, end", {4, 1, 1, 1, 2}, 6, {3, 6}, {2, 8}, {2, 6}, 0, 2},
      {"dilation 2", {3, 1, 2, 2, 2}, 6, {2, 4}, {0, 6}, {0, 6}, 0, 0},
      {"block smaller than halo", {7, 1, 1, 3, 3}, 6, {2, 3}, {-1, 6}, {0, 6}, 1, 0},
      {"padding after alone", {3, 1, 1, 0, 2}, 5, {4, 5}, {4, 7}, {4, 5}, 0, 2},
      {"only padding", {1, 2, 1, 2, 0}, 5, {0, 1}, {-2, 0}, {0, 0}, 2, 0},
  };
  for (const HaloCase& c : cases) {
    SCOPED_TRACE(c.what);
    EXPECT_EQ(needed_unclipped(c.window, c.output), c.unclipped);
    EXPECT_EQ(needed(c.window, c.output, c.input), c.needed);
    const Window local = local_window(c.window, c.output, c.input);
    EXPECT_EQ(local.pad_before, c.local_before);
    EXPECT_EQ(local.pad_after, c.local_after);
    if (!c.needed.empty()) {
      EXPECT_EQ(local.output_extent(c.needed.size()), c.output.size());
    }
  }
}

/// Returns whether output position `o` spans a position of the unpadded input.
bool spans(const Window& window, std::int64_t o, std::int64_t input_position) {
  const std::int64_t first = o * window.stride - window.pad_before;
  return first <= input_position && input_position < first + window.span();
}

RC_GTEST_PROP(Halo, NeededIsTheHullOfAllTapsAndOfWhatTheStrideSkipsCutToTheTensor, ()) {
  const std::int64_t extent = any_int(1, 20);
  const Window window = test::any_window(extent);
  const std::int64_t outputs = window.output_extent(extent);
  const std::int64_t begin = any_int(0, static_cast<int>(outputs) - 1),
                     end = any_int(static_cast<int>(begin) + 1, static_cast<int>(outputs));
  std::int64_t low = 1000, high = -1000;  // padding included
  for (std::int64_t o = begin; o < end; ++o) {
    for (std::int64_t tap = 0; tap < window.kernel; ++tap) {
      const std::int64_t position = o * window.stride - window.pad_before + tap * window.dilation;
      low = std::min(low, position);
      high = std::max(high, position + 1);
    }
    high = std::max(high, (o + 1) * window.stride - window.pad_before);
  }
  const Interval hull{low, high};
  RC_ASSERT(needed_unclipped(window, {begin, end}) == hull);
  RC_ASSERT(needed(window, {begin, end}, extent) == intersect(hull, {0, extent}));
}

RC_GTEST_PROP(Halo, LocalWindowComputesJustThisOutputFromJustThatInput, ()) {
  const std::int64_t extent = any_int(1, 20);
  const Window window = test::any_window(extent);
  const std::int64_t outputs = window.output_extent(extent);
  const std::int64_t begin = any_int(0, static_cast<int>(outputs) - 1),
                     end = any_int(static_cast<int>(begin) + 1, static_cast<int>(outputs));
  const Interval input = needed(window, {begin, end}, extent);
  RC_PRE(!input.empty());
  const Window local = local_window(window, {begin, end}, extent);
  RC_ASSERT(local.output_extent(input.size()) == end - begin);
  for (std::int64_t o = begin; o < end; ++o) {
    for (std::int64_t i = input.begin; i < input.end; ++i)
      RC_ASSERT(spans(window, o, i) == spans(local, o - begin, i - input.begin));
  }
}

RC_GTEST_PROP(Halo, ReadingIsTheAdjointOfNeeded, ()) {
  const std::int64_t extent = any_int(1, 20);
  const Window window = test::any_window(extent);
  const std::int64_t outputs = window.output_extent(extent);
  const std::int64_t begin = any_int(0, static_cast<int>(extent) - 1),
                     end = any_int(static_cast<int>(begin) + 1, static_cast<int>(extent));
  const Interval readers = reading(window, {begin, end}, outputs);
  RC_ASSERT(Interval({0, outputs}).contains(readers));
  for (std::int64_t o = 0; o < outputs; ++o) {
    const bool reads = !intersect(needed(window, {o, o + 1}, extent), {begin, end}).empty();
    RC_ASSERT(reads == (readers.begin <= o && o < readers.end));
  }
}

TEST(Halo, TransposedTable) {
  struct Case {
    const char* what;
    Window window;
    std::int64_t input;
    Interval output, needed;
    std::int64_t local_before, local_after;
  };
  const std::vector<Case> cases{
      // what: kernel, stride, dilation, padding before, padding after; input, output, needed, local
      // padding
      {"8 wide on 3, rank 0", {3, 2, 1, 1, 1}, 4, {0, 3}, {0, 2}, 1, 1},
      {"8 wide on 3, rank 1", {3, 2, 1, 1, 1}, 4, {3, 6}, {1, 4}, 2, 2},
      {"8 wide on 3, rank 2", {3, 2, 1, 1, 1}, 4, {6, 8}, {3, 4}, 1, 0},
      {"doubling, aligned", {2, 2, 1, 0, 0}, 4, {4, 8}, {2, 4}, 0, 0},
      {"doubling, not aligned", {2, 2, 1, 0, 0}, 4, {3, 6}, {1, 3}, 1, 0},
      {"gaps, begins in one", {2, 4, 1, 0, 0}, 3, {3, 7}, {0, 2}, 3, 0},
      {"gaps, nothing but one", {2, 4, 1, 0, 0}, 3, {6, 8}, {1, 2}, 2, 0},
      {"gaps, ends in one", {1, 3, 1, 0, 0}, 3, {3, 5}, {1, 2}, 0, 0},
      {"one output, four inputs", {4, 1, 1, 0, 0}, 6, {4, 5}, {1, 5}, 3, 3},
      {"dilated", {2, 1, 3, 0, 0}, 4, {3, 5}, {0, 4}, 3, 2},
      {"output padding alone", {1, 2, 1, 0, 0}, 2, {3, 4}, {1, 2}, 1, 0},
      {"behind the last window", {3, 2, 1, 0, 0}, 2, {5, 6}, {0, 0}, 0, 0},
      {"cropped", {5, 2, 1, 4, 4}, 5, {0, 2}, {0, 3}, 4, 3},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const Interval found = reading(c.window, c.output, c.input);
    EXPECT_EQ(found.empty() ? Interval{} : found, c.needed);
    if (c.needed.empty()) continue;
    const Window local = local_transposed_window(c.window, c.output, c.input);
    EXPECT_EQ(local.pad_before, c.local_before);
    EXPECT_EQ(local.pad_after, c.local_after);
  }
}

RC_GTEST_PROP(Halo, LocalTransposedWindowAddsJustWhatReachesThisOutput, ()) {
  const Window window = test::any_window(20);
  const std::int64_t inputs = any_int(1, 6),
                     outputs = (inputs - 1) * window.stride + window.span() - window.pad_before;
  RC_PRE(outputs > 0);
  const std::int64_t begin = any_int(0, static_cast<int>(outputs) - 1),
                     end = any_int(static_cast<int>(begin) + 1, static_cast<int>(outputs));
  const Interval needed_inputs = reading(window, {begin, end}, inputs);
  RC_ASSERT(!needed_inputs.empty());
  const Window local = local_transposed_window(window, {begin, end}, inputs);
  RC_ASSERT(local.pad_before >= 0 && local.pad_after >= 0);
  for (std::int64_t i = 0; i < inputs; ++i) {
    for (std::int64_t tap = 0; tap < window.kernel; ++tap) {
      const std::int64_t global = i * window.stride - window.pad_before + tap * window.dilation;
      const bool inside = begin <= global && global < end,
                 is_needed = needed_inputs.contains({i, i + 1});
      RC_ASSERT(!inside || is_needed);
      if (is_needed)
        RC_ASSERT((i - needed_inputs.begin) * local.stride - local.pad_before +
                      tap * local.dilation ==
                  global - begin);
    }
  }
}

// ---------------------------------------------------------------- enlargements

TEST(Halo, EnlargementTable) {
  struct Case {
    const char* what;
    std::int64_t factor;
    bool linear;
    std::int64_t input;
    Interval output, unclipped, needed;
    std::int64_t phase;
  };
  const std::vector<Case> cases{
      // what, factor, linear, input, output, unclipped, needed, phase
      {"nearest, 10 on 3, rank 0", 2, false, 5, {0, 4}, {0, 2}, {0, 2}, 0},
      {"nearest, 10 on 3, rank 1", 2, false, 5, {4, 7}, {2, 4}, {2, 4}, 0},
      {"nearest, 10 on 3, rank 2", 2, false, 5, {7, 10}, {3, 5}, {3, 5}, 1},
      {"linear, 10 on 3, rank 0", 2, true, 5, {0, 4}, {-1, 3}, {0, 3}, 0},
      {"linear, 10 on 3, rank 1", 2, true, 5, {4, 7}, {1, 4}, {1, 4}, 2},
      {"linear, 10 on 3, rank 2", 2, true, 5, {7, 10}, {3, 6}, {3, 5}, 1},
      {"linear, the centre is exact", 3, true, 4, {4, 5}, {1, 2}, {1, 2}, 1},
      {"linear, around the centre", 3, true, 4, {3, 6}, {0, 3}, {0, 3}, 3},
      {"linear, one element", 4, true, 1, {0, 4}, {-1, 2}, {0, 1}, 0},
      {"linear, not enlarged", 1, true, 6, {2, 4}, {2, 4}, {2, 4}, 0},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const Scale scale{.factor = c.factor, .linear = c.linear};
    EXPECT_EQ(needed_unclipped(scale, c.output), c.unclipped);
    EXPECT_EQ(needed(scale, c.output, c.input), c.needed);
    EXPECT_EQ(local_scale(scale, c.output, c.input).phase, c.phase);
  }
}

/// Returns whether output element `o` mixes input element `i`: their centres are less than one
/// input element apart. Centres are in units in which neighbouring outputs are 2 apart.
bool mixes(const Scale& scale, std::int64_t o, std::int64_t i) {
  if (!scale.linear) return o / scale.factor == i;
  return std::abs((2 * o + 1) - scale.factor * (2 * i + 1)) < 2 * scale.factor;
}

RC_GTEST_PROP(Halo, NeededOfAnEnlargementIsTheHullOfWhatIsMixedAndReadingItsAdjoint, ()) {
  const Scale scale{.factor = any_int(1, 5), .linear = any_int(0, 1) == 1};
  const std::int64_t extent = any_int(1, 8), outputs = extent * scale.factor;
  const std::int64_t begin = any_int(0, static_cast<int>(outputs) - 1),
                     end = any_int(static_cast<int>(begin) + 1, static_cast<int>(outputs));
  const Interval input = needed(scale, {begin, end}, extent);
  for (std::int64_t i = 0; i < extent; ++i) {
    bool mixed = false;
    for (std::int64_t o = begin; o < end; ++o) mixed = mixed || mixes(scale, o, i);
    RC_ASSERT(mixed == input.contains({i, i + 1}));
    const Interval readers = reading(scale, {i, i + 1}, outputs);
    for (std::int64_t o = 0; o < outputs; ++o)
      RC_ASSERT(mixes(scale, o, i) == readers.contains({o, o + 1}));
  }
}

RC_GTEST_PROP(Halo, LocalScaleMixesTheSameElementsInTheSameShares, ()) {
  const Scale scale{.factor = any_int(1, 5), .linear = any_int(0, 1) == 1};
  const std::int64_t extent = any_int(1, 8), outputs = extent * scale.factor;
  const std::int64_t begin = any_int(0, static_cast<int>(outputs) - 1),
                     end = any_int(static_cast<int>(begin) + 1, static_cast<int>(outputs));
  const Interval input = needed(scale, {begin, end}, extent);
  const Scale local = local_scale(scale, {begin, end}, extent);
  for (std::int64_t o = begin; o < end; ++o) {
    const Mixture global = mixture(scale, o), here = mixture(local, o - begin);
    RC_ASSERT(global == (Mixture{here.before + input.begin, here.after + input.begin, here.share}));
    // Elements beyond the local buffer are beyond the tensor, too.
    RC_ASSERT(std::clamp<std::int64_t>(global.before, 0, extent - 1) ==
              std::clamp(global.before, input.begin, input.end - 1));
    RC_ASSERT(std::clamp<std::int64_t>(global.after, 0, extent - 1) ==
              std::clamp(global.after, input.begin, input.end - 1));
  }
}

TEST(Halo, ReadingTable) {
  struct Case {
    const char* what;
    Window window;
    Interval input;
    std::int64_t outputs;
    Interval reading;
  };
  const std::vector<Case> cases{
      // what: kernel, stride, dilation, padding before, padding after; input, outputs, reading
      // outputs
      {"9 wide, first third", {3, 2, 1, 1, 1}, {0, 3}, 5, {0, 2}},
      {"9 wide, second third", {3, 2, 1, 1, 1}, {3, 6}, 5, {1, 4}},
      {"9 wide, last third", {3, 2, 1, 1, 1}, {6, 9}, 5, {3, 5}},
      {"skipped by the stride", {1, 3, 1, 0, 0}, {1, 3}, 3, {0, 1}},
      {"pointwise", {1, 1, 1, 0, 0}, {2, 5}, 8, {2, 5}},
      {"beyond the last window", {2, 2, 1, 0, 0}, {6, 7}, 3, {}},
  };
  for (const Case& c : cases) {
    const Interval found = reading(c.window, c.input, c.outputs);
    EXPECT_EQ(found.empty() ? Interval{} : found, c.reading) << c.what;
  }
}

}  // namespace
}  // namespace stratplan
