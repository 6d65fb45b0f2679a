// The losses on the reference backend: values by hand, and gradients by finite differences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/finite_differences.hpp"
#include "support/networks.hpp"

namespace stratplan::reference_losses_test {
namespace {

using test::differences;
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

TEST(ReferenceLosses, ByHand) {
  const auto entropy =
      run(point_wise(KernelKind::SoftmaxCrossEntropy, {{1, 2, 1, 1, 1}}, LossAttributes{4}),
          {Floats{0, std::log(3.0F)}, Integers{1}});
  EXPECT_NEAR(doubles(entropy[0])[0], std::log(4.0 / 3) / 4, 1e-7);
  EXPECT_THAT(floats(entropy[1]), Pointwise(FloatNear(1e-7F), Floats{0.0625, -0.0625}));
  const auto square =
      run(point_wise(KernelKind::ElementwiseLoss, {{1, 2, 1, 1, 1}}, ElementLossAttributes{{}, 4}),
          {Floats{1, 5}, Floats{2, 2}});
  EXPECT_DOUBLE_EQ(doubles(square[0])[0], 2.5);
  EXPECT_THAT(floats(square[1]), ElementsAre(-0.5, 1.5));
  const auto weighted = run(point_wise(KernelKind::ElementwiseLoss, {{1, 2, 1, 1, 1}},
                                       ElementLossAttributes{.terms = 4, .weight = 3}),
                            {Floats{1, 5}, Floats{2, 2}});
  EXPECT_DOUBLE_EQ(doubles(weighted[0])[0], 2.5) << "the sum of losses applies the weight";
  EXPECT_THAT(floats(weighted[1]), ElementsAre(-1.5, 4.5));
}

// With two terms. The differences from the targets are -3, 0 and 0.5.
TEST(ReferenceLosses, OfElementsByHand) {
  struct Row {
    ElementLoss loss;
    double value;
    Floats gradient;
  };
  const Row rows[] = {
      {{LossFunction::MeanAbsoluteError}, 3.5, {-1, 0, 1}},
      {{LossFunction::Huber}, 2.5 + 0.125, {-1, 0, 0.5}},
      {{LossFunction::Huber, 2}, 4 + 0.125, {-2, 0, 0.5}},
      {{LossFunction::Huber, 0.25}, 0.25 * (2.875 + 0.375), {-0.25, 0, 0.25}},
      {{LossFunction::SmoothL1, 2}, 2 + 0.0625, {-1, 0, 0.25}},
      {{LossFunction::SmoothL1, 0.25}, 2.875 + 0.375, {-1, 0, 1}},
  };
  for (const Row& row : rows) {
    const Kernel kernel = point_wise(KernelKind::ElementwiseLoss, {{1, 3, 1, 1, 1}},
                                     ElementLossAttributes{row.loss, 2});
    const auto found = run(kernel, {Floats{-2, 4, 0}, Floats{1, 4, -0.5}});
    EXPECT_DOUBLE_EQ(doubles(found[0])[0], row.value / 2) << kernel.name();
    Floats gradient = row.gradient;
    for (float& value : gradient) value /= 2;
    EXPECT_EQ(floats(found[1]), gradient) << kernel.name();
  }
}

// The sigmoid of log 3 is 3/4. Large scores of either sign overflow nothing.
TEST(ReferenceLosses, SigmoidCrossEntropyByHand) {
  const float x = std::log(3.0F);
  const auto kernel = [](double weight) {
    return point_wise(KernelKind::ElementwiseLoss, {{1, 4, 1, 1, 1}},
                      ElementLossAttributes{{LossFunction::SigmoidCrossEntropy, weight}, 1});
  };
  const auto plain = run(kernel(1), {Floats{x, x, 0, -x}, Floats{1, 0, 0.5, 1}});
  EXPECT_NEAR(doubles(plain[0])[0], std::log(4.0 / 3) + 2 * std::log(4.0) + std::log(2.0), 1e-6);
  EXPECT_THAT(floats(plain[1]), Pointwise(FloatNear(1e-6F), Floats{-0.25, 0.75, 0, -0.75}));
  const auto weighted = run(kernel(3), {Floats{x, x, 0, -x}, Floats{1, 0, 0.5, 1}});
  EXPECT_NEAR(doubles(weighted[0])[0],
              3 * std::log(4.0 / 3) + 4 * std::log(4.0) + 2 * std::log(2.0), 1e-6);
  EXPECT_THAT(floats(weighted[1]), Pointwise(FloatNear(1e-6F), Floats{-0.75, 0.75, -0.5, -2.25}));
  const auto large = run(kernel(1), {Floats{1000, 1000, -1000, -1000}, Floats{1, 0, 1, 0}});
  EXPECT_DOUBLE_EQ(doubles(large[0])[0], 2000);
  EXPECT_THAT(floats(large[1]), ElementsAre(0, 1, -1, 0));
}

// Scores of three classes with probabilities 1/8, 1/8 and 3/4. The second label does not count.
TEST(ReferenceLosses, CrossEntropyWithOptionsByHand) {
  const float large = std::log(6.0F);
  const Floats x{0, 0, large, 0, 0, large, 0, 0, large}, weights{1, 2, 3};
  const Integers labels{2, 255, 1};
  const Shape shape{{3, 3, 1, 1, 1}};
  const CrossEntropyAttributes ignoring{.ignored = 255}, weighted{.ignored = 255, .weighted = true},
      smooth{.smoothing = 0.3, .ignored = 255, .weighted = true};
  const auto sum = [&](const CrossEntropyAttributes& attributes, std::vector<Values> reads) {
    return doubles(run(point_wise(KernelKind::LabelWeights, shape, attributes), reads)[0])[0];
  };
  EXPECT_DOUBLE_EQ(sum(ignoring, {labels}), 2);
  EXPECT_DOUBLE_EQ(sum(weighted, {labels, weights}), 5);
  const double right = std::log(4.0 / 3), wrong = std::log(8.0);

  const auto plain =
      run(point_wise(KernelKind::WeightedCrossEntropy, shape, ignoring), {x, labels, Doubles{2}});
  EXPECT_NEAR(doubles(plain[0])[0], (right + wrong) / 2, 1e-6);
  EXPECT_THAT(floats(plain[1]), Pointwise(FloatNear(1e-6F), Floats{0.0625, 0.0625, -0.125, 0, 0, 0,
                                                                   0.0625, -0.4375, 0.375}));
  const auto by_class = run(point_wise(KernelKind::WeightedCrossEntropy, shape, weighted),
                            {x, labels, weights, Doubles{5}});
  EXPECT_NEAR(doubles(by_class[0])[0], (3 * right + 2 * wrong) / 5, 1e-6);
  EXPECT_THAT(floats(by_class[1]),
              Pointwise(FloatNear(1e-6F), Floats{0.075, 0.075, -0.15, 0, 0, 0, 0.05, -0.35, 0.3}));
  const auto smoothed = run(point_wise(KernelKind::WeightedCrossEntropy, shape, smooth),
                            {x, labels, weights, Doubles{5}});
  EXPECT_NEAR(doubles(smoothed[0])[0],
              (0.7 * (3 * right + 2 * wrong) + 2 * 0.1 * (3 * wrong + 3 * right)) / 5, 1e-6);
  // The shares of the classes in the labels are (0.1, 0.2, 2.4) and (0.1, 1.6, 0.3).
  EXPECT_THAT(floats(smoothed[1]),
              Pointwise(FloatNear(1e-6F), Floats{0.2375F / 5, 0.1375F / 5, -0.375F / 5, 0, 0, 0,
                                                 0.15F / 5, -1.35F / 5, 1.2F / 5}));
  const auto nothing = run(point_wise(KernelKind::WeightedCrossEntropy, shape, ignoring),
                           {x, Integers{255, 255, 255}, Doubles{0}});
  EXPECT_EQ(doubles(nothing[0])[0], 0);
  EXPECT_THAT(floats(nothing[1]), ::testing::Each(0.0F));
}

// Labels 0 and 1. Sums at the label are 0.75 and 0.5, sums of all 1.25 and 0.75. Each label has one
// position.
TEST(ReferenceDice, ByHand) {
  const Kernel sums = point_wise(KernelKind::DiceSums, {{1, 2, 1, 1, 2}}),
               loss = point_wise(KernelKind::DiceLoss, sums.x);
  const Floats x{0.75, 0.25, 0.5, 0.5};
  const Integers labels{0, 1};
  const Values made = run(sums, {x, labels})[0];
  EXPECT_THAT(doubles(made), ElementsAre(0.75, 0.5, 1.25, 0.75, 1, 1));
  const auto result = run(loss, {labels, made});
  EXPECT_DOUBLE_EQ(doubles(result[0])[0], 1 - (1.5 / 2.25 + 1 / 1.75) / 2);
}

// The same samples, each by itself, and a third one that does not count.
TEST(ReferenceDice, OfSamplesByHand) {
  const Shape shape{{3, 2, 1, 1, 1}};
  const Kernel sums = point_wise(KernelKind::DiceSums, shape, DiceSumsAttributes{true, -1}),
               loss =
                   point_wise(KernelKind::DiceLoss, shape,
                              DiceLossAttributes{
                                  .epsilon = 1, .per_sample = true, .divisor = 3, .ignored = -1});
  const Floats x{0.75, 0.25, 0.5, 0.5, 9, 9};
  const Integers labels{0, 1, -1};
  const Values made = run(sums, {x, labels})[0];
  EXPECT_THAT(doubles(made), ElementsAre(0.75, 0, 0.75, 0.25, 1, 0,  //
                                         0, 0.5, 0.5, 0.5, 0, 1,     //
                                         0, 0, 0, 0, 0, 0));
  const auto result = run(loss, {labels, made});
  const double first = (2.5 / 2.75 + 1 / 1.25) / 2, second = (1 / 1.5 + 2 / 2.5) / 2;
  EXPECT_NEAR(doubles(result[0])[0], (1 - first + 1 - second) / 3, 1e-12);
  EXPECT_THAT(
      floats(result[1]),
      Pointwise(FloatNear(1e-6F), Floats{static_cast<float>((2.5 / 2.75 - 2) / 2.75 / 6),
                                         static_cast<float>(1 / 1.25 / 1.25 / 6),
                                         static_cast<float>(1 / 1.5 / 1.5 / 6),
                                         static_cast<float>((2 / 2.5 - 2) / 2.5 / 6), 0, 0}));
}

// ---------------------------------------------------------------- finite differences

TEST(ReferenceGradient, Losses) {
  test::Random random(4);
  const Shape shape{{2, 5, 1, 1, 3}};
  const Floats x = random_floats(shape.elements(), random),
               target = random_floats(shape.elements(), random);
  std::vector<std::pair<Kernel, Values>> losses{
      {point_wise(KernelKind::SoftmaxCrossEntropy, shape,
                  LossAttributes{.terms = 6, .weight = 0.5}),
       test::random_values({DataType::I32, 6}, random, 5)}};
  for (const LossFunction function : all_loss_functions)
    losses.emplace_back(point_wise(KernelKind::ElementwiseLoss, shape,
                                   ElementLossAttributes{test::tested(function), 6, false, 0.5}),
                        target);
  for (const auto& [kernel, truth] : losses) {
    const auto loss = [&, &of = kernel, &second = truth](const Floats& v) {
      return 0.5 * doubles(run(of, {v, second})[0])[0];
    };
    expect_near(floats(run(kernel, {x, truth})[1]), differences(x, 0x1p-7F, loss), 1e-3,
                kernel.name().c_str());
  }
  const Kernel options = point_wise(
      KernelKind::WeightedCrossEntropy, shape,
      CrossEntropyAttributes{.smoothing = 0.3, .ignored = 1, .weighted = true, .weight = 0.5});
  const Floats weights{1, 2, 0.5, 3, 0.25};
  const auto loss = [&](const Floats& v) {
    return 0.5 * doubles(run(options, {v, losses[0].second, weights, Doubles{4}})[0])[0];
  };
  expect_near(floats(run(options, {x, losses[0].second, weights, Doubles{4}})[1]),
              differences(x, 0x1p-7F, loss), 1e-3, "weighted");
}

TEST(ReferenceGradient, Dice) {
  test::Random random(8);
  const Shape shape{{2, 4, 1, 1, 5}};
  Floats x = random_floats(shape.elements(), random);
  for (float& v : x) v = 0.5F + v / 2;
  const Values labels = test::random_values({DataType::I32, 10}, random, 4);
  const Kernel sums = point_wise(KernelKind::DiceSums, shape),
               loss = point_wise(KernelKind::DiceLoss, shape,
                                 DiceLossAttributes{.epsilon = 0.1, .weight = 0.5});
  const auto value = [&](const Floats& v) {
    return 0.5 * doubles(run(loss, {labels, run(sums, {v, labels})[0]})[0])[0];
  };
  expect_near(floats(run(loss, {labels, run(sums, {x, labels})[0]})[1]),
              differences(x, 0x1p-7F, value), 1e-5, "dx");
}

}  // namespace
}  // namespace stratplan::reference_losses_test
