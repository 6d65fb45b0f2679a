// The CUDA backend's own kernels, without a device. They are functions of an index
// (runtime/cuda/kernels/support/launch.hpp), which a loop calls here. The results are compared with
// the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "model/partition/program/contraction.hpp"
#include "runtime/cuda/kernels/support/run.hpp"
#include "runtime/device/host_backend.hpp"
#include "runtime/kernel_cases.hpp"

namespace stratplan {
namespace {

using enum KernelKind;
using test::Random;
using test::Values;
using namespace test::kernel_cases;

std::vector<KernelKind> own_kinds() {
  std::vector<KernelKind> kinds;
  for (int kind = 0; kind < kernel_kind_count; ++kind)
    if (!is_contraction(static_cast<KernelKind>(kind)))
      kinds.push_back(static_cast<KernelKind>(kind));
  return kinds;
}

/// Returns every third case, which is enough for comparisons bit by bit.
std::vector<Kernel> some_cases_of(KernelKind kind) {
  const std::vector<Kernel> all = cases_of(kind);
  std::vector<Kernel> kernels;
  for (std::size_t i = 0; i < all.size(); i += 3) kernels.push_back(all[i]);
  return kernels;
}

/// Calls `work` with all indices in a scattered order, as threads might. The stride has no divisor
/// in common with their number.
struct ScatteredLaunch {
  template <class Work>
  void operator()(std::int64_t count, Work work) const {
    std::int64_t stride = count * 5 / 8 + 1;
    while (std::gcd(stride, count) > 1) ++stride;
    for (std::int64_t i = 0; i < count; ++i) work((i * stride + count / 2) % count);
  }
};

/// Runs in scratch memory of exactly the size that the kernel asks for, and checks that the bytes
/// behind it stay unchanged.
template <class Launch>
class OwnKernel : public HostKernel {
 public:
  explicit OwnKernel(const Kernel& kernel) : kernel_(kernel) {}
  std::string implementation() const override { return "own"; }
  void run(const KernelCall& call) override {
    const auto bytes = static_cast<std::size_t>(cuda_kernels::workspace(kernel_).value);
    std::vector<unsigned char> room(bytes + guard, filling);
    cuda_kernels::run(kernel_, {call.reads, call.writes, room.data(), call.context}, Launch{});
    EXPECT_EQ(std::count(room.begin() + static_cast<std::ptrdiff_t>(bytes), room.end(), filling),
              std::ptrdiff_t{guard})
        << kernel_.key();
  }

