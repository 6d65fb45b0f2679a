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
    Interval output, needed;
    std::int64_t start;
  };
  const std::vector<Case> cases{
      // what, factor, linear, input, output, needed, start
      {"nearest, 10 on 3, rank 0", 2, false, 5, {0, 4}, {0, 2}, 0},
      {"nearest, 10 on 3, rank 1", 2, false, 5, {4, 7}, {2, 4}, 0},
      {"nearest, 10 on 3, rank 2", 2, false, 5, {7, 10}, {3, 5}, 1},
      {"linear, 10 on 3, rank 0", 2, true, 5, {0, 4}, {0, 3}, -1},
      {"linear, 10 on 3, rank 1", 2, true, 5, {4, 7}, {1, 4}, 3},
      {"linear, 10 on 3, rank 2", 2, true, 5, {7, 10}, {3, 5}, 1},
      {"linear, the centre is exact", 3, true, 4, {4, 5}, {1, 2}, 0},
      {"linear, around the centre", 3, true, 4, {3, 6}, {0, 3}, 2},
      {"linear, one element", 4, true, 1, {0, 4}, {0, 1}, -3},
      {"linear, not enlarged", 1, true, 6, {2, 4}, {2, 4}, 0},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const Scale scale = enlarged(c.factor, c.linear);
    EXPECT_EQ(needed(scale, c.output, c.input), c.needed);
    EXPECT_EQ(local_scale(scale, c.output, c.input).start, c.start);
  }
}

// The table in halo.hpp.
TEST(Halo, PaddingWithElementsOfTheInput) {
  const std::vector<Interval> outputs{{0, 3}, {3, 6}, {6, 9}};
  const auto read = [&](Ends ends) {
    std::vector<Interval> all;
    for (const Interval output : outputs)
      all.push_back(needed({.start = -3, .ends = ends}, output, 5));
    return all;
  };
  EXPECT_EQ(read(Ends::Clamp), (std::vector<Interval>{{0, 1}, {0, 3}, {3, 5}}));
  EXPECT_EQ(read(Ends::Mirror), (std::vector<Interval>{{0, 4}, {0, 3}, {3, 5}}));
  EXPECT_EQ(read(Ends::Wrap), (std::vector<Interval>{{-3, 0}, {0, 3}, {3, 6}}));
  for (const auto& [ends, text] : {std::pair{Ends::Clamp, "000001234444"},
                                   {Ends::Mirror, "321012343210"},
                                   {Ends::Wrap, "234012340123"}}) {
    std::string found;
    for (std::int64_t at = -3; at < 9; ++at) found += std::to_string(inside(ends, at, 5));
    EXPECT_EQ(found, ends == Ends::Clamp ? "000012344444" : text);
  }
}

// Numerators and denominators are those of the position, in units of an input element.
TEST(Halo, ScaleTable) {
  using enum Coordinates;
  using enum Rounding;
  struct Case {
    const char* what;
    Resizing how;
    std::int64_t inputs, outputs;
    Scale scale;
  };
  const std::vector<Case> cases{
      {"4 to 6", {{3, 2}, true}, 4, 6, {4, -1, 6, true}},
      {"4 to 6, nearest", {{3, 2}, false}, 4, 6, {2, 0, 3}},
      {"4 to 6, halves up", {{3, 2}, false, HalfPixel, PreferCeil}, 4, 6, {2, 1, 3}},
      {"4 to 6, floor", {{3, 2}, false, Asymmetric, Floor}, 4, 6, {2, 0, 3}},
      {"4 to 6, ceil", {{3, 2}, false, Asymmetric, Ceil}, 4, 6, {2, 2, 3}},
      {"4 to 6, corners", {{3, 2}, true, AlignCorners}, 4, 6, {3, 0, 5, true}},
      {"one output, corners", {{1, 4}, true, AlignCorners}, 4, 1, {1, 0, 1}},
      {"one input, corners", {{4, 1}, true, AlignCorners}, 1, 4, {1, 0, 1}},
      {"one output", {{1, 4}, true, HalfPixel}, 4, 1, {8, 3, 2, true}},
      {"one output in PyTorch", {{1, 4}, true, PyTorchHalfPixel}, 4, 1, {1, 0, 1}},
      {"halves, centred", {{1, 2}, true, HalfPixelSymmetric}, 5, 2, {2, 1, 1}},
      {"halves, not centred", {{1, 2}, true, HalfPixel}, 5, 2, {4, 1, 2, true}},
      {"thirds, centred", {{1, 3}, true, HalfPixelSymmetric}, 5, 1, {3, 2, 1}},
      {"thirds, not centred", {{1, 3}, true, HalfPixel}, 5, 1, {3, 1, 1}},
      {"every other", {{1, 2}, true, Asymmetric}, 6, 3, {2, 0, 1}},
      {"thirds of TensorFlow", {{1, 3}, false, TfHalfPixelForNn, Floor}, 6, 2, {3, 1, 1}},
  };
  for (const Case& c : cases) EXPECT_EQ(scale_of(c.how, c.inputs, c.outputs), c.scale) << c.what;
}

