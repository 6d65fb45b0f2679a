// The parts of a convolution's prepared kernel: a cuDNN plan, and own kernels around it. Made
// without a device, so nothing is run here; device_kernels_test.cpp runs them.
#include "runtime/cuda/cudnn/convolution.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/window_kernels.hpp"
#include "support/message_of.hpp"

namespace stratplan::cudnn {
namespace {

using test::message_of;
using testing::HasSubstr;
using enum KernelKind;

const Kernel residual{
    .kind = ConvolutionForward,
    .x = {{8, 64, 1, 56, 56}},
    .y = {{8, 64, 1, 56, 56}},
    .attributes = ConvolutionAttributes{.windows = {Window{}, {3, 1, 1, 1, 1}, {3, 1, 1, 1, 1}}}};

Kernel with_kind(Kernel kernel, KernelKind kind) {
  kernel.kind = kind;
  return kernel;
}

TEST(Convolution, IsMadeByEachOfItsChoices) {
  const Target target(h200());
  for (const KernelKind kind :
       {ConvolutionForward, ConvolutionBackwardData, ConvolutionBackwardFilter}) {
    const Kernel kernel = with_kind(residual, kind);
    const std::vector<Plan> plans = execution_plans(kernel, Arithmetic::TF32, target);
    const std::vector<std::string> choices = convolution_choices(kernel, Arithmetic::TF32, target);
    ASSERT_EQ(choices.size(), plans.size());
    EXPECT_EQ(make_convolution(kernel, "", Arithmetic::TF32, target)->implementation(), choices[0])
        << "the empty choice is the default rule";
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const auto made = make_convolution(kernel, choices[i], Arithmetic::TF32, target);
      EXPECT_EQ(made->implementation(), choices[i]);
      EXPECT_GE(made->workspace(), plans[i].workspace);
    }
  }
}

TEST(Convolution, OfAnyLocalFormCanBeMade) {
  const Target target(h100());
  for (const KernelKind kind :
       {ConvolutionForward, ConvolutionBackwardData, ConvolutionBackwardFilter})
    for (const Kernel& kernel : test::convolutions(kind))
      for (const Arithmetic arithmetic : {Arithmetic::F32, Arithmetic::TF32})
        EXPECT_EQ(message_of([&] { make_convolution(kernel, "", arithmetic, target); }),
                  "no exception")
            << kernel.key();
}

TEST(Convolution, HasRoomForThePartOfXThatItReads) {
  Kernel kernel = residual;
  kernel.x[Axis::H] = 60;
  kernel.windows()[1].pad_before = -3;
  for (const KernelKind kind :
       {ConvolutionForward, ConvolutionBackwardData, ConvolutionBackwardFilter}) {
    kernel.kind = kind;
    const Bytes part{8 * 64 * 57 * 56 * size_of(DataType::F32)};
    EXPECT_GE(make_convolution(kernel, "", Arithmetic::F32, Target(h100()))->workspace(), part)
        << kernel.key();
  }
}

TEST(Convolution, OfPaddingAloneIsNotAskedOfCudnn) {
  const Kernel kernel{
      .kind = ConvolutionForward,
      .x = {{2, 3, 1, 0, 4}},
      .y = {{2, 5, 1, 1, 4}},
      .attributes = ConvolutionAttributes{.windows = {{{}, {.pad_before = 1}, {}}}, .bias = true}};
  for (const KernelKind kind :
       {ConvolutionForward, ConvolutionBackwardData, ConvolutionBackwardFilter}) {
    EXPECT_EQ(make_convolution(with_kind(kernel, kind), "", Arithmetic::F32, Target(h100()))
                  ->implementation(),
              "own");
    EXPECT_TRUE(
        convolution_choices(with_kind(kernel, kind), Arithmetic::F32, Target(h100())).empty());
  }
}

TEST(Convolution, SaysWhatItCannotDo) {
  const Target target(h100());
  EXPECT_THAT(message_of<EnvironmentError>(
                  [&] { make_convolution(residual, "abacus", Arithmetic::F32, target); }),
              testing::AllOf(HasSubstr(residual.key()), HasSubstr("abacus")));
}

TEST(Convolution, InNarrowNumbersHasABiasBehindItAndFloatsAsGradientsOfWeights) {
  const Target target(h100());
  for (const Arithmetic arithmetic : {Arithmetic::F16, Arithmetic::BF16}) {
    Kernel biased = residual;
    biased.as<ConvolutionAttributes>().bias = true;
    biased.epilogue().activation = Activation{};
    EXPECT_EQ(message_of([&] { make_convolution(biased, "", arithmetic, target); }),
              "no exception");
    const Kernel filter = with_kind(residual, ConvolutionBackwardFilter);
    const Bytes written_by_cudnn{64 * 64 * 9 * size_of(storage(arithmetic))};
    EXPECT_GE(make_convolution(filter, "", arithmetic, target)->workspace(),
              first_plan(filter, arithmetic, target, [](const Plan&) { return true; })->workspace +
                  written_by_cudnn);
  }
}

TEST(Convolution, WantsADeviceUnlessOneIsDescribed) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0)
    GTEST_SKIP() << "there is a device";
  for (const std::string& message :
       {message_of<EnvironmentError>([] { make_convolution(residual, "", Arithmetic::F32); }),
        message_of<EnvironmentError>([] { convolution_choices(residual, Arithmetic::F32); })})
    EXPECT_THAT(message, HasSubstr("CUDA: asking for the device: "));
}

}  // namespace
}  // namespace stratplan::cudnn
