#include "model/partition/program/copy_loops.hpp"
#include "runtime/cpu/kernels.hpp"
#include "runtime/device/fill_pattern.hpp"
#include "runtime/device/float16.hpp"
#include "runtime/device/tensor.hpp"

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

/// Copies a row of `count` channels of the wide tensor from the channels `from` of a deep row.
void gather_channels(const float* deep, const std::int32_t* from, float* wide, std::int64_t count) {
  for (std::int64_t c = 0; c < count; ++c) wide[c] = deep[from[c]];
}
/// Copies a row of the wide tensor to the channels `to` of a deep row, or zeros if there is none.
void scatter_channels(const float* wide, const std::int32_t* to, float* deep, std::int64_t count) {
  for (std::int64_t c = 0; c < count; ++c) deep[to[c]] = wide ? wide[c] : 0;
}

/// A rearrangement moves rows of channels of the wide tensor (network/functions/rearrangement.hpp)
/// to or from the deep tensor. Where a row's channels lie there depends on the row's place in its
/// block alone. A shuffle gathers rows of one place.
class RearrangeKernel : public HostKernel {
 public:
  explicit RearrangeKernel(const Kernel& kernel) : by_(kernel.as<Rearrangement>()) {
    const bool backward = kernel.kind == KernelKind::RearrangeBackward,
               shuffles = by_.what == Rearranges::Shuffle;
    gathers_ = shuffles || (by_.what == Rearranges::ToSpace) != backward;
    deep_ = gathers_ != backward ? kernel.x : kernel.y;
    wide_ = gathers_ != backward ? kernel.y : kernel.x;
    const std::int64_t channels = wide_[Axis::C];
    for (std::int64_t place = 0; place < by_.positions(); ++place)
      for (std::int64_t c = 0; c < channels; ++c)
        channels_.push_back(static_cast<std::int32_t>(
            shuffles ? Rearrangement::shuffled_from(c, channels,
                                                    backward ? channels / by_.groups : by_.groups)
                     : by_.deep_channel(c, place, channels)));
  }
  std::string implementation() const override { return "own"; }

  void run(const KernelCall& call) override {
    const Shape& written = gathers_ ? wide_ : deep_;
    const std::int64_t rows = written[Axis::N] * written[Axis::D] * written[Axis::H];
    const std::int64_t grain = std::max<std::int64_t>(
        1, element_grain / std::max<std::int64_t>(1, written[Axis::W] * written[Axis::C]));
    in_parallel(rows, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t h = row % written[Axis::H], planes = row / written[Axis::H],
                           d = planes % written[Axis::D], n = planes / written[Axis::D];
        for (std::int64_t w = 0; w < written[Axis::W]; ++w)
          gathers_ ? gather(call, n, {d, h, w}) : scatter(call, n, {d, h, w});
      }
    });
  }

 private:
  using Position = std::array<std::int64_t, 3>;
  static std::int64_t row(const Shape& shape, std::int64_t n, const Position& at) {
    return row_begin(shape, n, at[0], at[1], at[2]);
  }
  const std::int32_t* channels_at(std::int64_t place) const {
    return channels_.data() + place * wide_[Axis::C];
  }
  void gather(const KernelCall& call, std::int64_t n, const Position& at) const {
    Position from{};
    std::int64_t place = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int64_t shifted = at[i] + by_.phase[i];
      from[i] = shifted / by_.block[i];
      place = place * by_.block[i] + shifted % by_.block[i];
    }
    gather_channels(call.read(0) + row(deep_, n, from), channels_at(place),
                    call.write(0) + row(wide_, n, at), wide_[Axis::C]);
  }
  void scatter(const KernelCall& call, std::int64_t n, const Position& at) const {
    float* deep = call.write(0) + row(deep_, n, at);
    for (std::int64_t place = 0; place < by_.positions(); ++place) {
      Position from{};
      bool inside = true;
      std::int64_t rest = place;
      for (std::size_t i = 3; i-- > 0;) {
        from[i] = at[i] * by_.block[i] + rest % by_.block[i] - by_.phase[i];
        rest /= by_.block[i];
        inside = inside && from[i] >= 0 && from[i] < wide_.extent[2 + i];
      }
      scatter_channels(inside ? call.read(0) + row(wide_, n, from) : nullptr, channels_at(place),
                       deep, wide_[Axis::C]);
    }
  }

  Rearrangement by_;
  bool gathers_ = true;  ///< reads the deep tensor and writes the wide one, or the reverse
  Shape deep_, wide_;
  std::vector<std::int32_t> channels_;  ///< of the deep tensor, by place and channel
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

std::unique_ptr<HostKernel> prepare_rearrangement(const Kernel& kernel) {
  return std::make_unique<RearrangeKernel>(kernel);
}

void convert(const Kernel& kernel, const KernelCall& call) {
  in_parallel(kernel.y.elements(), element_grain, [&](auto begin, auto end) {
    narrow(kernel.type, call.read(0) + begin,
           static_cast<std::byte*>(call.writes[0]) + begin * size_of(kernel.type), end - begin);
  });
}

void widen(const Kernel& kernel, const KernelCall& call) {
  in_parallel(kernel.y.elements(), element_grain, [&](auto begin, auto end) {
    stratplan::widen(kernel.type,
                     static_cast<const std::byte*>(call.reads[0]) + begin * size_of(kernel.type),
                     call.write(0) + begin, end - begin);
  });
}

}  // namespace stratplan::cpu
