#include "model/partition/program/copy_loops.hpp"
#include "runtime/cpu/kernels.hpp"
#include "runtime/device/fill_pattern.hpp"

namespace stratplan::cpu {
namespace {

template <class T>
void copy_run(const T* source, T* destination, const CopyLoop& run) {
  if (run.source_stride == 1 && run.destination_stride == 1) {
    if (run.count >= 16) {
      std::memcpy(destination, source, static_cast<std::size_t>(run.count) * sizeof(T));
    } else {  // a call of memcpy would cost more than the copy
      for (std::int64_t i = 0; i < run.count; ++i) destination[i] = source[i];
    }
  } else {
    for (std::int64_t i = 0; i < run.count; ++i)
      destination[i * run.destination_stride] = source[i * run.source_stride];
  }
}

template <class T>
void add_run(const T* source, T* destination, const CopyLoop& run) {
  if (run.source_stride == 1 && run.destination_stride == 1) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < run.count; ++i)
      destination[i] = static_cast<T>(destination[i] + source[i]);
  } else {
    for (std::int64_t i = 0; i < run.count; ++i) {
      T& place = destination[i * run.destination_stride];
      place = static_cast<T>(place + source[i * run.source_stride]);
    }
  }
}

class CopyKernel : public HostKernel {
 public:
  explicit CopyKernel(const Kernel& kernel)
      : type_(kernel.type),
        accumulate_(kernel.as<CopyAttributes>().accumulate),
        elements_(kernel.as<CopyAttributes>().region.elements()),
        copy_(copy_loops(kernel)) {}
  std::string implementation() const override { return "own"; }
  void run(const KernelCall& call) override {
    switch (type_) {
      case DataType::F32: return run_as<float>(call);
      case DataType::F64: return run_as<double>(call);
      case DataType::I32: return run_as<std::int32_t>(call);
      case DataType::F16:
      case DataType::BF16:
        SP_ASSERT(false, "the cpu backend copies no tensors of type {}", name_of(type_));
    }
  }

 private:
  template <class T>
  void run_as(const KernelCall& call) const {
    if (elements_ == 0) return;
    const CopyLoop& outer = copy_.loops.front();
    const std::int64_t grain = std::max<std::int64_t>(1, 16384 * outer.count / elements_);
    in_parallel(outer.count, grain, [&](auto begin, auto end) {
      walk(call.read<T>(0) + copy_.source, call.write<T>(0) + copy_.destination, 0, begin, end);
    });
  }

  /// Runs iterations [begin, end) of loop `depth` and all loops inside it.
  template <class T>
  void walk(const T* source, T* destination, std::size_t depth, std::int64_t begin,
            std::int64_t end) const {
    const CopyLoop& loop = copy_.loops[depth];
    source += begin * loop.source_stride;
    destination += begin * loop.destination_stride;
    if (depth + 1 == copy_.loops.size()) {
      const CopyLoop run{end - begin, loop.source_stride, loop.destination_stride};
      return accumulate_ ? add_run(source, destination, run) : copy_run(source, destination, run);
    }
    for (std::int64_t i = begin; i < end;
         ++i, source += loop.source_stride, destination += loop.destination_stride)
      walk(source, destination, depth + 1, 0, copy_.loops[depth + 1].count);
  }

  DataType type_;
  bool accumulate_;
  std::int64_t elements_;
  CopyLoops copy_;
};

}  // namespace

std::unique_ptr<HostKernel> prepare_copy(const Kernel& kernel) {
  return std::make_unique<CopyKernel>(kernel);
}

void fill(const Kernel& kernel, const KernelCall& call) {
  const FillPattern pattern = fill_pattern(kernel);
  constexpr std::int64_t length = sizeof(pattern.bytes);
  const std::int64_t bytes = kernel.y.elements() * size_of(kernel.type);
  char* to = call.write<char>(0);
  if (pattern.is_zero())
    return in_parallel(bytes, 65536, [&](auto begin, auto end) {
      std::memset(to + begin, 0, static_cast<std::size_t>(end - begin));
    });
  in_parallel((bytes + length - 1) / length, 4096, [&](auto begin, auto end) {
    for (auto i = begin; i < end; ++i)
      std::memcpy(to + i * length, pattern.bytes.data(),
                  static_cast<std::size_t>(std::min(length, bytes - i * length)));
  });
}

}  // namespace stratplan::cpu
