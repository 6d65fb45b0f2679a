// Kernels of the cpu backend on one thread: packing and adding halos, and each route of each pass
// of convolutions.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdio>
#include <memory>
#include <vector>

#include "bench/cases.hpp"
#include "model/base/error.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan::bench {
namespace {

constexpr int threads = 1;

/// A kernel with buffers of its own that can run repeatedly.
class KernelRun {
 public:
  KernelRun(const Kernel& kernel, const std::string& choice)
      : backend_(make_cpu_backend(threads)), prepared_(backend_->prepare(kernel, choice)) {
    const Operands operands = kernel.operands();
    for (const Operand& operand : operands.reads) reads_.push_back(buffer(operand));
    for (const Operand& operand : operands.writes) writes_.push_back(buffer(operand));
    workspace_ = backend_->allocate(prepared_->workspace());
  }
  ~KernelRun() {
    for (const void* read : reads_) backend_->release(const_cast<void*>(read));
    for (void* written : writes_) backend_->release(written);
    backend_->release(workspace_);
  }
  KernelRun(const KernelRun&) = delete;
  KernelRun& operator=(const KernelRun&) = delete;

  void run() {
    backend_->enqueue(Stream::Compute, *prepared_, reads_, writes_, workspace_, context_);
    backend_->synchronize(Stream::Compute);
  }
  std::string implementation() const { return prepared_->implementation(); }

 private:
  /// Returns a buffer of floats in [-1, 1) whose pages have all been touched.
  void* buffer(const Operand& operand) {
    auto* numbers = static_cast<float*>(backend_->allocate(operand.bytes()));
    std::uint32_t state = 1;
    for (std::int64_t i = 0; i < operand.elements; ++i) {
      state = state * 1664525U + 1013904223U;
      numbers[i] = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31F;
    }
    return numbers;
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<PreparedKernel> prepared_;
  std::vector<const void*> reads_;
  std::vector<void*> writes_;
  void* workspace_ = nullptr;
  KernelContext context_;
};

/// Leaves the benchmark out, with a message, if the backend has no such kernel.
void add_kernel(const std::string& name, const Kernel& kernel, const std::string& choice = {}) {
  try {
    make_cpu_backend(threads)->prepare(kernel, choice);
  } catch (const EnvironmentError& error) {
    std::fprintf(stderr, "%s is left out: %s\n", name.c_str(), error.what());
    return;
  }
  add(name, [kernel, choice](State& state) {
    KernelRun runs(kernel, choice);
    runs.run();  // libraries set themselves up at the first call
    for (auto _ : state) runs.run();
    state.SetLabel(runs.implementation());
  });
}

/// One layer of positions at the end of an axis, which the neighbour there needs.
struct Halo {
  const char* name;
  Shape block;
  Axis axis;
};

constexpr Halo halos[] = {
    {"n4_c64_56x56/row", {{4, 64, 1, 56, 56}}, Axis::H},
    {"n4_c64_56x56/column", {{4, 64, 1, 56, 56}}, Axis::W},
    {"n1_c32_64x64x64/plane", {{1, 32, 64, 64, 64}}, Axis::D},
    {"n1_c32_64x64x64/row", {{1, 32, 64, 64, 64}}, Axis::H},
    {"n1_c32_64x64x64/column", {{1, 32, 64, 64, 64}}, Axis::W},
};

void add_halos() {
  for (const Halo& halo : halos) {
    Shape layer = halo.block;
    layer[halo.axis] = 1;
    const auto place = static_cast<std::size_t>(halo.axis);
    CopyAttributes pack{.region = layer}, add{.accumulate = true, .region = layer};
    pack.from[place] = add.to[place] = halo.block[halo.axis] - 1;
    add_kernel(fmt::format("halo/pack/{}", halo.name),
               {.kind = KernelKind::CopyRegion, .x = halo.block, .y = layer, .attributes = pack});
    add_kernel(fmt::format("halo/add/{}", halo.name),
               {.kind = KernelKind::CopyRegion, .x = layer, .y = halo.block, .attributes = add});
  }
}

struct Convolution {
  const char* name;
  Shape x;
  std::int64_t filters;
  std::int64_t window;  ///< extent along each axis of x; padding makes y as large as x
  std::vector<std::string> routes;
};

const std::vector<Convolution>& convolutions() {
  static const std::vector<Convolution> all{
      {"n4_c64_f64_56x56_k3",
       {{4, 64, 1, 56, 56}},
       64,
       3,
       {"winograd", "unfolded", "channels_last", "blocked"}},
      {"n4_c256_f64_56x56_k1",
       {{4, 256, 1, 56, 56}},
       64,
       1,
       {"matrix_product", "unfolded", "channels_last", "blocked"}},
      {"n1_c16_f32_32x32x32_k3",
       {{1, 16, 32, 32, 32}},
       32,
       3,
       {"winograd", "unfolded", "channels_last", "blocked"}},
      {"n1_c3_f16_28x28_k3", {{1, 3, 1, 28, 28}}, 16, 3, {"planar"}},
  };
  return all;
}

Kernel kernel_of(const Convolution& convolution, KernelKind kind) {
  Kernel kernel{.kind = kind, .x = convolution.x, .y = convolution.x};
  kernel.y[Axis::C] = convolution.filters;
  for (const Axis axis : spatial_axes)
    if (convolution.x[axis] > 1)
      kernel.windows()[static_cast<std::size_t>(spatial_index(axis))] = {
          .kernel = convolution.window,
          .pad_before = convolution.window / 2,
          .pad_after = convolution.window / 2};
  return kernel;
}

void add_convolutions() {
  constexpr std::array passes{std::pair{"forward", KernelKind::ConvolutionForward},
                              std::pair{"backward_data", KernelKind::ConvolutionBackwardData},
                              std::pair{"backward_filter", KernelKind::ConvolutionBackwardFilter}};
  for (const Convolution& convolution : convolutions())
    for (const auto& [pass, kind] : passes)
      for (const std::string& route : convolution.routes)
        add_kernel(fmt::format("convolution/{}/{}/{}", pass, route, convolution.name),
                   kernel_of(convolution, kind), route);
}

}  // namespace

void add_kernel_benchmarks() {
  add_halos();
  add_convolutions();
}

}  // namespace stratplan::bench
