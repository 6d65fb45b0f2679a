// The table of pointwise functions, on the reference backend: values compared with published
// formulas, gradients with differences, and the statements of each row with its function.
#include "model/network/functions/pointwise.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "runtime/finite_differences.hpp"
#include "support/networks.hpp"

namespace stratplan::pointwise_test {
namespace {

using test::Doubles;
using test::Floats;
using test::floats;
using test::tested;

const Floats all_inputs{-30,   -3.5, -3,   -2.5, -1,  -0.3F, -0.01F, 0,
                        0.01F, 0.3F, 0.6F, 1,    2.5, 3,     30};

Floats inputs_of(PointwiseFunction function) {
  Floats inputs;
  for (const float x : all_inputs)
    if (x >= row_of(function).domain) inputs.push_back(x);
  return inputs;
}

Kernel kernel_of(KernelKind kind, const Activation& pointwise, std::size_t count) {
  Kernel kernel{.kind = kind, .attributes = pointwise};
  kernel.x[Axis::C] = kernel.y[Axis::C] = static_cast<std::int64_t>(count);
  return kernel;
}

Floats value(const Activation& pointwise, const Floats& x) {
  return floats(test::run(*make_reference_backend(),
                          kernel_of(KernelKind::PointwiseForward, pointwise, x.size()), {x})[0]);
}

Floats gradient(const Activation& pointwise, const Floats& x, const Floats& dy) {
  const Floats read = reads_input(pointwise.function) ? x : value(pointwise, x);
  return floats(test::run(*make_reference_backend(),
                          kernel_of(KernelKind::PointwiseBackward, pointwise, x.size()),
                          {read, dy})[0]);
}

/// Formulas from PyTorch's documentation.
const std::map<std::string_view, std::function<double(double, pointwise::Constants<double>)>>
    published{
        {"erf", [](double x, auto) { return std::erf(x); }},
        {"log", [](double x, auto) { return std::log(x); }},
        {"reciprocal", [](double x, auto) { return 1 / x; }},
        {"power", [](double x, auto c) { return std::pow(x, c[0]); }},
        {"relu", [](double x, auto) { return std::max(x, 0.0); }},
        {"leaky_relu", [](double x, auto c) { return std::max(x, 0.0) + c[0] * std::min(x, 0.0); }},
        {"sigmoid", [](double x, auto) { return 1 / (1 + std::exp(-x)); }},
        {"tanh", [](double x,
                    auto) { return (std::exp(x) - std::exp(-x)) / (std::exp(x) + std::exp(-x)); }},
        {"elu", [](double x,
                   auto c) { return std::max(x, 0.0) + std::min(0.0, c[0] * (std::exp(x) - 1)); }},
        {"clip", [](double x, auto c) { return std::min(std::max(x, c[0]), c[1]); }},
        {"silu", [](double x, auto) { return x * (1 / (1 + std::exp(-x))); }},
        {"hard_swish", [](double x, auto) { return x <= -3  ? 0
                                                   : x >= 3 ? x
                                                            : x * (x + 3) / 6; }},
        {"hard_sigmoid",
         [](double x, auto c) { return std::max(0.0, std::min(1.0, c[0] * x + c[1])); }},
        {"softplus", [](double x, auto) { return x > 20 ? x : std::log(1 + std::exp(x)); }},
        {"mish",
         [](double x, auto) { return x * std::tanh(x > 20 ? x : std::log(1 + std::exp(x))); }},
        {"selu",
         [](double x, auto) {
           return 1.0507009873554804934193349852946 *
                  (std::max(0.0, x) +
                   std::min(0.0, 1.6732632423543772848170429916717 * (std::exp(x) - 1)));
         }},
        {"celu",
         [](double x, auto c) {
           return std::max(0.0, x) + std::min(0.0, c[0] * (std::exp(x / c[0]) - 1));
         }},
        {"abs", [](double x, auto) { return std::fabs(x); }},
        {"exp", [](double x, auto) { return std::exp(x); }},
        {"sqrt", [](double x, auto) { return std::pow(x, 0.5); }},
        {"gelu", [](double x, auto) { return x * std::erfc(-x * M_SQRT1_2) / 2; }},
        {"gelu_tanh",
         [](double x, auto) {
           return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * std::pow(x, 3))));
         }},
        {"linear", [](double x, const auto& c) { return c[0] * x + c[1]; }},
        {"square", [](double x, auto) { return std::pow(x, 2); }},
    };

