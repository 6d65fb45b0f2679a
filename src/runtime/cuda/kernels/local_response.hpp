#pragma once
// Local response normalization; the formulas are in model/network/functions/local_response.hpp and
// reference/activations.cpp.
#include <cmath>

#include "model/partition/program/kernel.hpp"
#include "runtime/cuda/kernels/support/divisor.hpp"
#include "runtime/device/kernel_call.hpp"

namespace stratplan::cuda_kernels {

template <class T>
struct Responses {
  const T* x;
  std::int64_t reach, count;
  float k, weight, beta;  ///< `weight` is alpha / size
  Divisor channels;

  explicit Responses(const Kernel& kernel, const T* from)
      : Responses(kernel.as<LocalResponse>(), Divisor(kernel.x[Axis::C]), from) {}
  Responses(const LocalResponse& response, const Divisor& in_channels, const T* from)
      : x(from),
        reach(response.size / 2),
        count(response.size),
        k(static_cast<float>(response.k)),
        weight(static_cast<float>(response.alpha / static_cast<double>(response.size))),
        beta(static_cast<float>(response.beta)),
        channels(in_channels) {}

  /// Calls visit(j) for the elements of i's row that lie within `reach` of i.
  template <class Visit>
  SP_DEVICE void for_around(std::int64_t i, const Visit& visit) const {
    const std::int64_t row = channels.quotient(i) * channels.value(),
                       last = row + channels.value() - 1;
    for (std::int64_t j = i - reach < row ? row : i - reach;
         j <= (i + reach > last ? last : i + reach); ++j)
      visit(j);
  }
  SP_DEVICE float scale(std::int64_t i) const {
    float squares = 0;
    for_around(i, [&](std::int64_t j) { squares += x[j] * x[j]; });
    return k + weight * squares;
  }
};

template <class T, class Launch>
void local_response_forward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const Responses<T> responses(kernel, call.read<T>(0));
  T* y = call.write<T>(0);
  launch(kernel.x.elements(), [responses, y] SP_DEVICE(std::int64_t i) {
    y[i] = T(responses.x[i] * std::pow(responses.scale(i), -responses.beta));
  });
}

/// Computes dx from `terms`, which hold each element's contribution to the gradients of the
/// elements around it. An earlier launch writes `terms` into the workspace.
template <class T>
struct ResponseGradient {
  Responses<T> responses;
  const T* dy;
  const float* terms;
  T* dx;
  SP_DEVICE void operator()(std::int64_t i) const {
    float sum = 0;
    responses.for_around(i, [&](std::int64_t j) { sum += terms[j]; });
    dx[i] = T(dy[i] * std::pow(responses.scale(i), -responses.beta) -
              2 * responses.weight * responses.beta * responses.x[i] * sum);
  }
};
inline Bytes local_response_workspace(const Kernel& kernel) {
  return {kernel.x.elements() * size_of(DataType::F32)};
}
template <class T, class Launch>
void local_response_backward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const Responses<T> responses(kernel, call.read<T>(0));
  const T* dy = call.read<T>(1);
  float* terms = static_cast<float*>(call.workspace);
  launch(kernel.x.elements(), [responses, dy, terms] SP_DEVICE(std::int64_t i) {
    terms[i] = dy[i] * responses.x[i] * std::pow(responses.scale(i), -responses.beta - 1);
  });
  launch(kernel.x.elements(), ResponseGradient<T>{responses, dy, terms, call.write<T>(0)});
}

}  // namespace stratplan::cuda_kernels