/// A map between two axes, with ratios below and above 1, and with every choice of positions.
struct AnyScale {
  std::int64_t inputs = any_int(1, 8);
  Resizing how{.ratio = {any_int(1, 5), any_int(1, 5)},
               .linear = any_int(0, 1) == 1,
               .coordinates = static_cast<Coordinates>(any_int(0, 5)),
               .rounding = static_cast<Rounding>(any_int(0, 3))};
  std::int64_t outputs =
      any_int(0, 2) == 0
          ? any_int(1, 12)
          : std::max<std::int64_t>(1, inputs* how.ratio.numerator / how.ratio.denominator);
  Scale scale = scale_of(how, inputs, outputs);

  /// The position of an output in the input, in doubles.
  double position(std::int64_t output) const {
    const double p = static_cast<double>(output), in = static_cast<double>(inputs),
                 out = static_cast<double>(outputs),
                 ratio = static_cast<double>(how.ratio.numerator) /
                         static_cast<double>(how.ratio.denominator);
    switch (how.coordinates) {
      case Coordinates::HalfPixel: return (p + 0.5) / ratio - 0.5;
      case Coordinates::PyTorchHalfPixel: return outputs > 1 ? (p + 0.5) / ratio - 0.5 : 0;
      case Coordinates::HalfPixelSymmetric:
        return in / 2 * (1 - out / (ratio * in)) + (p + 0.5) / ratio - 0.5;
      case Coordinates::TfHalfPixelForNn: return (p + 0.5) / ratio;
      case Coordinates::Asymmetric: return p / ratio;
      case Coordinates::AlignCorners: return outputs > 1 ? p * (in - 1) / (out - 1) : 0;
    }
    return 0;
  }
};

RC_GTEST_PROP(Halo, MixturesLieWhereTheCoordinatesSay, ()) {
  const AnyScale any;
  const auto inside = [&](double at) {
    return std::clamp(at, 0.0, static_cast<double>(any.inputs - 1));
  };
  for (std::int64_t o = 0; o < any.outputs; ++o) {
    const Mixture mix = mixture(any.scale, o);
    const double position = any.position(o), before = inside(static_cast<double>(mix.before)),
                 after = inside(static_cast<double>(mix.after));
    if (any.how.linear) {
      RC_ASSERT(std::abs(before * (1 - mix.share) + after * mix.share - inside(position)) < 1e-9);
      continue;
    }
    // Positions at a tie of the rounding are known exactly in integers only.
    const double near = 1e-9;
    double least = 0, most = 0;
    switch (any.how.rounding) {
      case Rounding::PreferFloor:
      case Rounding::PreferCeil:
        least = std::floor(position + 0.5 - near), most = std::floor(position + 0.5 + near);
        break;
      case Rounding::Floor:
        least = std::floor(position - near), most = std::floor(position + near);
        break;
      case Rounding::Ceil: least = std::ceil(position - near), most = std::ceil(position + near);
    }
    RC_ASSERT(inside(least) <= before && before <= inside(most) && after == before);
  }
}

RC_GTEST_PROP(Halo, NeededOfAnEnlargementHoldsWhatIsMixed, ()) {
  const AnyScale any;
  const std::int64_t begin = any_int(0, static_cast<int>(any.outputs) - 1),
                     end = any_int(static_cast<int>(begin) + 1, static_cast<int>(any.outputs));
  const auto inside = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at, 0, any.inputs - 1);
  };
  const Interval input = needed(any.scale, {begin, end}, any.inputs);
  RC_ASSERT(!input.empty() && Interval({0, any.inputs}).contains(input));
  RC_ASSERT(input.begin == inside(mixture(any.scale, begin).before));
  for (std::int64_t o = begin; o < end; ++o) {
    const Mixture mix = mixture(any.scale, o);
    for (const std::int64_t at : {mix.before, mix.after})
      RC_ASSERT(input.contains({inside(at), inside(at) + 1}));
  }
  // Beyond what is mixed lies only what is skipped before the next output.
  const std::int64_t last = inside(mixture(any.scale, end - 1).after);
  RC_ASSERT(input.end == last + 1 || input.end == inside(mixture(any.scale, end).before - 1) + 1);
}

RC_GTEST_PROP(Halo, LocalScaleMixesTheSameElementsInTheSameShares, ()) {
  const AnyScale any;
  const std::int64_t begin = any_int(0, static_cast<int>(any.outputs) - 1),
                     end = any_int(static_cast<int>(begin) + 1, static_cast<int>(any.outputs));
  const Interval input = needed(any.scale, {begin, end}, any.inputs);
  const Scale local = local_scale(any.scale, {begin, end}, any.inputs);
  for (std::int64_t o = begin; o < end; ++o) {
    const Mixture global = mixture(any.scale, o), here = mixture(local, o - begin);
    RC_ASSERT(global == (Mixture{here.before + input.begin, here.after + input.begin, here.share}));
    // Elements beyond the local buffer are beyond the tensor, too.
    RC_ASSERT(std::clamp<std::int64_t>(global.before, 0, any.inputs - 1) ==
              std::clamp(global.before, input.begin, input.end - 1));
    RC_ASSERT(std::clamp<std::int64_t>(global.after, 0, any.inputs - 1) ==
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