 private:
  static constexpr int guard = 64;
  static constexpr unsigned char filling = 0x7f;
  Kernel kernel_;
};

template <class Launch>
class OwnBackend : public HostBackend {
 public:
  std::string name() const override { return "own"; }
  std::unique_ptr<PreparedKernel> prepare(const Kernel& kernel, const std::string&) override {
    check_shapes(kernel);
    return std::make_unique<OwnKernel<Launch>>(kernel);
  }
};
using SerialBackend = OwnBackend<cuda_kernels::SerialLaunch>;

TEST(CudaKernels, EqualTheReference) {
  SerialBackend backend;
  for (KernelKind kind : own_kinds()) {
    const std::vector<Kernel> kernels = cases_of(kind);
    EXPECT_FALSE(kernels.empty()) << name_of(kind);
    Random random(static_cast<unsigned>(kind));
    for (const Kernel& kernel : kernels) {
      compare(backend, kernel, random);
      if (HasFatalFailure()) break;
    }
  }
}

TEST(CudaKernels, EqualTheReferenceOnNarrowNumbers) {
  SerialBackend backend;
  for (const DataType type : {DataType::F16, DataType::BF16})
    for (KernelKind kind : own_kinds()) {
      if (!works_on_activations(kind)) continue;
      Random random(static_cast<unsigned>(kind));
      for (Kernel kernel : some_cases_of(kind)) {
        kernel.type = type;
        compare(backend, kernel, random);
        if (HasFatalFailure()) return;
      }
    }
}

TEST(CudaKernels, ScaleTheLossAndLeaveOutWhatOverflowed) {
  SerialBackend backend;
  Random random(9);
  for (KernelKind kind : {SoftmaxCrossEntropy, WeightedCrossEntropy, ElementwiseLoss, DiceLoss, Sgd,
                          SgdMomentum, SgdNesterov, Adam, AdamW, Lars, RunningAverage})
    for (Kernel kernel : cases_of(kind)) {
      std::visit(
          [](auto& of) {
            if constexpr (requires { of.scaled; }) of.scaled = true;
          },
          kernel.attributes);
      compare(backend, kernel, random);
    }
}

TEST(CudaKernels, AreAllButConvolutions) {
  SerialBackend backend;
  Random random(1);
  for (int kind = 0; kind < kernel_kind_count; ++kind) {
    const Kernel kernel = cases_of(static_cast<KernelKind>(kind)).front();
    if (is_contraction(kernel.kind)) {
      EXPECT_THROW(cuda_kernels::run(kernel, {{}, {}, nullptr, {}}, cuda_kernels::SerialLaunch()),
                   std::logic_error);
    } else {
      EXPECT_NO_THROW(test::run(backend, kernel, operands(kernel, random))) << name_of(kernel.kind);
    }
  }
}

TEST(CudaKernels, TheOrderOfIndicesDoesNotMatter) {
  SerialBackend serial;
  OwnBackend<ScatteredLaunch> scattered;
  Random random(2);
  for (KernelKind kind : own_kinds())
    for (const Kernel& kernel : some_cases_of(kind)) {
      const auto reads = operands(kernel, random);
      std::vector<Values> before;
      for (const Operand& operand : kernel.operands().writes)
        before.push_back(test::random_values(operand, random, 1000));
      const auto run = [&](Backend& backend) {
        return test::run(backend, kernel, reads, inner_context(kernel), before);
      };
      EXPECT_EQ(run(serial), run(scattered)) << kernel.key();
    }
}

/// A copy of values that begins one element behind a multiple of a pack's size.
struct Unaligned {
  explicit Unaligned(const Values& values) {
    std::visit(
        [&](const auto& v) {
          element = sizeof(v[0]), bytes = v.size() * element, source = v.data();
        },
        values);
    room.resize(bytes + 2 * cuda_kernels::pack_bytes);
    const auto at = reinterpret_cast<std::uintptr_t>(room.data());
    begin = room.data() +
            (cuda_kernels::pack_bytes - at % cuda_kernels::pack_bytes) % cuda_kernels::pack_bytes +
            element;
    if (bytes > 0) std::memcpy(begin, source, bytes);
  }
  Values values(Values like) const {
    if (bytes > 0) std::memcpy(test::data_of(like), begin, bytes);
    return like;
  }
  std::vector<char> room;
  char* begin = nullptr;
  const void* source = nullptr;
  std::size_t element = 0, bytes = 0;
};

TEST(CudaKernels, NeitherDoesTheAlignmentOfBuffers) {
  SerialBackend backend;
  Random random(3);
  for (KernelKind kind : own_kinds())
    for (const Kernel& kernel : some_cases_of(kind)) {
      const auto reads = operands(kernel, random);
      std::vector<Values> before;
      for (const Operand& operand : kernel.operands().writes)
        before.push_back(test::random_values(operand, random, 1000));
      std::vector<Unaligned> from(reads.begin(), reads.end()), to(before.begin(), before.end());
      std::vector<const void*> sources;
      std::vector<void*> destinations;
      for (const Unaligned& values : from) sources.push_back(values.begin);
      for (const Unaligned& values : to) destinations.push_back(values.begin);
      const KernelContext context = inner_context(kernel);
      OwnKernel<cuda_kernels::SerialLaunch>(kernel).run({sources, destinations, nullptr, context});
      std::vector<Values> actual;
      for (std::size_t w = 0; w < to.size(); ++w) actual.push_back(to[w].values(before[w]));
      EXPECT_EQ(actual, test::run(backend, kernel, reads, context, before)) << kernel.key();
    }
}

/// The outputs that may overwrite an input: pairs of write and read.
struct InPlaceRow {
  KernelKind kind;
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  bool fused = false;  ///< with an addend and a ReLU
};

TEST(CudaKernels, InPlace) {
  const InPlaceRow rows[] = {
      {BiasAdd, {{0, 0}}},
      {BiasAdd, {{0, 0}}, true},
      {BiasGradient, {{1, 0}}, true},
      {BatchNormForward, {{0, 0}}},
      {BatchNormForward, {{0, 4}}, true},
      {BatchNormBackwardSums, {{3, 1}}, true},
      {BatchNormBackward, {{0, 0}}},
      {BatchNormBackward, {{0, 1}}},
      {BatchNormInference, {{0, 0}}, true},
      {RunningAverage, {{0, 1}}},
      {PointwiseForward, {{0, 0}}},
      {PointwiseBackward, {{0, 0}}},
      {PointwiseBackward, {{0, 1}}},
      {PreluForward, {{0, 0}}},
      {PreluBackward, {{0, 1}}},
      {Add, {{0, 0}}},
      {Add, {{0, 1}}},
      {Dropout, {{0, 0}}},
      {SoftmaxForward, {{0, 0}}},
      {SoftmaxBackward, {{0, 1}}},
      {SoftmaxCrossEntropy, {{1, 0}}},
      {WeightedCrossEntropy, {{1, 0}}},
      {ElementwiseLoss, {{1, 0}}},
      {Sgd, {{0, 0}}},
      {SgdMomentum, {{0, 0}, {1, 2}}},
      {SgdNesterov, {{0, 0}, {1, 2}}},
      {Adam, {{0, 0}, {1, 2}, {2, 3}}},
      {AdamW, {{0, 0}, {1, 2}, {2, 3}}},
      {Lars, {{0, 0}, {1, 2}}},
      {Unscale, {{0, 0}, {1, 2}}},
      {AdjustLossScale, {{0, 0}}},
  };
  SerialBackend backend;
  Random random(4);
  for (const InPlaceRow& row : rows)
    for (Kernel kernel : cases_of(row.kind)) {
      const bool is_fused = std::as_const(kernel).epilogue() != Epilogue{};
      if (row.kind != BiasAdd && row.kind != BiasGradient && is_fused)
        continue;  // the row says whether the kernel is fused
      if (row.fused) kernel.epilogue() = {relu, row.kind != BiasAdd && row.kind != BiasGradient};
      const auto reads = operands(kernel, random);
      const auto expected = test::run(backend, kernel, reads);
      std::vector<Values> places = reads, others = expected;
      std::vector<const void*> from;
      std::vector<void*> to;
      for (Values& values : places) from.push_back(test::data_of(values));
      for (Values& values : others) to.push_back(test::data_of(values));
      for (const auto& [write, read] : row.pairs) to[write] = test::data_of(places[read]);
      OwnKernel<cuda_kernels::SerialLaunch>(kernel).run(
          {from, to, nullptr, test::whole_context(kernel)});
      for (const auto& [write, read] : row.pairs)
        EXPECT_EQ(places[read], expected[write]) << kernel.key();
    }
}

// More terms than one launch takes. The result overwrites one of the last terms.
TEST(CudaKernels, AddManyTerms) {
  Random random(5);
  const Shape shape{{1, 3, 1, 2, 2}};
  const Kernel kernel{.kind = Add, .x = shape, .y = shape, .attributes = AddAttributes{40}};
  std::vector<Values> reads = operands(kernel, random);
  const auto expected = test::run(*make_reference_backend(), kernel, reads);
  std::vector<const void*> from;
  for (Values& values : reads) from.push_back(test::data_of(values));
  void* to = test::data_of(reads[37]);
  OwnKernel<cuda_kernels::SerialLaunch>(kernel).run(
      {from, std::span<void* const>(&to, 1), nullptr, test::whole_context(kernel)});
  for (std::size_t i = 0; i < test::size_of(expected[0]); ++i)
    EXPECT_NEAR(test::at(reads[37], i), test::at(expected[0], i), 40 * 0x1p-22);
}

TEST(CudaKernels, WithoutElements) {
  SerialBackend backend;
  Random random(6);
  for (KernelKind kind : own_kinds()) {
    if (kind == CopyRegion || kind == SpatialMeanForward || kind == SpatialMeanBackward) continue;
    for (const Shape& shape : {Shape{{0, 8, 1, 3, 3}}, Shape{{2, 5, 1, 0, 3}}}) {
      Kernel kernel = cases_of(kind).front();
      kernel.x = kernel.y = shape;
      std::visit(
          [](auto& of) {
            if constexpr (requires { of.sets; })
              of.sets = {.set_samples = 2, .sets = 2, .batch = 4, .positions = 9};
          },
          kernel.attributes);
      compare(backend, kernel, random);
    }
  }
  const Window window{.pad_before = 2, .pad_after = 1};
  // Windows of nothing but padding.
  for (KernelKind kind : {MaxPoolForward, MaxPoolBackward, AveragePoolForward, AveragePoolBackward})
    compare(backend,
            {.kind = kind,
             .x = {{2, 4, 1, 0, 3}},
             .y = {{2, 4, 1, 3, 3}},
             .attributes = PoolAttributes{.windows = {{{}, window, {}}}}},
            random);
  const Shape shape{{2, 4, 1, 3, 3}};
  compare(backend,
          {.kind = CopyRegion,
           .x = shape,
           .y = shape,
           .attributes = CopyAttributes{.region = {{2, 4, 1, 0, 3}}}},
          random);
}

TEST(CudaKernels, ManyRows) {  // sums have more parts than one fold adds up
  SerialBackend backend;
  Random random(7);
  const Shape shape{{2, 4, 1, 100, 130}};
  const NormalizationAttributes normalization{
      .epsilon = 1e5, .sets = {.set_samples = 2, .batch = 2, .positions = 13000}};
  const std::pair<KernelKind, KernelAttributes> rows[] = {
      {BatchNormStatistics, normalization},
      {BatchNormBackwardSums, normalization},
      {BiasGradient, BiasAttributes{}},
      {PreluGradient, NoAttributes{}},
      {DiceSums, DiceSumsAttributes{}},
      {SquaredNorms, NoAttributes{}},
      {ElementwiseLoss, ElementLossAttributes{.terms = 1e5}}};
  for (const auto& [kind, attributes] : rows)
    compare(backend, {.kind = kind, .x = shape, .y = shape, .attributes = attributes}, random);
}

TEST(CudaKernels, TheCopyOfAPieceGoesByPacksWhereItCan) {
  struct Row {
    DataType type;
    std::int64_t channels, from, count;  ///< all along the channel axis
    std::int64_t indices;                ///< number of indices for 6 positions
  };
  const Row rows[] = {{DataType::F32, 8, 0, 8, 12}, {DataType::F32, 8, 4, 4, 6},
                      {DataType::F32, 8, 2, 4, 24}, {DataType::F32, 6, 0, 4, 24},
                      {DataType::F64, 8, 2, 4, 12}, {DataType::F16, 16, 8, 8, 6},
                      {DataType::F16, 16, 4, 8, 48}};
  for (const Row& row : rows) {
    Kernel kernel{.kind = CopyRegion,
                  .x = {{1, row.channels, 1, 2, 5}},
                  .y = {{1, row.count, 1, 2, 3}},
                  .type = row.type};
    kernel.attributes = CopyAttributes{.region = kernel.y, .from = {0, row.from, 0, 0, 1}};
    alignas(16) char source[2048]{}, destination[2048]{};
    const void* from = source;
    void* to = destination;
    std::int64_t indices = 0;
    cuda_kernels::run(kernel, {{&from, 1}, {&to, 1}, nullptr, {}},
                      [&](std::int64_t count, const auto&) { indices += count; });
    EXPECT_EQ(indices, row.indices) << kernel.key() << " from channel " << row.from;
  }
}

TEST(CudaKernels, DivisorsDivide) {
  Random random(8);
  const std::int64_t limit = std::int64_t{1} << 31;
  std::vector<std::int64_t> divisors{1,     2,         3,     4,         5,        7,
                                     63,    64,        65,    641,       65535,    65536,
                                     65537, limit - 1, limit, limit + 1, 5 * limit};
  for (int i = 0; i < 1000; ++i)
    divisors.push_back(test::between(random, 1, std::int64_t{1} << test::between(random, 1, 33)));
  for (const std::int64_t d : divisors) {
    const cuda_kernels::Divisor divisor(d);
    std::vector<std::int64_t> numbers{0,
                                      1,
                                      d - 1,
                                      d,
                                      d + 1,
                                      limit - 1,
                                      limit,
                                      limit + 1,
                                      7 * limit,
                                      limit / d * d - 1,
                                      limit / d * d,
                                      3 * d - 1};
    for (int i = 0; i < 100; ++i)
      numbers.push_back(test::between(random, 0, std::int64_t{1} << test::between(random, 1, 40)));
    for (const std::int64_t n : numbers)
      ASSERT_EQ(divisor.quotient(std::max<std::int64_t>(0, n)), std::max<std::int64_t>(0, n) / d)
          << n << " / " << d;
  }
}

}  // namespace
}  // namespace stratplan
