// PReLU, softmax, local response and group statistics on the reference backend: values by hand, and
// gradients by finite differences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/finite_differences.hpp"

namespace stratplan::reference_activations_test {
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
using ::testing::FloatNear;
using ::testing::Pointwise;
using Integers = std::vector<std::int32_t>;

// ---------------------------------------------------------------- by hand

TEST(ReferencePrelu, OneSlopeAChannel) {  // two positions of two channels
  const Shape shape{{1, 2, 1, 1, 2}};
  const Floats x{-2, -2, 4, 0}, dy{1, 2, 3, 4}, slope{0.5, -1};
  EXPECT_THAT(floats(run(point_wise(KernelKind::PreluForward, shape), {x, slope})[0]),
              ElementsAre(-1, 2, 4, 0));
  EXPECT_THAT(floats(run(point_wise(KernelKind::PreluBackward, shape), {x, dy, slope})[0]),
              ElementsAre(0.5, -2, 3, -4));
  EXPECT_THAT(floats(run(point_wise(KernelKind::PreluGradient, shape), {x, dy})[0]),
              ElementsAre(-2, -4));
}

TEST(ReferenceSoftmax, RunsOverTheChannelsOfEachPosition) {
  const Shape shape{{1, 2, 1, 1, 2}};
  const Floats x{100, 100 + std::log(3.0F), 0, 0};
  EXPECT_THAT(floats(run(point_wise(KernelKind::SoftmaxForward, shape), {x})[0]),
              Pointwise(FloatNear(1e-6F), Floats{0.25, 0.75, 0.5, 0.5}));
}

TEST(ReferenceLocalResponse, ByHand) {  // squares 1 4 9: sums over three neighbours 5 14 13; beta 1
  const Kernel kernel = point_wise(KernelKind::LocalResponseForward, {{1, 3, 1, 1, 1}},
                                   LocalResponse{.size = 3, .alpha = 3, .beta = 1, .k = 2});
  EXPECT_THAT(floats(run(kernel, {Floats{1, 2, 3}})[0]),
              Pointwise(FloatNear(1e-7F), Floats{1 / 7.0F, 2 / 16.0F, 3 / 15.0F}));
}

// One sample, one position, groups 1 3 | 10 14: means 2 and 12, deviations 1 and 2.
TEST(ReferenceGroupNorm, ChannelsOfAGroupShareTheirMoments) {
  Kernel kernel = point_wise(KernelKind::BatchNormForward, {{1, 4, 1, 1, 1}});
  kernel.sets() = {.group_channels = 2};
  const Floats x{1, 3, 10, 14};
  const Doubles sums{1, 3, 10, 14, 1, 9, 100, 196};
  EXPECT_THAT(floats(run(kernel, {x, sums, Floats{1, 2, 3, 4}, Floats{0, 0, 0, 5}})[0]),
              ElementsAre(-1, 2, -3, 9));
}

// Global samples 1 to 4 of 5, in sets of 2, two positions each. Means: 3/4, 4.5, 7.5. Shares of the
// sets that are here: 1/2, 1, 1.
TEST(ReferenceRunningStatistics, ByHand) {
  const StatisticsSets sets{
      .set_samples = 2, .first_sample = 1, .first_set = 0, .sets = 3, .batch = 5, .positions = 2};
  const Kernel moments = point_wise(KernelKind::BatchNormMoments, {{4, 1, 1, 1, 2}},
                                    MomentsAttributes{.weight = 1.0 / 3, .sets = sets});
  const Doubles made = doubles(run(moments, {Doubles{3, 5, 18, 86, 15, 113}})[0]);
  EXPECT_NEAR(made[0], (0.75 / 2 + 4.5 + 7.5) / 3, 1e-12);
  // Unbiased variances, of 4, 4 and 2 terms.
  EXPECT_NEAR(made[1], (0.6875 * 4 / 3 / 2 + 1.25 * 4 / 3 + 0.25 * 2) / 3, 1e-12);
  EXPECT_THAT(floats(run(point_wise(KernelKind::RunningAverage, {{1, 1, 1, 1, 1}},
                                    RunningAverageAttributes{.momentum = 0.5}),
                         {Doubles{2, 5}, Floats{1, 3}})[0]),
              ElementsAre(1.5, 4));
  EXPECT_THAT(floats(run(point_wise(KernelKind::BatchNormInference, {{1, 1, 1, 1, 1}}),
                         {Floats{3}, Floats{1, 4}, Floats{2}, Floats{5}})[0]),
              ElementsAre(7));
}

// ---------------------------------------------------------------- finite differences

TEST(ReferenceGradient, Activations) {
  test::Random random(5);
  const Shape shape{{2, 5, 1, 1, 4}};
  Floats x = random_floats(40, random);
  for (float& v : x) v += v > 0 ? 0.1F : -0.1F;  // keeps away from the kink
  const Floats dy = random_floats(40, random);
  struct Row {
    KernelKind forward, backward;
    KernelAttributes attributes;
    bool from_x = false;  ///< whether the backward kernel reads x instead of y
  };
  const Row rows[] = {{KernelKind::SoftmaxForward, KernelKind::SoftmaxBackward, {}},
                      {KernelKind::LocalResponseForward, KernelKind::LocalResponseBackward,
                       LocalResponse{.size = 3, .alpha = 2, .beta = 0.75, .k = 1.5}, true}};
  for (const Row& row : rows) {
    const Kernel f = point_wise(row.forward, shape, row.attributes),
                 b = point_wise(row.backward, shape, row.attributes);
    const Floats saved = row.from_x ? x : floats(run(f, {x})[0]);
    expect_near(
        floats(run(b, {saved, dy})[0]),
        differences(x, 0x1p-7F, [&](const Floats& v) { return dot(floats(run(f, {v})[0]), dy); }),
        2e-4, name_of(row.backward).data());
  }
}

TEST(ReferenceGradient, Prelu) {
  test::Random random(6);
  const Shape shape{{2, 3, 1, 1, 5}};
  Floats x = random_floats(30, random);
  for (float& v : x) v += v > 0 ? 0.1F : -0.1F;
  const Floats dy = random_floats(30, random), slope{0.25, -0.5, 2};
  const Kernel f = point_wise(KernelKind::PreluForward, shape);
  const auto loss = [&](const Floats& input, const Floats& slopes) {
    return dot(floats(run(f, {input, slopes})[0]), dy);
  };
  expect_near(floats(run(point_wise(KernelKind::PreluBackward, shape), {x, dy, slope})[0]),
              differences(x, 0x1p-6F, [&](const Floats& v) { return loss(v, slope); }), 1e-4, "dx");
  expect_near(floats(run(point_wise(KernelKind::PreluGradient, shape), {x, dy})[0]),
              differences(slope, 0x1p-6F, [&](const Floats& v) { return loss(x, v); }), 1e-4,
              "dslope");
}

TEST(ReferenceGradient, GroupNormThroughItsStatistics) {  // 2 samples, 6 channels in 3 groups
  test::Random random(7);
  const Shape shape{{2, 6, 1, 2, 3}};
  const auto kernel = [&](KernelKind kind) {
    const StatisticsSets sets{.sets = 2, .batch = 2, .positions = 6, .group_channels = 2};
    return point_wise(kind, shape, NormalizationAttributes{.epsilon = 1e-3, .sets = sets});
  };
  const Floats x = random_floats(shape.elements(), random),
               dy = random_floats(shape.elements(), random), scale{0.5, 2, -1, 1, 0, 3},
               shift(6, 1);
  const auto loss = [&](const Floats& input, const Floats& scales, const Floats& shifts) {
    const Values sums = run(kernel(KernelKind::BatchNormStatistics), {input})[0];
    return dot(floats(run(kernel(KernelKind::BatchNormForward), {input, sums, scales, shifts})[0]),
               dy);
  };
  const Values sums = run(kernel(KernelKind::BatchNormStatistics), {x})[0];
  const auto gradients = run(kernel(KernelKind::BatchNormBackwardSums), {x, dy, sums});
  const auto dx = run(kernel(KernelKind::BatchNormBackward), {x, dy, sums, gradients[0], scale});
  const float h = 0x1p-7F;
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
}  // namespace stratplan::reference_activations_test
