#include "runtime/cpu/convolution/plain_convolution.hpp"

#include <numeric>

#include "runtime/reference/kernels.hpp"

namespace stratplan::cpu {
namespace {

using reference::Index;

/// Holds the numbers of channels and filters per group, and the number of taps of a window. Finds
/// the channels that a filter reads, and the filter's weights.
struct Groups {
  explicit Groups(const Kernel& kernel)
      : channels(kernel.x[Axis::C] / kernel.as<ConvolutionAttributes>().groups),
        filters(kernel.y[Axis::C] / kernel.as<ConvolutionAttributes>().groups),
        taps(reference::taps(kernel)) {}
  /// Returns the first channel of x that filter f reads.
  std::int64_t first_channel(std::int64_t f) const { return f / filters * channels; }
  /// Returns the offset of filter f's weights at a tap.
  std::int64_t weights(std::int64_t f, std::int64_t tap) const {
    return (f * taps + tap) * channels;
  }

  std::int64_t channels, filters, taps;
};

/// Returns the index of the first channel at the i-th position of a tensor. Positions are counted
/// through N, D, H, W.
Index position(const Shape& shape, std::int64_t i) {
  const std::int64_t w = shape[Axis::W], h = shape[Axis::H], d = shape[Axis::D];
  return {i / (w * h * d), 0, i / (w * h) % d, i / w % h, i % w};
}

void plain_forward(const Kernel& kernel, const KernelCall& call) {
  const Groups groups(kernel);
  const std::int64_t filters = kernel.y[Axis::C];
  in_parallel(kernel.y.elements() / filters, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      float* const y = call.write(0) + i * filters;
      if (kernel.as<ConvolutionAttributes>().bias)
        std::copy_n(call.read(2), filters, y);
      else
        std::fill_n(y, filters, 0.0F);
      reference::for_each_tap(
          kernel, position(kernel.y, i), [&](std::int64_t tap, const Index& input) {
            const float* const x = call.read(0) + reference::offset(kernel.x, input);
            for (std::int64_t f = 0; f < filters; ++f) {
              const float* const from = x + groups.first_channel(f);
              y[f] += std::inner_product(from, from + groups.channels,
                                         call.read(1) + groups.weights(f, tap), 0.0F);
            }
          });
      activate(kernel, y, filters);
    }
  });
}

/// Each thread takes whole samples, so that no two threads add to the same element.
void backward_data(const Kernel& kernel, const KernelCall& call) {
  const Groups groups(kernel);
  const std::int64_t filters = kernel.y[Axis::C], samples = kernel.x[Axis::N];
  std::fill_n(call.write(0), kernel.x.elements(), 0.0F);
  const std::int64_t of_sample = kernel.y.elements() / filters / samples;
  in_parallel(samples, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * of_sample; i < end * of_sample; ++i) {
      const float* const dy = call.read(0) + i * filters;
      reference::for_each_tap(
          kernel, position(kernel.y, i), [&](std::int64_t tap, const Index& input) {
            float* const dx = call.write(0) + reference::offset(kernel.x, input);
            for (std::int64_t f = 0; f < filters; ++f)
              for (std::int64_t c = 0; c < groups.channels; ++c)
                dx[groups.first_channel(f) + c] += dy[f] * call.read(1)[groups.weights(f, tap) + c];
          });
    }
  });
}

/// Each thread takes whole filters. The sums of a filter go over all positions, so they are added
/// in double.
void plain_backward_filter(const Kernel& kernel, const KernelCall& call) {
  const Groups groups(kernel);
  const std::int64_t filters = kernel.y[Axis::C], weights = groups.taps * groups.channels;
  in_parallel(filters, 1, [&](std::int64_t begin, std::int64_t end) {
    double* const sums = static_cast<double*>(call.workspace);
    std::fill(sums + begin * weights, sums + end * weights, 0.0);
    for (std::int64_t i = 0; i < kernel.y.elements() / filters; ++i)
      reference::for_each_tap(
          kernel, position(kernel.y, i), [&](std::int64_t tap, const Index& input) {
            const float* const x = call.read(0) + reference::offset(kernel.x, input);
            for (std::int64_t f = begin; f < end; ++f)
              for (std::int64_t c = 0; c < groups.channels; ++c)
                sums[groups.weights(f, tap) + c] +=
                    static_cast<double>(call.read(1)[i * filters + f]) *
                    x[groups.first_channel(f) + c];
          });
    std::copy(sums + begin * weights, sums + end * weights, call.write(0) + begin * weights);
  });
}

}  // namespace

std::unique_ptr<HostKernel> make_plain_convolution(const Kernel& kernel) {
  constexpr const char* name = "own loops";
  switch (kernel.kind) {
    case KernelKind::ConvolutionForward:
      return std::make_unique<FunctionKernel>(kernel, plain_forward, name);
    case KernelKind::ConvolutionBackwardData:
      return std::make_unique<FunctionKernel>(kernel, backward_data, name);
    default: {
      const Bytes sums{kernel.operands().writes[0].elements * size_of(DataType::F64)};
      return std::make_unique<FunctionKernel>(kernel, plain_backward_filter, name, sums);
    }
  }
}

}  // namespace stratplan::cpu