class PointwiseTable : public testing::TestWithParam<PointwiseFunction> {};

TEST_P(PointwiseTable, HasThePublishedValues) {
  const Activation pointwise = tested(GetParam());
  ASSERT_TRUE(published.contains(name_of(GetParam())));
  const Floats inputs = inputs_of(GetParam());
  const Floats y = value(pointwise, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double expected = published.at(name_of(GetParam()))(inputs[i], pointwise.constants);
    EXPECT_NEAR(y[i], expected, 1e-6 * std::max(1.0, std::abs(expected))) << "at " << inputs[i];
  }
}

TEST_P(PointwiseTable, GradientsAreDifferences) {
  const Activation pointwise = tested(GetParam());
  const auto [low, high] = pointwise.jumps();
  const Floats inputs = inputs_of(GetParam());
  const Floats y = value(pointwise, inputs);
  Floats x, dy;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double read = reads_input(pointwise.function) ? inputs[i] : y[i];
    if (std::abs(read - low) < 0.02 || std::abs(read - high) < 0.02) continue;
    const bool at_end = inputs[i] - row_of(GetParam()).domain < 0.02;
    if (std::abs(inputs[i]) > 4 || at_end)
      continue;  // differences of floats have too few digits there
    x.push_back(inputs[i]);
    dy.push_back(1.0F + 0.25F * static_cast<float>(i));
  }
  ASSERT_GT(x.size(), 3U);
  Doubles differences(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float h = 0x1p-10F;
    const Floats around = value(pointwise, {x[i] + h, x[i] - h});
    differences[i] = (double{around[0]} - around[1]) / (2 * h) * dy[i];
  }
  const Floats found = gradient(pointwise, x, dy);
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(found[i], differences[i], 1e-3 * std::max(1.0, std::abs(differences[i])))
        << "at " << x[i];
}

TEST_P(PointwiseTable, SlopesThatAreFusedAreTheFunction) {
  const Activation pointwise = tested(GetParam());
  const auto slope = pointwise.fused_slope();
  if (!slope) return;
  EXPECT_FALSE(reads_input(pointwise.function)) << "the layer in front keeps only the output";
  EXPECT_GE(*slope, 0);
  EXPECT_LE(*slope, 1);
  const Floats &inputs = all_inputs, y = value(pointwise, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    EXPECT_FLOAT_EQ(y[i], std::max(inputs[i], static_cast<float>(*slope * inputs[i])));
}

TEST_P(PointwiseTable, NamesAreOnesOwn) {
  const PointwiseRow row = row_of(GetParam());
  for (const PointwiseFunction other : all_pointwise_functions)
    EXPECT_EQ(row.name == name_of(other), other == GetParam());
  EXPECT_LE(row.constants.size(), pointwise::Constants<double>{}.size());
}

INSTANTIATE_TEST_SUITE_P(Rows, PointwiseTable, testing::ValuesIn(all_pointwise_functions),
                         [](const auto& row) { return std::string(name_of(row.param)); });

TEST(PointwiseFunctions, NothingPassesBackAtTheLimitsOfAClip) {
  const Activation clip{PointwiseFunction::Clip, {-1, 6}};
  EXPECT_THAT(gradient(clip, {-3, -1, 2, 6, 7}, {4, 5, 6, 7, 8}),
              testing::ElementsAre(0, 0, 6, 0, 0));
}

TEST(PointwiseFunctions, NoNumberStaysNone) {
  for (const PointwiseFunction function :
       {PointwiseFunction::Clip, PointwiseFunction::Sigmoid, PointwiseFunction::Tanh})
    EXPECT_TRUE(std::isnan(value(tested(function), {std::nanf("")})[0])) << name_of(function);
}

TEST(Pointwise, TheRootOfZeroHasNoSlope) {
  EXPECT_EQ(gradient({PointwiseFunction::Sqrt}, {0, 4}, {3, 3}), (Floats{0, 0.75F}));
}

}  // namespace
}  // namespace stratplan::pointwise_test
