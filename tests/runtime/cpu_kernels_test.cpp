// Compares the cpu backend with the reference backend: every kind, at odd shapes. Without the cpu
// backend the tests are skipped.
#include <gtest/gtest.h>

#include <set>

#include "model/network/limits.hpp"
#include "runtime/kernel_cases.hpp"

namespace stratplan {
namespace {

using enum KernelKind;
using test::convolutions;
using test::Random;
using test::Values;
using namespace test::kernel_cases;

class CpuKernels : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!cpu_part().built) GTEST_SKIP() << cpu_part().description;
  }
};

TEST_P(CpuKernels, EqualTheReference) {
  for (int kind = 0; kind < kernel_kind_count; ++kind) {
    const std::vector<Kernel> kernels = cases_of(static_cast<KernelKind>(kind));
    EXPECT_FALSE(kernels.empty()) << name_of(static_cast<KernelKind>(kind));
    const auto backend = make_cpu_backend(GetParam());
    Random random(static_cast<unsigned>(100 + kind));
    for (const Kernel& kernel : kernels) {
      const bool converts = kernel.kind == Convert || kernel.kind == Widen;
      if ((is_narrow(kernel.type) && !converts) || kernel.kind == Unscale ||
          kernel.kind == AdjustLossScale) {
        EXPECT_THROW(backend->prepare(kernel), EnvironmentError);
        continue;
      }
      compare(*backend, kernel, random);
      if (HasFatalFailure()) break;
    }
  }
}

