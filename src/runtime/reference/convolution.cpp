// The convolution and its two gradients:
//   y[n,f,o] = bias[f] + sum over c, k of x[n,c,in(o,k)] * w[f,c,k],
// where c runs over the channels of f's group, k over the window, and in(o,k) is the position in x
// of element k of the window at o.
#include "runtime/reference/kernels.hpp"

namespace stratplan::reference {
namespace {

/// Calls visit(x element, weights element, y element) for every product of the convolution.
template <class Visit>
void for_each_product(const Kernel& kernel, Visit visit) {
  const std::int64_t groups = kernel.as<ConvolutionAttributes>().groups,
                     channels = kernel.x[Axis::C] / groups, filters = kernel.y[Axis::C] / groups;
  for_each_index(kernel.y, [&](const Index& output) {
    const std::int64_t y = offset(kernel.y, output), filter = output[1], group = filter / filters;
    for_each_tap(kernel, output, [&](std::int64_t tap, Index input) {
      input[1] = group * channels;
      // In both x and the weights the channels of a group are adjacent.
      const std::int64_t x = offset(kernel.x, input), w = (filter * taps(kernel) + tap) * channels;
      for (std::int64_t c = 0; c < channels; ++c) visit(x + c, w + c, y);
    });
  });
}

void round_to(float* destination, std::span<const double> sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) destination[i] = static_cast<float>(sums[i]);
}

}  // namespace

void convolution_forward(const Kernel& kernel, const KernelCall& call) {
  const float *x = call.read(0), *weights = call.read(1);
  const std::span<double> y = sums_of(call, kernel.y.elements());
  for_each_product(kernel, [&](std::int64_t xi, std::int64_t wi, std::int64_t yi) {
    y[static_cast<std::size_t>(yi)] += double{x[xi]} * weights[wi];
  });
  if (kernel.as<ConvolutionAttributes>().bias) {
    const std::size_t filters = static_cast<std::size_t>(kernel.y[Axis::C]);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += call.read(2)[i % filters];
  }
  round_to(call.write(0), y);
  for (std::size_t i = 0; i < y.size(); ++i) call.write(0)[i] = activated(kernel, call.write(0)[i]);
}

void convolution_backward_data(const Kernel& kernel, const KernelCall& call) {
  const float *dy = call.read(0), *weights = call.read(1);
  const std::span<double> dx = sums_of(call, kernel.x.elements());
  for_each_product(kernel, [&](std::int64_t xi, std::int64_t wi, std::int64_t yi) {
    dx[static_cast<std::size_t>(xi)] += double{dy[yi]} * weights[wi];
  });
  round_to(call.write(0), dx);
}

void convolution_backward_filter(const Kernel& kernel, const KernelCall& call) {
  const float *x = call.read(0), *dy = call.read(1);
  const std::span<double> dweights =
      sums_of(call, kernel.y[Axis::C] * taps(kernel) * kernel.x[Axis::C] /
                        kernel.as<ConvolutionAttributes>().groups);
  for_each_product(kernel, [&](std::int64_t xi, std::int64_t wi, std::int64_t yi) {
    dweights[static_cast<std::size_t>(wi)] += double{x[xi]} * dy[yi];
  });
  round_to(call.write(0), dweights);
}

void bias_add(const Kernel& kernel, const KernelCall& call) {
  const float *y = call.read(0), *bias = call.read(1);
  for (std::int64_t i = 0; i < kernel.y.elements(); ++i)
    call.write(0)[i] = activated(kernel, y[i] + bias[i % kernel.y[Axis::C]]);
}

void bias_gradient(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t channels = kernel.y[Axis::C];
  const std::span<double> sums = sums_of(call, channels);
  const bool activates = kernel.epilogue().activation.has_value();
  for (std::int64_t i = 0; i < kernel.y.elements(); ++i) {
    const float gradient =
        through_activation(kernel, activates ? call.read(1) : nullptr, i, call.read(0)[i]);
    sums[static_cast<std::size_t>(i % channels)] += gradient;
    if (activates) call.write(1)[i] = gradient;
  }
  round_to(call.write(0), sums);
}

}  // namespace stratplan::reference
