#include "model/machine/kernel_family.hpp"

#include <gtest/gtest.h>

#include "model/network/network.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {
namespace {

Kernel convolution(std::int64_t channels, std::int64_t filters, Windows windows, int groups,
                   Shape outputs) {
  Kernel kernel{KernelKind::ConvolutionForward};
  kernel.x = outputs;
  kernel.x[Axis::C] = channels;
  kernel.y = outputs;
  kernel.y[Axis::C] = filters;
  kernel.as<ConvolutionAttributes>().windows = windows;
  kernel.as<ConvolutionAttributes>().groups = groups;
  return kernel;
}

TEST(KernelFamily, ConvolutionsAreToldApartByWindowAndGroups) {
  const Window one{}, three{3, 1, 1}, seven{7, 2, 3};
  const Shape image{8, 64, 1, 28, 28}, volume{8, 64, 28, 28, 28}, vector{8, 64, 1, 1, 1};
  const struct {
    const char* expected;
    Kernel kernel;
  } rows[] = {
      {"conv_1x1", convolution(64, 64, {one, one, one}, 1, image)},
      {"conv_3x3", convolution(64, 64, {one, three, three}, 1, image)},
      {"conv_3x3", convolution(64, 64, {one, one, three}, 1, image)},
      {"conv_large", convolution(64, 64, {one, seven, seven}, 1, image)},
      {"conv_large", convolution(3, 64, {one, three, three}, 1, image)},
      {"conv_grouped", convolution(64, 64, {one, three, three}, 32, image)},
      {"conv_depthwise", convolution(64, 64, {one, three, three}, 64, image)},
      {"conv_3d", convolution(64, 64, {three, three, three}, 1, volume)},
      {"product", convolution(64, 64, {one, one, one}, 1, vector)},
  };
  for (const auto& row : rows)
    EXPECT_EQ(name_of(family_of(row.kernel)), row.expected) << row.kernel.key();
}

TEST(KernelFamily, EveryKindHasAFamilyThatFitsItsRole) {
  for (int kind = 0; kind < kernel_kind_count; ++kind) {
    const Kernel kernel{static_cast<KernelKind>(kind)};
    EXPECT_EQ(family_of(kernel) == KernelFamily::Update, is_update(kernel.kind))
        << name_of(kernel.kind);
    const bool normalizes = family_of(kernel) == KernelFamily::Normalization ||
                            family_of(kernel) == KernelFamily::SampleNormalization;
    EXPECT_EQ(normalizes, name_of(kernel.kind).find("norm_") != std::string_view::npos)
        << name_of(kernel.kind);
  }
}

}  // namespace
}  // namespace stratplan