TEST_P(CpuKernels, RepeatBitByBit) {
  Random random(5);
  for (KernelKind kind : {ConvolutionForward, ConvolutionBackwardData, ConvolutionBackwardFilter,
                          BatchNormStatistics, MaxPoolBackward}) {
    const auto backend = make_cpu_backend(GetParam());
    const Kernel kernel = cases_of(kind).back();
    const auto reads = operands(kernel, random);
    EXPECT_EQ(test::run(*backend, kernel, reads), test::run(*backend, kernel, reads))
        << kernel.key();
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, CpuKernels, ::testing::Values(1, 3));

TEST_F(CpuKernels, OfAnyExtentsCanBePrepared) {  // for these oneDNN would divide by zero, or fault
  constexpr std::int64_t most = largest_extent;
  const auto square = [](std::int64_t kernel) {
    return std::array<Window, 3>{
        Window{},
        {.kernel = kernel, .pad_before = kernel / 2, .pad_after = kernel / 2},
        {.kernel = kernel, .pad_before = kernel / 2, .pad_after = kernel / 2}};
  };
  struct Row {
    Shape x;
    std::int64_t filters, kernel;
  };
  const Row table[] = {{{{4, 2, 1, 8, 8}}, std::int64_t{1} << 30, 3},
                       {{{4, 2, 1, 8, 8}}, most, 3},
                       {{{4, most, 1, 8, 8}}, 4, 7},
                       {{{4, most, 1, 8, 8}}, 4, 1},
                       {{{4, 2, 1, most - 2, 8}}, 4, 3},
                       {{{4, 521, 1, 18, most / 2}}, 1, 3},
                       {{{most, 2, 1, 8, 8}}, 4, 3},
                       {{{1, 16, 1, 2048, 2048}}, 32, 2047}};
  const auto backend = make_cpu_backend(1);
  for (const Row& row : table) {
    Shape y = row.x;
    y[Axis::C] = row.filters;
    for (const KernelKind kind :
         {ConvolutionForward, ConvolutionBackwardData, ConvolutionBackwardFilter}) {
      const Kernel kernel{.kind = kind,
                          .x = row.x,
                          .y = y,
                          .attributes = ConvolutionAttributes{.windows = square(row.kernel)}};
      const auto prepared = backend->prepare(kernel);
      EXPECT_GE(prepared->workspace().value, 0) << kernel.key() << prepared->implementation();
    }
  }
}

// A block whose windows lie outside the tensor: x is empty.
TEST_F(CpuKernels, AnInputOfNothingButPadding) {
  Kernel kernel{
      .kind = ConvolutionForward,
      .x = {{2, 3, 1, 0, 4}},
      .y = {{2, 5, 1, 1, 4}},
      .attributes = ConvolutionAttributes{.windows = {{{}, {.pad_before = 1}, {}}}, .bias = true}};
  Random random(6);
  const auto backend = make_cpu_backend(1);
  compare(*backend, kernel, random);
  kernel.as<ConvolutionAttributes>().bias = false;
  compare(*backend, kernel, random);
  kernel.kind = ConvolutionBackwardFilter;
  compare(*backend, kernel, random);
  kernel.kind = ConvolutionBackwardData;
  compare(*backend, kernel, random);
}

TEST_F(CpuKernels, InPlace) {  // element-wise kernels may overwrite their inputs
  Random random(8);
  const auto backend = make_cpu_backend(1);
  const Shape shape{{2, 19, 1, 6, 7}};
  const NormalizationAttributes normalization{
      .epsilon = 1e-5, .sets = {.set_samples = 2, .batch = 2, .positions = 42}};
  std::vector<Kernel> kernels{{.kind = BiasAdd},
                              {.kind = Add, .attributes = AddAttributes{3}},
                              {.kind = BatchNormForward, .attributes = normalization},
                              {.kind = PreluForward},
                              {.kind = SoftmaxForward}};
  for (const PointwiseFunction function : all_pointwise_functions)
    for (const KernelKind kind : {PointwiseForward, PointwiseBackward})
      kernels.push_back({.kind = kind, .attributes = test::tested(function)});
  for (Kernel& kernel : kernels) {
    kernel.x = kernel.y = shape;
    std::vector<Values> reads = operands(kernel, random);
    const auto expected = test::run(*make_reference_backend(), kernel, reads);
    const std::size_t overwritten =
        kernel.kind == Add || kernel.kind == PointwiseBackward ? reads.size() - 1 : 0;
    const auto prepared = backend->prepare(kernel);
    std::vector<char> workspace(static_cast<std::size_t>(prepared->workspace().value) + 64);
    std::vector<const void*> from;
    for (Values& values : reads) from.push_back(test::data_of(values));
    void* to = test::data_of(reads[overwritten]);
    backend->enqueue(Stream::Compute, *prepared, from, std::span<void* const>(&to, 1),
                     workspace.data(), test::whole_context(kernel));
    expect_equal(kernel, {reads[overwritten]}, expected);
  }
}

TEST_F(CpuKernels, NeverThePlainLoopsOfTheLibrary) {  // they are thousands of times slower
  for (KernelKind kind : {ConvolutionForward, ConvolutionBackwardData, ConvolutionBackwardFilter}) {
    const auto backend = make_cpu_backend(1);
    for (const Kernel& kernel : convolutions(kind))
      EXPECT_EQ(backend->prepare(kernel)->implementation().find("ref"), std::string::npos)
          << kernel.key();
  }
}

TEST_F(CpuKernels, ChoicesBeginWithTheRules) {
  const auto backend = make_cpu_backend(1);
  std::set<std::string> names;
  for (KernelKind kind : {ConvolutionForward, ConvolutionBackwardData, ConvolutionBackwardFilter}) {
    for (const Kernel& kernel : convolutions(kind)) {
      const std::vector<std::string> choices = backend->choices(kernel);
      EXPECT_NE(choices.size(), 1u) << kernel.key();
      if (choices.empty()) continue;
      EXPECT_EQ(backend->prepare(kernel, choices[0])->implementation(),
                backend->prepare(kernel)->implementation())
          << kernel.key();
      names.insert(choices.begin(), choices.end());
    }
  }
  for (const char* name : {"matrix_product", "winograd", "unfolded", "channels_last", "blocked"})
    EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_THROW(backend->prepare(convolutions(ConvolutionForward).front(), "abacus"),
               std::runtime_error);
}

TEST_F(CpuKernels, DepthwiseIsGenerated) {
  const Window window{.kernel = 3, .pad_before = 1, .pad_after = 1};
  for (const std::int64_t channels : {16, 13})
    for (KernelKind kind :
         {ConvolutionForward, ConvolutionBackwardData, ConvolutionBackwardFilter}) {
      const Shape shape{{2, channels, 1, 9, 9}};
      const Kernel kernel{.kind = kind,
                          .x = shape,
                          .y = shape,
                          .attributes = ConvolutionAttributes{.windows = {{{}, window, window}},
                                                              .groups = channels}};
      const std::string implementation = make_cpu_backend(1)->prepare(kernel)->implementation();
      const auto named = [&](const char* word) {
        return implementation.find(word) != std::string::npos;
      };
      EXPECT_TRUE(named("jit") || named("brdgmm"))
          << kernel.key() << ": " << implementation;  // brdgmm with AVX-512
      EXPECT_FALSE(named("gemm")) << kernel.key() << ": " << implementation;
    }
}

TEST(Backends, AreMadeByName) {
  EXPECT_EQ(make_backend("reference", 1)->name(), "reference");
  EXPECT_THROW(make_backend("abacus", 1), std::runtime_error);
  if (cpu_part().built)
    EXPECT_EQ(make_backend("cpu", 1)->name(), "cpu");
  else
    EXPECT_THROW(make_backend("cpu", 1), std::runtime_error);
  EXPECT_THROW(make_backend("cuda", 1), std::runtime_error);
}

}  // namespace
}  // namespace stratplan
