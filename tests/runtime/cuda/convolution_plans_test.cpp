// cuDNN can run all that the planner may plan. Each local convolution of the shipped networks has a
// plan in fp32. In bf16, with channels in multiples of 8, it has a plan that uses tensor cores and
// copies nothing first. The tests use descriptions of two devices, not a device.
#include <gtest/gtest.h>

#include <limits>

#include "runtime/cuda/cudnn/convolution_graph.hpp"
#include "runtime/cuda/cudnn/cropped.hpp"
#include "runtime/cuda/shipped_convolutions.hpp"

namespace stratplan::test {
namespace {

using namespace cudnn;

const std::vector<int> ranks{1, 2, 4, 8};

/// Returns the kernel with tensors as they are stored for tensor cores.
Kernel padded(Kernel kernel, Arithmetic arithmetic) {
  const std::int64_t multiple = channel_multiple(arithmetic);
  for (Shape* shape : {&kernel.x, &kernel.y})
    (*shape)[Axis::C] = ((*shape)[Axis::C] + multiple - 1) / multiple * multiple;
  return kernel;
}

/// Returns the distinct kernels on the part of x that they read. Blocks that read only padding do
/// not use cuDNN.
std::set<Kernel> asked_of_cudnn(const std::set<Kernel>& kernels) {
  std::set<Kernel> asked;
  for (const Kernel& kernel : kernels)
    if (const Kernel read = cropped(kernel).kernel; read.x.elements() > 0) asked.insert(read);
  return asked;
}

void expect_plans_in_fp32(const std::set<Kernel>& kernels, const Target& target) {
  for (const Kernel& kernel : kernels)
    EXPECT_TRUE(first_plan(kernel, Arithmetic::F32, target, [](const Plan&) { return true; }))
        << kernel.key();
}

/// Returns a predicate for plans that use tensor cores, copy nothing first, and need no driver.
std::function<bool(const Plan&)> on_tensor_cores(const Kernel& kernel, Arithmetic arithmetic) {
  return [=](const Plan& plan) {
    return plan.config.tensor_cores && !plan.config.compiled_at_run_time &&
           !hidden_repack(plan, kernel, arithmetic);
  };
}

/// Returns whether a tensor has more elements than engines on tensor cores can count, in 32 bits.
bool is_huge(const Kernel& kernel) {
  return std::max(kernel.x.elements(), kernel.y.elements()) >
         std::numeric_limits<std::int32_t>::max();
}

/// Kernels in groups and huge kernels are not checked: HaveTheseExceptions lists them.
void expect_plans_on_tensor_cores(const std::set<Kernel>& kernels, const Target& target) {
  std::set<Kernel> stored;
  for (const Kernel& kernel : kernels)
    if (kernel.as<ConvolutionAttributes>().groups == 1)
      stored.insert(padded(kernel, Arithmetic::BF16));
  std::erase_if(stored, is_huge);
  for (const Kernel& kernel : stored) {
    EXPECT_TRUE(
        first_plan(kernel, Arithmetic::BF16, target, on_tensor_cores(kernel, Arithmetic::BF16)))
        << kernel.key();
  }
}

/// Returns whether cuDNN's precompiled engines are installed. Without them these tests cannot run.
bool has_precompiled_engines() {
  const Kernel kernel{
      .kind = KernelKind::ConvolutionForward, .x = {{1, 8, 1, 8, 8}}, .y = {{1, 8, 1, 8, 8}}};
  return first_plan(kernel, Arithmetic::BF16, Target(h100()),
                    [](const Plan& plan) { return !plan.config.compiled_at_run_time; })
      .has_value();
}
constexpr const char* no_engines =
    "cuDNN's precompiled engines are not installed, and others need a driver";

std::set<Kernel> every(std::size_t step, const std::set<Kernel>& kernels) {
  std::set<Kernel> some;
  std::size_t i = 0;
  for (const Kernel& kernel : kernels)
    if (i++ % step == 0) some.insert(kernel);
  return some;
}

/// Samples residual blocks, volumes, and transposed convolutions.
TEST(ConvolutionPlans, AreThereForASample) {
  if (!has_precompiled_engines()) GTEST_SKIP() << no_engines;
  for (const char* network : {"resnet50", "unet3d", "cosmogan_generator"}) {
    const std::set<Kernel> kernels =
        every(97, asked_of_cudnn(convolutions_of(read_network(network), {2, 4, 8})));
    ASSERT_GT(kernels.size(), 10U);
    for (const DeviceProperties& device : {h100(), h200()}) {
      SCOPED_TRACE(std::string(network) + " on " + device.name);
      expect_plans_in_fp32(kernels, Target(device));
      expect_plans_on_tensor_cores(kernels, Target(device));
    }
  }
}

/// Kernels that lack a plan on tensor cores without copies, and need none. If one of them gets such
/// a plan, costs and padding may rely on it.
TEST(ConvolutionPlans, HaveTheseExceptions) {
  if (!has_precompiled_engines()) GTEST_SKIP() << no_engines;
  struct Row {
    const char* reason;
    Kernel kernel;
    Arithmetic arithmetic;
  };
  constexpr Window same{3, 1, 1, 1, 1}, stem{7, 2, 1, 3, 3};
  using enum KernelKind;
  const Row table[] = {
      {"fp32 is exact, and tensor cores are not",
       {.kind = ConvolutionForward,
        .x = {{8, 64, 1, 56, 56}},
        .y = {{8, 64, 1, 56, 56}},
        .attributes = ConvolutionAttributes{.windows = {Window{}, same, same}}},
       Arithmetic::F32},
      {"three channels fill no 16 bytes",
       {.kind = ConvolutionForward,
        .x = {{8, 3, 1, 224, 224}},
        .y = {{8, 64, 1, 112, 112}},
        .attributes = ConvolutionAttributes{.windows = {Window{}, stem, stem}}},
       Arithmetic::BF16},
      {"nor do the channels of a group",
       {.kind = ConvolutionForward,
        .x = {{8, 64, 1, 56, 56}},
        .y = {{8, 64, 1, 56, 56}},
        .attributes = ConvolutionAttributes{.windows = {Window{}, same, same}, .groups = 64}},
       Arithmetic::BF16},
      {"2^31 elements are too many to count",
       {.kind = ConvolutionForward,
        .x = {{1, 8, 512, 512, 512}},
        .y = {{1, 16, 512, 512, 512}},
        .attributes = ConvolutionAttributes{.windows = {same, same, same}}},
       Arithmetic::BF16},
  };
  for (const Row& row : table)
    EXPECT_FALSE(first_plan(row.kernel, row.arithmetic, Target(h100()),
                            on_tensor_cores(row.kernel, row.arithmetic)))
        << row.reason;
}

class ConvolutionPlansSweep : public testing::TestWithParam<std::string> {};

TEST_P(ConvolutionPlansSweep, AreThereForAll) {
  if (!has_precompiled_engines()) GTEST_SKIP() << no_engines;
  const std::set<Kernel> kernels = asked_of_cudnn(convolutions_of(read_network(GetParam()), ranks));
  for (const DeviceProperties& device : {h100(), h200()}) {
    SCOPED_TRACE(device.name);
    expect_plans_in_fp32(kernels, Target(device));
    expect_plans_on_tensor_cores(kernels, Target(device));
  }
}

INSTANTIATE_TEST_SUITE_P(ShippedNetworks, ConvolutionPlansSweep,
                         testing::ValuesIn(shipped_networks()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace stratplan::test
