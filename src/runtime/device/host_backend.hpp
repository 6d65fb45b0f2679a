#pragma once
// The base of the backends that run on the host's processor. Device memory is host memory, and
// kernels have finished when enqueue() returns.
#include <sys/mman.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/kernel_call.hpp"

namespace stratplan {

class HostKernel : public PreparedKernel {
 public:
  virtual void run(const KernelCall& call) = 0;
};

/// A kernel that calls a plain function. `workspace` is the scratch memory that the function needs.
class FunctionKernel : public HostKernel {
 public:
  using Function = void (*)(const Kernel& kernel, const KernelCall& call);

  FunctionKernel(Kernel kernel, Function function, std::string implementation,
                 Bytes workspace = {0})
      : kernel_(std::move(kernel)),
        function_(function),
        implementation_(std::move(implementation)),
        workspace_(workspace) {}
  Bytes workspace() const override { return workspace_; }
  std::string implementation() const override { return implementation_; }
  void run(const KernelCall& call) override { function_(kernel_, call); }

 private:
  Kernel kernel_;
  Function function_;
  std::string implementation_;
  Bytes workspace_;
};

class HostBackend : public Backend {
 public:
  void* allocate(Bytes bytes) override {
    // Large buffers use huge pages. Otherwise kernels that read many rows at once would miss the
    // address translation cache (TLB).
    const std::size_t alignment = bytes.value >= huge_page ? huge_page : 64;
    const std::size_t size = (static_cast<std::size_t>(bytes.value) / alignment + 1) * alignment;
    void* memory = std::aligned_alloc(alignment, size);
    if (memory == nullptr)
      throw EnvironmentError("out of memory: " + std::to_string(bytes.value) + " bytes");
    if (alignment == huge_page) madvise(memory, size, MADV_HUGEPAGE);
    return memory;
  }
  void release(void* memory) noexcept override { std::free(memory); }

  void enqueue(Stream, PreparedKernel& kernel, std::span<const void* const> reads,
               std::span<void* const> writes, void* workspace,
               const KernelContext& context) override {
    static_cast<HostKernel&>(kernel).run({reads, writes, workspace, context});
  }
  void upload(Stream, void* device, const void* host, Bytes bytes) override {
    std::memcpy(device, host, static_cast<std::size_t>(bytes.value));
  }
  void download(Stream, void* host, const void* device, Bytes bytes) override {
    std::memcpy(host, device, static_cast<std::size_t>(bytes.value));
  }
  /// An event is the clock's time in nanoseconds.
  Event record(Stream, Event) override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  Seconds elapsed(Event from, Event to) override { return {static_cast<double>(to - from) * 1e-9}; }
  void wait(Stream, Event) override {}
  void synchronize(Stream) override {}

 private:
  static constexpr std::int64_t huge_page = 2 << 20;
};

/// Returns the factor by which LARS scales a tensor's gradient. `squared_norms` holds the sums of
/// squares of weights and gradient. The factor is 1 if either norm is zero (a new or frozen
/// tensor).
inline double lars_scale(const double* squared_norms, const KernelContext& context) {
  const double weights = std::sqrt(squared_norms[0]), gradient = std::sqrt(squared_norms[1]);
  return weights > 0 && gradient > 0
             ? context.trust * weights / (gradient + context.weight_decay * weights)
             : 1;
}

/// Asserts that the shapes x and y are equal if kernels of this kind have a single shape.
inline void check_shapes(const Kernel& kernel) {
  const bool two_shapes =
      kernel.has<ConvolutionAttributes, BiasAttributes, PoolAttributes, MeanAttributes,
                 CopyAttributes, UpsampleAttributes, Binary, ReduceAttributes, Rearrangement>();
  SP_ASSERT(two_shapes || kernel.x == kernel.y, "the shapes x and y of kernel {} differ",
            kernel.key());
}

}  // namespace stratplan
