#include "model/machine/kernel_estimate.hpp"

#include <gtest/gtest.h>

namespace stratplan {
namespace {

/// Returns a 1x1 kernel from `channels` to `filters` channels over `positions` positions.
Kernel pointwise(KernelKind kind, std::int64_t positions, std::int64_t channels,
                 std::int64_t filters) {
  Kernel kernel{.kind = kind};
  kernel.x = {{1, channels, 1, 1, positions}};
  kernel.y = {{1, filters, 1, 1, positions}};
  return kernel;
}

Kernel three_by_three(KernelKind kind, std::int64_t samples, std::int64_t extent,
                      std::int64_t channels) {
  Kernel kernel{.kind = kind};
  kernel.x = kernel.y = {{samples, channels, 1, extent, extent}};
  kernel.windows()[1] = kernel.windows()[2] = {
      .kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  return kernel;
}

/// The shares of a device that names no generation.
const KernelShares shares;
const double bandwidth = shares.bandwidth[0][0], of_peak = shares.product[0][0][0];

/// A device of 80 units of 1 Gflop/s each. Memory and launches cost nothing.
DeviceRates arithmetic_alone() {
  DeviceRates device{80e9, 1e30, {0}, {1 << 30}};
  device.units = 80;
  device.math_flops_per_s[static_cast<std::size_t>(Math::Fp16)] = 640e9;
  return device;
}

double share_of_peak(const Kernel& kernel, const DeviceRates& device) {
  return kernel.flops().value / device.flops_per_s / estimate_kernel(kernel, device).value;
}

TEST(KernelEstimate, WithoutUnitsItIsARoofline) {
  const DeviceRates device{1e9, 1e9, {1e-6}, {1 << 30}};
  const Kernel kernel = pointwise(KernelKind::ConvolutionForward, 1000, 64, 64);
  EXPECT_DOUBLE_EQ(estimate_kernel(kernel, device).value, kernel.flops().value / 1e9 + 1e-6);
}

TEST(KernelEstimate, MemoryBoundKernelsMoveTheirBytesAtAnAttainableRate) {
  DeviceRates device{1e18, 1e9, {1e-6}, {1 << 30}};
  device.units = 80;
  Kernel relu{.kind = KernelKind::PointwiseForward};
  relu.x = relu.y = {{1, 1, 1, 1, 1000}};
  EXPECT_DOUBLE_EQ(estimate_kernel(relu, device).value, 8000 / (1e9 * bandwidth) + 1e-6);
  relu.type = DataType::F16;
  EXPECT_DOUBLE_EQ(estimate_kernel(relu, device).value, 4000 / (1e9 * bandwidth) + 1e-6);
}

TEST(KernelEstimate, LargeProductsComeNearThePeakAndDirectOnesNeverAboveIt) {
  const Kernel large = pointwise(KernelKind::ConvolutionForward, 1 << 20, 1024, 1024);
  EXPECT_GT(share_of_peak(large, arithmetic_alone()), 0.9 * of_peak);
  EXPECT_LT(share_of_peak(large, arithmetic_alone()), of_peak);
}

TEST(KernelEstimate, WinogradExceedsWhatDirectSumsAttain) {
  for (const KernelKind kind : {KernelKind::ConvolutionForward, KernelKind::ConvolutionBackwardData,
                                KernelKind::ConvolutionBackwardFilter}) {
    Kernel kernel = three_by_three(kind, 64, 56, 256);
    const double by_winograd = share_of_peak(kernel, arithmetic_alone());
    kernel.windows()[2].stride = 2;
    kernel.y[Axis::W] = 28;
    const double summed = share_of_peak(kernel, arithmetic_alone());
    EXPECT_LT(summed, of_peak);
    EXPECT_GT(by_winograd, 1);
  }
}

TEST(KernelEstimate, OneTileMoreThanUnitsTakesASecondWave) {
  const auto seconds = [](std::int64_t tiles) {
    return estimate_kernel(pointwise(KernelKind::ConvolutionForward, 256 * tiles, 512, 128),
                           arithmetic_alone())
        .value;
  };
  EXPECT_GT(seconds(84) / seconds(80), 1.2);
  EXPECT_DOUBLE_EQ(seconds(160) / seconds(80), 2);
}

TEST(KernelEstimate, LongSumsOfFewResultsAreSplitOverTheUnits) {
  const Kernel filter = pointwise(KernelKind::ConvolutionBackwardFilter, 1 << 20, 64, 64);
  EXPECT_GT(share_of_peak(filter, arithmetic_alone()), 0.7 * of_peak);
  const Kernel forward =
      pointwise(KernelKind::ConvolutionForward, 64, 64, 64);  // no terms to split: one unit works
  EXPECT_LT(share_of_peak(forward, arithmetic_alone()), 0.1);
}

TEST(KernelEstimate, TensorCoresTakeChannelsByEights) {
  const auto seconds = [](std::int64_t channels) {
    Kernel kernel = pointwise(KernelKind::ConvolutionForward, 1 << 20, channels, 64);
    kernel.type = DataType::F16;
    return estimate_kernel(kernel, arithmetic_alone()).value;
  };
  EXPECT_DOUBLE_EQ(seconds(3), seconds(8));
  EXPECT_GT(seconds(9), seconds(8));
}

/// A device with 1 Gbyte/s and a microsecond per launch, whose arithmetic costs nothing. It has one
/// unit, so no sums are added up through memory.
DeviceRates memory_alone(Math math) {
  DeviceRates device{1e30, 1e9 / bandwidth, {1e-6}, {1 << 30}};
  device.units = 1;
  device.math_flops_per_s.fill(1e30);
  device.math = math;
  return device;
}

/// convolution_graph_test checks that plans for tensor cores have room for exactly these copies.
TEST(KernelEstimate, TensorsWhoseChannelsFillNoTensorCoresAreCopied) {
  struct Row {
    const char* what;
    std::int64_t channels, filters, groups;
    Math math;
    DataType type;
    double bytes;  ///< for 1000 positions: of the product, then of each copy, as stored plus padded
    int copies = 0;
  };
  using enum DataType;
  const Row table[] = {
      {"whole eights", 64, 24, 1, Math::Fp32, F16, 2 * (64e3 + 24e3 + 64 * 24)},
      {"an image", 3, 64, 1, Math::Fp32, BF16,
       2 * (8e3 + 64e3 + 8 * 64 + (3e3 + 8e3) + (3 * 64 + 8 * 64)), 2},
      {"odd filters", 64, 66, 1, Math::Fp32, BF16,
       2 * (64e3 + 72e3 + 64 * 72 + (66e3 + 72e3) + (64 * 66 + 64 * 72)), 2},
      {"both odd", 12, 66, 1, Math::Fp32, F16,
       2 * (16e3 + 72e3 + 16 * 72 + (12e3 + 16e3) + (66e3 + 72e3) + (12 * 66 + 16 * 72)), 3},
      {"floats come in fours", 12, 66, 1, Math::Tf32, F32,
       4 * (12e3 + 68e3 + 12 * 68 + (66e3 + 68e3) + (12 * 66 + 12 * 68)), 2},
      {"no tensor cores", 3, 66, 1, Math::Fp32, F32, 4 * (3e3 + 66e3 + 3 * 66)},
      {"each group for itself", 96, 128, 8, Math::Fp32, BF16,
       2 * (128e3 + 128e3 + 16 * 128 + (96e3 + 128e3) + (12 * 128 + 16 * 128)), 2},
      {"groups that are no products", 36, 36, 9, Math::Fp32, BF16, 2 * (36e3 + 36e3 + 4 * 36)},
  };
  for (const Row& row : table)
    for (const KernelKind kind :
         {KernelKind::ConvolutionForward, KernelKind::ConvolutionBackwardData,
          KernelKind::ConvolutionBackwardFilter}) {
      Kernel kernel = pointwise(kind, 1000, row.channels, row.filters);
      kernel.as<ConvolutionAttributes>().groups = row.groups;
      kernel.type = row.type;
      EXPECT_NEAR(estimate_kernel(kernel, memory_alone(row.math)).value,
                  row.bytes / 1e9 + (1 + row.copies) * 1e-6, 1e-12)
          << row.what;
    }
}

TEST(KernelEstimate, CopiesAreMadeBeforeTheProductNotBesideIt) {
  Kernel kernel = pointwise(KernelKind::ConvolutionForward, 1 << 20, 9, 64);
  kernel.type = DataType::F16;
  DeviceRates device = arithmetic_alone();
  const double product = estimate_kernel(kernel, device).value;
  // The memory is fast enough for the product to hide its own traffic.
  device.bytes_per_s = 1e12 / bandwidth;
  const double copied = 2.0 * ((1 << 20) * (9 + 16) + 64 * (9 + 16));
  EXPECT_NEAR(estimate_kernel(kernel, device).value, product + copied / 1e12, 1e-9);
}

TEST(KernelEstimate, VectorsAreFilledWithFiltersAndCoresWithRows) {
  DeviceRates device = arithmetic_alone();
  device.vector_width = 16;
  const auto seconds = [&](std::int64_t filters, std::int64_t rows) {
    Kernel kernel = pointwise(KernelKind::ConvolutionForward, 100, 64, filters);
    kernel.x[Axis::H] = kernel.y[Axis::H] = rows;
    return estimate_kernel(kernel, device).value;
  };
  EXPECT_DOUBLE_EQ(seconds(17, 80), seconds(32, 80));
  EXPECT_DOUBLE_EQ(seconds(16, 1), seconds(16, 80));
}

TEST(KernelEstimate, BackwardDataOfAStrideCostsWhatIsReached) {
  Kernel kernel = pointwise(KernelKind::ConvolutionBackwardData, 1 << 18, 256, 256);
  const double dense = estimate_kernel(kernel, arithmetic_alone()).value;
  kernel.windows()[2].stride = 2;
  kernel.x[Axis::W] = 1 << 19;
  EXPECT_DOUBLE_EQ(estimate_kernel(kernel, arithmetic_alone()).value, dense);
}

TEST(KernelEstimate, TensorCoresTakeNoTensorsOf2To31Elements) {
  const auto of_positions = [](std::int64_t positions, DataType type) {
    Kernel kernel = pointwise(KernelKind::ConvolutionForward, positions, 32, 32);
    kernel.type = type;
    return share_of_peak(kernel, arithmetic_alone());
  };
  EXPECT_GT(of_positions((1 << 26) - 1, DataType::F16), 1);
  EXPECT_DOUBLE_EQ(of_positions(1 << 26, DataType::F16), 0.36 * of_peak);
  EXPECT_GT(of_positions(1 << 26, DataType::F32), 0.36 * of_peak)
      << "other arithmetic has no such bound";
}

TEST(KernelEstimate, DepthwiseKernelsAreNoMatrixProducts) {
  Kernel kernel = three_by_three(KernelKind::ConvolutionForward, 8, 28, 512);
  kernel.as<ConvolutionAttributes>().groups = 512;
  EXPECT_DOUBLE_EQ(share_of_peak(kernel, arithmetic_alone()), of_peak);
}

TEST(KernelEstimate, ChannelsFirstCostTransposesOnTensorCores) {
  Kernel kernel = pointwise(KernelKind::ConvolutionForward, 1000, 64, 64);
  kernel.type = DataType::F16;
  DeviceRates device = memory_alone(Math::Fp32);
  const double last = estimate_kernel(kernel, device).value;
  device.channels_first = true;
  const double moved = 2.0 * 2 * (64e3 + 64e3);  // x and y, read and written
  EXPECT_NEAR(estimate_kernel(kernel, device).value,
              last + moved / 1e9 * shares.transposes[static_cast<std::size_t>(Math::Fp16)], 1e-12);
  kernel.type = DataType::F32;
  const double first = estimate_kernel(kernel, device).value;
  device.channels_first = false;
  EXPECT_DOUBLE_EQ(estimate_kernel(kernel, device).value, first) << "no tensor cores";
}

TEST(KernelEstimate, EachFamilyAndDirectionHasItsShare) {
  DeviceRates device = arithmetic_alone();
  const auto forward = static_cast<std::size_t>(Direction::Forward);
  device.shares.product[0][static_cast<std::size_t>(KernelFamily::Convolution1x1)][forward] = 0.35;
  const Kernel y = pointwise(KernelKind::ConvolutionForward, 1 << 20, 1024, 1024);
  const Kernel dx = pointwise(KernelKind::ConvolutionBackwardData, 1 << 20, 1024, 1024);
  EXPECT_NEAR(share_of_peak(y, device), share_of_peak(y, arithmetic_alone()) / 2, 1e-12);
  EXPECT_DOUBLE_EQ(share_of_peak(dx, device), share_of_peak(dx, arithmetic_alone()));
}

TEST(KernelShares, AreThoseOfTheGenerationTimesTheSpeedOfTheDevice) {
  const KernelShares other = read_kernel_shares("no generation", "");
  EXPECT_EQ(read_kernel_shares("other", ""), other);
  for (const char* generation : {"sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90"}) {
    const KernelShares of = read_kernel_shares(generation, "");
    EXPECT_NE(of, other) << generation;
    for (std::size_t math = 0; math < math_count; ++math)
      for (const auto& family : of.product[math])
        for (const double share : family) EXPECT_TRUE(share > 0.01 && share < 1.2) << generation;
    for (const auto& family : of.bandwidth)
      for (const double share : family) EXPECT_TRUE(share > 0.02 && share < 2) << generation;
  }
  const double t4 = read_kernel_shares("sm_75", "t4").bandwidth[0][0];
  EXPECT_LT(t4, read_kernel_shares("sm_75", "").bandwidth[0][0]) << "70 W limit a T4";
}

}  // namespace
}  // namespace stratplan
