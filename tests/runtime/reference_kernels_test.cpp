// The reference kernels: values worked out by hand, and gradients by finite differences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/finite_differences.hpp"

namespace stratplan::reference_kernels_test {
namespace {

using test::differences;
using test::dot;
using test::Doubles;
using test::doubles;
using test::expect_near;
using test::Floats;
using test::floats;
using test::point_wise;
using test::random_floats;
using test::run;
using test::Values;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::FloatEq;
using ::testing::FloatNear;
using ::testing::Pointwise;

using Integers = std::vector<std::int32_t>;

/// Returns a kernel over a row of positions, with one window along W.
Kernel along_width(KernelKind kind, Shape x, std::int64_t filters, Window window) {
  Kernel kernel{.kind = kind, .x = x, .y = x};
  kernel.windows() = {{{}, {}, window}};
  kernel.y[Axis::C] = filters;
  kernel.y[Axis::W] = window.output_extent(x[Axis::W]);
  return kernel;
}

// ---------------------------------------------------------------- by hand

// x = 1 2 3 4, weights 1 10 100, padding 1 before: at stride 2 the taps read (pad 1 2) (2 3 4).
TEST(ReferenceConvolution, ByHand) {
  Kernel kernel = along_width(KernelKind::ConvolutionForward, {{1, 1, 1, 1, 4}}, 1,
                              {.kernel = 3, .stride = 2, .pad_before = 1});
  const Floats x{1, 2, 3, 4}, weights{1, 10, 100}, dy{1, 2};
  ASSERT_EQ(kernel.y[Axis::W], 2);
  EXPECT_THAT(floats(run(kernel, {x, weights})[0]), ElementsAre(210, 432));
  kernel.as<ConvolutionAttributes>().bias = true;
  EXPECT_THAT(floats(run(kernel, {x, weights, Floats{0.5}})[0]), ElementsAre(210.5, 432.5));
  kernel.kind = KernelKind::ConvolutionBackwardData;
  EXPECT_THAT(floats(run(kernel, {dy, weights})[0]), ElementsAre(10, 102, 20, 200));
  kernel.kind = KernelKind::ConvolutionBackwardFilter;
  EXPECT_THAT(floats(run(kernel, {x, dy})[0]), ElementsAre(4, 7, 10));
}

// Two positions of two channels, two 1x1 filters: y = W x.
TEST(ReferenceConvolution, ChannelsAndFiltersLieLast) {
  const Kernel kernel = along_width(KernelKind::ConvolutionForward, {{1, 2, 1, 1, 2}}, 2, {});
  EXPECT_THAT(floats(run(kernel, {Floats{1, 2, 3, 4}, Floats{1, 10, 100, 1000}})[0]),
              ElementsAre(21, 2100, 43, 4300));
}

// Two positions of four channels, two groups of two channels, one 1x1 filter per group.
TEST(ReferenceConvolution, GroupsReadTheirOwnChannels) {
  Kernel kernel = along_width(KernelKind::ConvolutionForward, {{1, 4, 1, 1, 2}}, 2, {});
  kernel.as<ConvolutionAttributes>().groups = 2;
  const Floats x{1, 2, 3, 4, 5, 6, 7, 8}, weights{1, 10, 100, 1000}, dy{1, 2, 3, 4};
  EXPECT_THAT(floats(run(kernel, {x, weights})[0]), ElementsAre(21, 4300, 65, 8700));
  kernel.kind = KernelKind::ConvolutionBackwardData;
  EXPECT_THAT(floats(run(kernel, {dy, weights})[0]),
              ElementsAre(1, 10, 200, 2000, 3, 30, 400, 4000));
  kernel.kind = KernelKind::ConvolutionBackwardFilter;
  EXPECT_THAT(floats(run(kernel, {x, dy})[0]), ElementsAre(16, 20, 34, 40));
}

TEST(ReferenceConvolution, DepthwiseWithTwoFiltersEach) {
  Kernel kernel = along_width(KernelKind::ConvolutionForward, {{1, 2, 1, 1, 1}}, 4, {});
  kernel.as<ConvolutionAttributes>().groups = 2;
  EXPECT_THAT(floats(run(kernel, {Floats{3, 5}, Floats{1, 2, 10, 20}})[0]),
              ElementsAre(3, 6, 50, 100));
}

// x = 1 2 is spread at stride 3 through weights 1 10: 1 10 0 2 20. A rank owns the last three.
TEST(ReferenceConvolution, TransposedIsBackwardData) {
  Kernel kernel = along_width(KernelKind::ConvolutionBackwardData, {{1, 1, 1, 1, 5}}, 1,
                              {.kernel = 2, .stride = 3});
  ASSERT_EQ(kernel.y[Axis::W], 2);
  const Floats x{1, 2}, weights{1, 10};
  EXPECT_THAT(floats(run(kernel, {x, weights})[0]), ElementsAre(1, 10, 0, 2, 20));
  kernel.x[Axis::W] = 3;
  kernel.windows()[2].pad_before = 2;
  EXPECT_THAT(floats(run(kernel, {x, weights})[0]), ElementsAre(0, 2, 20));
}

TEST(ReferenceBias, ByHand) {
  EXPECT_THAT(floats(run(point_wise(KernelKind::BiasAdd, {{1, 2, 1, 1, 2}}),
                         {Floats{1, 2, 3, 4}, Floats{10, 20}})[0]),
              ElementsAre(11, 22, 13, 24));
  EXPECT_THAT(
      floats(run(point_wise(KernelKind::BiasGradient, {{1, 2, 1, 1, 2}}), {Floats{1, 2, 3, 4}})[0]),
      ElementsAre(4, 6));
}

TEST(ReferenceMaxPool, PaddingNeverWinsAndTheFirstOfEqualsDoes) {
  Kernel kernel = along_width(KernelKind::MaxPoolForward, {{1, 1, 1, 1, 4}}, 1,
                              {.kernel = 3, .stride = 2, .pad_before = 1, .pad_after = 1});
  const auto forward = run(kernel, {Floats{-3, -3, -2, -5}});
  EXPECT_THAT(floats(forward[0]), ElementsAre(-3, -2));
  EXPECT_THAT(std::get<Integers>(forward[1]), ElementsAre(1, 1));
  kernel.kind = KernelKind::MaxPoolBackward;
  EXPECT_THAT(floats(run(kernel, {Floats{10, 20}, forward[1]})[0]), ElementsAre(10, 0, 20, 0));
}

// Enlarges by two along the width: centres of output elements lie 1/4 and 3/4 into input elements.
TEST(ReferenceUpsample, ByHand) {
  Kernel kernel{
      .kind = KernelKind::UpsampleForward, .x = {{1, 1, 1, 1, 3}}, .y = {{1, 1, 1, 1, 6}}};
  kernel.as<UpsampleAttributes>().scales[2] = enlarged(2);
  EXPECT_THAT(floats(run(kernel, {Floats{1, 5, 9}})[0]), ElementsAre(1, 1, 5, 5, 9, 9));
  kernel.as<UpsampleAttributes>().scales[2] = enlarged(2, true);
  EXPECT_THAT(floats(run(kernel, {Floats{1, 5, 9}})[0]), ElementsAre(1, 2, 4, 6, 8, 9));
  kernel.kind = KernelKind::UpsampleBackward;
  EXPECT_THAT(floats(run(kernel, {Floats{4, 8, 0, 0, 16, 4}})[0]),
              ElementsAre(4 + 6, 2 + 4, 12 + 4));
}

// Reduces and enlarges with the corners aligned: outputs lie at 0, 3/2 and 3, and at 0, 2/3, 4/3
// and 2.
TEST(ReferenceUpsample, WithAlignedCorners) {
  Kernel kernel{
      .kind = KernelKind::UpsampleForward, .x = {{1, 1, 1, 1, 4}}, .y = {{1, 1, 1, 1, 3}}};
  Scale& scale = kernel.as<UpsampleAttributes>().scales[2];
  scale = {.step = 3, .unit = 2, .linear = true};
  EXPECT_THAT(floats(run(kernel, {Floats{1, 5, 9, 4}})[0]), ElementsAre(1, 7, 4));
  kernel.kind = KernelKind::UpsampleBackward;
  EXPECT_THAT(floats(run(kernel, {Floats{3, 8, 7}})[0]), ElementsAre(3, 4, 4, 7));
  kernel = {.kind = KernelKind::UpsampleForward, .x = {{1, 1, 1, 1, 3}}, .y = {{1, 1, 1, 1, 4}}};
  kernel.as<UpsampleAttributes>().scales[2] = {.step = 2, .unit = 3, .linear = true};
  EXPECT_THAT(floats(run(kernel, {Floats{3, 6, 12}})[0]), ElementsAre(3, 5, 8, 12));
}

// Outputs 1 to 3 of the first case need elements 0 to 2.
TEST(ReferenceUpsample, PiecesKnowWhereTheyBegin) {
  Kernel kernel{
      .kind = KernelKind::UpsampleForward, .x = {{1, 1, 1, 1, 3}}, .y = {{1, 1, 1, 1, 3}}};
  kernel.as<UpsampleAttributes>().scales[2] = {.step = 2, .start = 1, .unit = 4, .linear = true};
  EXPECT_THAT(floats(run(kernel, {Floats{1, 5, 9}})[0]), ElementsAre(2, 4, 6));
}

TEST(ReferenceReduce, MeansSumsAndGreatest) {  // two positions of three channels
  Kernel kernel{.kind = KernelKind::ReduceForward, .x = {{1, 3, 1, 1, 2}}, .y = {{1, 1, 1, 1, 2}}};
  const Floats x{1, 4, 4, 5, 2, -3};
  kernel.attributes = ReduceAttributes{Reduction::Mean, 3};
  EXPECT_THAT(floats(run(kernel, {x})[0]), ElementsAre(3, FloatEq(4.0F / 3)));
  kernel.attributes = ReduceAttributes{Reduction::Max, 1};
  EXPECT_THAT(floats(run(kernel, {x})[0]), ElementsAre(4, 5));
  kernel.kind = KernelKind::ReduceBackward;  // the two fours share their gradient
  EXPECT_THAT(floats(run(kernel, {x, Floats{10, 20}})[0]), ElementsAre(0, 5, 5, 20, 0, 0));
  kernel.y = {{1, 3, 1, 1, 1}};
  kernel.attributes = ReduceAttributes{Reduction::Mean, 4};  // of four positions, two are here
  EXPECT_THAT(floats(run(kernel, {Floats{4, 8, 12}})[0]), ElementsAre(1, 2, 3, 1, 2, 3));
  kernel.kind = KernelKind::ReduceForward;
  EXPECT_THAT(floats(run(kernel, {x})[0]), ElementsAre(1.5, 1.5, 0.25));
}

// The worked table of network/functions/rearrangement.hpp: p0 is 0, q0 is 10.
TEST(ReferenceRearrange, ByHand) {
  const Floats x{0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15};
  const Rearrangement to_space{.what = Rearranges::ToSpace, .block = {1, 1, 2}};
  Kernel kernel{.kind = KernelKind::RearrangeForward,
                .x = {{1, 6, 1, 1, 2}},
                .y = {{1, 3, 1, 1, 4}},
                .attributes = to_space};
  const Floats crd{0, 2, 4, 1, 3, 5, 10, 12, 14, 11, 13, 15};
  EXPECT_THAT(floats(run(kernel, {x})[0]), ElementsAreArray(crd));
  kernel.kind = KernelKind::RearrangeBackward;
  EXPECT_THAT(floats(run(kernel, {crd})[0]), ElementsAreArray(x));
  kernel.as<Rearrangement>().order = DepthOrder::DCR;
  EXPECT_THAT(floats(run(kernel, {x})[0]), ElementsAreArray(x));
  kernel.as<Rearrangement>() = to_space;  // a piece without the outermost positions
  kernel.as<Rearrangement>().phase[2] = 1;
  kernel.y[Axis::W] = 2;
  EXPECT_THAT(floats(run(kernel, {Floats{1, 3, 5, 10, 12, 14}})[0]),
              ElementsAre(0, 1, 0, 3, 0, 5, 10, 0, 12, 0, 14, 0));
  Kernel shuffle{.kind = KernelKind::RearrangeForward,
                 .x = {{1, 6, 1, 1, 1}},
                 .y = {{1, 6, 1, 1, 1}},
                 .attributes = Rearrangement{.groups = 2}};
  EXPECT_THAT(floats(run(shuffle, {Floats{0, 1, 2, 3, 4, 5}})[0]), ElementsAre(0, 3, 1, 4, 2, 5));
  shuffle.kind = KernelKind::RearrangeBackward;
  EXPECT_THAT(floats(run(shuffle, {Floats{0, 3, 1, 4, 2, 5}})[0]), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(ReferenceAveragePool, DivisorWithAndWithoutPadding) {
  Kernel kernel = along_width(KernelKind::AveragePoolForward, {{1, 1, 1, 1, 3}}, 1,
                              {.kernel = 2, .stride = 2, .pad_before = 1});
  EXPECT_THAT(floats(run(kernel, {Floats{2, 4, 8}})[0]), ElementsAre(1, 6));
  kernel.as<PoolAttributes>().count_padding = false;
  EXPECT_THAT(floats(run(kernel, {Floats{2, 4, 8}})[0]), ElementsAre(2, 6));
  kernel.kind = KernelKind::AveragePoolBackward;
  EXPECT_THAT(floats(run(kernel, {Floats{1, 2}})[0]), ElementsAre(1, 1, 1));
}

TEST(ReferenceSpatialMean, DividesByTheGlobalPositions) {  // the rank holds two of four positions
  Kernel kernel{.kind = KernelKind::SpatialMeanForward,
                .x = {{1, 2, 1, 1, 2}},
                .y = {{1, 2, 1, 1, 1}},
                .attributes = MeanAttributes{4}};
  EXPECT_THAT(floats(run(kernel, {Floats{1, 2, 3, 6}})[0]), ElementsAre(1, 2));
  kernel.kind = KernelKind::SpatialMeanBackward;
  EXPECT_THAT(floats(run(kernel, {Floats{4, 8}})[0]), ElementsAre(1, 2, 1, 2));
}

// Global samples 1 to 4 of 5 in sets of 2: sample 1 | 2 3 | 4.
TEST(ReferenceBatchNorm, SetsAreKeptApartAndTheLastMayBeShorter) {
  Kernel kernel = point_wise(KernelKind::BatchNormStatistics, {{4, 1, 1, 1, 2}});
  kernel.sets() = {
      .set_samples = 2, .first_sample = 1, .first_set = 0, .sets = 3, .batch = 5, .positions = 2};
  EXPECT_THAT(doubles(run(kernel, {Floats{1, 2, 3, 4, 5, 6, 7, 8}})[0]),
              ElementsAre(3, 5, 18, 86, 15, 113));
  EXPECT_EQ(kernel.sets().terms(1), 4);
  EXPECT_EQ(kernel.sets().terms(2), 2);
}

TEST(ReferenceBatchNorm, ForwardByHand) {  // 1 and 3: mean 2, variance 1
  Kernel kernel = point_wise(KernelKind::BatchNormForward, {{2, 1, 1, 1, 1}});
  kernel.sets() = {.set_samples = 2, .batch = 2};
  EXPECT_THAT(floats(run(kernel, {Floats{1, 3}, Doubles{4, 10}, Floats{5}, Floats{100}})[0]),
              ElementsAre(95, 105));
}

TEST(ReferenceElementWise, ByHand) {
  const Shape shape{{1, 3, 1, 1, 1}};
  const Floats x{-2, 0, 4}, dy{1, 2, 3};
  const Kernel sum = point_wise(KernelKind::Add, shape, AddAttributes{3});
  EXPECT_THAT(floats(run(sum, {x, dy, dy})[0]), ElementsAre(0, 4, 10));
}

TEST(ReferenceDropout, ARankSeesItsPartOfTheGlobalMask) {
  const Kernel all = point_wise(KernelKind::Dropout, {{2, 5, 1, 2, 3}}, DropoutAttributes{0.5});
  const Floats ones(60, 1);
  const Floats global = floats(run(all, {ones})[0]);
  EXPECT_THAT(global, ::testing::Each(::testing::AnyOf(0, 2)));
  EXPECT_NE(std::accumulate(global.begin(), global.end(), 0.0F), 0);

  KernelContext context =
      test::whole_context(all);  // sample 1, channels 2 to 4, row 1, columns 1 and 2
  context.region = {{{{1, 2}, {2, 5}, {0, 1}, {1, 2}, {1, 3}}}};
  const auto part =
      test::run(*make_reference_backend(),
                point_wise(KernelKind::Dropout, {{1, 3, 1, 1, 2}}, DropoutAttributes{0.5}),
                {Floats(6, 1)}, context);
  EXPECT_THAT(floats(part[0]),
              ElementsAre(global[52], global[53], global[54], global[57], global[58], global[59]));
}

// The last column of a 2 x 3 image goes into the first column of a 2 x 2 image.
TEST(ReferenceCopyRegion, MovesAndAdds) {
  Kernel kernel{.kind = KernelKind::CopyRegion,
                .x = {{1, 1, 1, 2, 3}},
                .y = {{1, 1, 1, 2, 2}},
                .type = DataType::I32,
                .attributes = CopyAttributes{.region = {{1, 1, 1, 2, 1}}, .from = {0, 0, 0, 0, 2}}};
  const auto backend = make_reference_backend();
  const Integers source{1, 2, 3, 4, 5, 6}, destination{10, 20, 30, 40};
  const KernelContext context = test::whole_context(kernel);
  EXPECT_THAT(std::get<Integers>(test::run(*backend, kernel, {source}, context, {destination})[0]),
              ElementsAre(3, 20, 6, 40));
  kernel.as<CopyAttributes>().accumulate = true;
  EXPECT_THAT(std::get<Integers>(test::run(*backend, kernel, {source}, context, {destination})[0]),
              ElementsAre(13, 20, 36, 40));
}

TEST(ReferenceSgd, TwoSteps) {  // rates of whole_context: 0.1, 0.9, 0.01
  const Kernel kernel = point_wise(KernelKind::SgdMomentum, {{1, 1, 1, 1, 1}});
  const auto first = run(kernel, {Floats{1}, Floats{2}, Floats{0}});
  EXPECT_FLOAT_EQ(floats(first[1])[0], 2.01F);
  EXPECT_FLOAT_EQ(floats(first[0])[0], 0.799F);
  const auto second = run(kernel, {first[0], Floats{0}, first[1]});
  EXPECT_FLOAT_EQ(floats(second[1])[0], 0.9F * 2.01F + 0.00799F);
}

TEST(ReferenceFill, AValue) {
  Kernel kernel = point_wise(KernelKind::Fill, {{1, 5, 1, 1, 1}});
  kernel.as<FillAttributes>().value = -1.5;
  EXPECT_THAT(floats(run(kernel, {})[0]), ElementsAre(-1.5, -1.5, -1.5, -1.5, -1.5));
}

TEST(ReferenceUpsample, PadsWithElementsOfTheInput) {
  Kernel kernel{
      .kind = KernelKind::UpsampleForward, .x = {{1, 1, 1, 1, 3}}, .y = {{1, 1, 1, 1, 6}}};
  Scale& scale = kernel.as<UpsampleAttributes>().scales[2];
  scale = {.start = -2, .ends = Ends::Clamp};
  EXPECT_THAT(floats(run(kernel, {Floats{1, 5, 9}})[0]), ElementsAre(1, 1, 1, 5, 9, 9));
  scale.ends = Ends::Mirror;
  EXPECT_THAT(floats(run(kernel, {Floats{1, 5, 9}})[0]), ElementsAre(9, 5, 1, 5, 9, 5));
  kernel.kind = KernelKind::UpsampleBackward;
  EXPECT_THAT(floats(run(kernel, {Floats{1, 2, 4, 8, 16, 32}})[0]), ElementsAre(4, 42, 17));
}

TEST(ReferenceFill, Zeros) {
  EXPECT_THAT(floats(run(point_wise(KernelKind::Fill, {{1, 2, 1, 1, 1}}), {})[0]),
              ElementsAre(0, 0));
}

// ---------------------------------------------------------------- finite differences

Kernel odd_window(KernelKind kind, std::int64_t filters) {
  const Shape x{{2, 3, 3, 5, 6}};
  Kernel kernel{.kind = kind, .x = x, .y = x};
  kernel.windows() = {{{.kernel = 2},
                       {.kernel = 3, .stride = 2, .pad_before = 1},
                       {.kernel = 2, .dilation = 2, .pad_before = 1, .pad_after = 2}}};
  kernel.y[Axis::C] = filters;
  for (Axis axis : spatial_axes)
    kernel.y[axis] = kernel.windows()[static_cast<std::size_t>(spatial_index(axis))].output_extent(
        kernel.x[axis]);
  return kernel;
}

void expect_convolution_gradients(std::int64_t groups, test::Random& random) {
  Kernel forward = odd_window(KernelKind::ConvolutionForward, 6);
  forward.as<ConvolutionAttributes>().groups = groups;
  Kernel data = forward, filter = forward;
  data.kind = KernelKind::ConvolutionBackwardData;
  filter.kind = KernelKind::ConvolutionBackwardFilter;
  const Floats x = random_floats(forward.x.elements(), random),
               dy = random_floats(forward.y.elements(), random);
  const Floats weights = random_floats(forward.operands().reads[1].elements, random);
  const auto of_x = [&](const Floats& v) { return dot(floats(run(forward, {v, weights})[0]), dy); };
  const auto of_weights = [&](const Floats& v) { return dot(floats(run(forward, {x, v})[0]), dy); };
  expect_near(floats(run(data, {dy, weights})[0]), differences(x, 0.5F, of_x), 1e-5, "dx");
  expect_near(floats(run(filter, {x, dy})[0]), differences(weights, 0.5F, of_weights), 1e-5, "dw");
}

TEST(ReferenceGradient, Convolution) {
  test::Random random(1);
  expect_convolution_gradients(1, random);
  expect_convolution_gradients(3, random);
}

TEST(ReferenceGradient, Pools) {
  test::Random random(2);
  for (const bool count_padding : {true, false}) {
    Kernel forward = odd_window(KernelKind::AveragePoolForward, 3), backward = forward;
    forward.as<PoolAttributes>().count_padding = count_padding;
    backward.attributes = forward.attributes;
    backward.kind = KernelKind::AveragePoolBackward;
    const Floats x = random_floats(forward.x.elements(), random),
                 dy = random_floats(forward.y.elements(), random);
    expect_near(floats(run(backward, {dy})[0]),
                differences(x, 0.5F,
                            [&](const Floats& v) { return dot(floats(run(forward, {v})[0]), dy); }),
                1e-5, "average");
  }
  Kernel forward = odd_window(KernelKind::MaxPoolForward, 3), backward = forward;
  backward.kind = KernelKind::MaxPoolBackward;
  Floats x(static_cast<std::size_t>(
      forward.x
          .elements()));  // all different by more than the step, so that no maximum changes hands
  std::iota(x.begin(), x.end(), -50.0F);
  std::shuffle(x.begin(), x.end(), random);
  const Floats dy = random_floats(forward.y.elements(), random);
  const Values index = run(forward, {x})[1];
  expect_near(
      floats(run(backward, {dy, index})[0]),
      differences(x, 0.25F, [&](const Floats& v) { return dot(floats(run(forward, {v})[0]), dy); }),
      1e-3, "maximum");
}

TEST(ReferenceGradient, Upsamplings) {
  test::Random random(6);
  for (const bool linear : {false, true}) {
    Kernel forward{
        .kind = KernelKind::UpsampleForward, .x = {{2, 3, 2, 3, 4}}, .y = {{2, 3, 4, 9, 4}}};
    forward.as<UpsampleAttributes>().scales = {enlarged(2, linear), enlarged(3, linear), Scale{}};
    Kernel backward = forward;
    backward.kind = KernelKind::UpsampleBackward;
    const Floats x = random_floats(forward.x.elements(), random),
                 dy = random_floats(forward.y.elements(), random);
    expect_near(floats(run(backward, {dy})[0]),
                differences(x, 0.5F,
                            [&](const Floats& v) { return dot(floats(run(forward, {v})[0]), dy); }),
                1e-5, linear ? "linear" : "nearest");
  }
}

// 5 samples in sets of 2: the last set is a single sample.
TEST(ReferenceGradient, BatchNormThroughItsStatistics) {
  test::Random random(3);
  const Shape shape{{5, 3, 1, 2, 4}};
  const auto kernel = [&](KernelKind kind) {
    const StatisticsSets sets{.set_samples = 2, .sets = 3, .batch = 5, .positions = 8};
    return point_wise(kind, shape, NormalizationAttributes{.epsilon = 1e-3, .sets = sets});
  };
  const Floats x = random_floats(shape.elements(), random),
               dy = random_floats(shape.elements(), random), scale{0.5, 2, -1}, shift{1, 2, 3};
  const auto loss = [&](const Floats& input, const Floats& scales, const Floats& shifts) {
    const Values sums = run(kernel(KernelKind::BatchNormStatistics), {input})[0];
    return dot(floats(run(kernel(KernelKind::BatchNormForward), {input, sums, scales, shifts})[0]),
               dy);
  };

  const Values sums = run(kernel(KernelKind::BatchNormStatistics), {x})[0];
  const auto gradients = run(kernel(KernelKind::BatchNormBackwardSums), {x, dy, sums});
  const auto dx = run(kernel(KernelKind::BatchNormBackward), {x, dy, sums, gradients[0], scale});

  const float h = 0x1p-7F;  // truncation is about h^2, rounding 2^-24 / h: both at most about 1e-4
  expect_near(floats(dx[0]),
              differences(x, h, [&](const Floats& v) { return loss(v, scale, shift); }), 1e-3,
              "dx");
  expect_near(floats(gradients[1]),
              differences(scale, h, [&](const Floats& v) { return loss(x, v, shift); }), 1e-3,
              "dscale");
  expect_near(floats(gradients[2]),
              differences(shift, h, [&](const Floats& v) { return loss(x, scale, v); }), 1e-3,
              "dshift");
}

}  // namespace
}  // namespace stratplan::reference_kernels_test
