// Scratch memory of the cuda backend's kernels on offline devices.
#include "runtime/device/offline_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/in_parallel.hpp"
#include "runtime/cuda/cudnn/convolution.hpp"

namespace stratplan::offline_device_test {
namespace {

using cudnn::Arithmetic;
using enum KernelKind;

Kernel residual(KernelKind kind, DataType type = DataType::F32) {
  constexpr Window same{3, 1, 1, 1, 1};
  return {.kind = kind,
          .x = {{8, 66, 1, 56, 56}},
          .y = {{8, 64, 1, 56, 56}},
          .type = type,
          .attributes = ConvolutionAttributes{.windows = {Window{}, same, same}}};
}

TEST(OfflineDevice, TakesWhatThePlanOfTheRuleTakes) {
  struct Row {
    const char* device;
    cudnn::DeviceProperties properties;
    bool tf32;
    DataType type;
    Arithmetic arithmetic;
  };
  const Row table[] = {
      {"h100", cudnn::h100(), false, DataType::F32, Arithmetic::F32},
      {"h100", cudnn::h100(), true, DataType::F32, Arithmetic::TF32},
      {"h100", cudnn::h100(), true, DataType::BF16, Arithmetic::BF16},
      {"h200", cudnn::h200(), false, DataType::F16, Arithmetic::F16},
      {"h200", cudnn::h200(), false, DataType::F32, Arithmetic::F32},
  };
  for (const Row& row : table) {
    const std::optional<OfflineDevice> device = offline_device(row.device, row.tf32);
    ASSERT_TRUE(device);
    EXPECT_THAT(device->library, testing::StartsWith("cuDNN 9."));
    for (const KernelKind kind :
         {ConvolutionForward, ConvolutionBackwardData, ConvolutionBackwardFilter}) {
      const Kernel kernel = residual(kind, row.type);
      const Bytes taken =
          cudnn::make_convolution(kernel, "", row.arithmetic, cudnn::Target(row.properties))
              ->workspace();
      EXPECT_EQ(device->workspace(kernel), taken) << row.device << " " << kernel.key();
      EXPECT_GT(taken.value, 0) << "a tensor of 66 channels is copied";
    }
  }
}

TEST(OfflineDevice, KnowsOwnKernelsToo) {
  const Kernel sums{.kind = BiasGradient, .x = {{8, 64, 1, 56, 56}}, .y = {{8, 64, 1, 56, 56}}};
  EXPECT_EQ(offline_device("h100", false)->workspace(sums), make_own_kernel(sums)->workspace());
  EXPECT_GT(make_own_kernel(sums)->workspace().value, 0);
}

TEST(OfflineDevice, IsAskedFromSeveralThreads) {
  const OfflineDevice device = *offline_device("h100", false);
  std::array<Bytes, 6> answers{};
  in_parallel(answers.size(), [&](std::size_t i) {
    answers[i] =
        device.workspace(residual(i % 2 == 0 ? ConvolutionForward : ConvolutionBackwardData));
  });
  for (std::size_t i = 2; i < answers.size(); ++i) EXPECT_EQ(answers[i], answers[i % 2]);
}

TEST(OfflineDevice, IsNoneThatNobodyDescribed) {
  for (const char* name : {"", "v100-16", "h1000"})
    EXPECT_FALSE(offline_device(name, false)) << name;
}

}  // namespace
}  // namespace stratplan::offline_device_test
