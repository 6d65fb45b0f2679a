#pragma once
// Functions of two tensors (model/network/functions/binary.hpp). If an input has one element along
// an axis where the output has several, all output elements along the axis read that input element.
// The input's stride along the axis is then 0.
#include <algorithm>

#include "runtime/cuda/kernels/support/places.hpp"
#include "runtime/cuda/kernels/support/strips.hpp"
#include "runtime/device/kernel_call.hpp"

namespace stratplan::cuda_kernels {

/// The strides with which a tensor of shape `shape` is read at the places of a tensor of shape
/// `places`. The second tensor may have more elements along some axes. Along those axes the stride
/// is 0.
struct Steps {
  std::int64_t n, c, d, h, w;

  Steps(const Shape& shape, const Shape& places) {
    std::int64_t stride = 1;
    const auto step = [&](Axis axis) {
      const std::int64_t made = shape[axis] == 1 && places[axis] > 1 ? 0 : stride;
      stride *= shape[axis];
      return made;
    };
    c = step(Axis::C);
    w = step(Axis::W);
    h = step(Axis::H);
    d = step(Axis::D);
    n = step(Axis::N);
  }
  SP_DEVICE std::int64_t at(const Place& place) const {
    return place.n * n + place.d * d + place.h * h + place.w * w + place.channel * c;
  }
};

/// A tensor whose elements may be read at several places. If the function does not read the tensor,
/// `values` is null and elements load as zero.
template <class T>
struct Repeated {
  const T* values;
  Steps steps;

  template <int width>
  SP_DEVICE Pack<float, width> load_at(const Place& place) const {
    Pack<float, width> loaded{};
    if (values == nullptr) return loaded;
    const T* from = values + steps.at(place);
    if (steps.c == 1) return load<width>(from);
    const float value = *from;
    for (int k = 0; k < width; ++k) loaded[k] = value;
    return loaded;
  }
};

template <class Row, class T>
struct BinaryValue {
  Repeated<T> a, b;
  T* y;

  template <int width>
  SP_DEVICE void run(const Place& at) const {
    auto value = a.template load_at<width>(at);
    const auto other = b.template load_at<width>(at);
    for (int k = 0; k < width; ++k) value[k] = Row::value(value[k], other[k]);
    store(y + at.element, value);
  }
};

template <class T, class Launch>
void binary_forward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const T *a = call.read<T>(0), *b = call.read<T>(1);
  T* y = call.write<T>(0);
  visit_row(kernel.as<Binary>().function, [&]<class Row>(Row) {
    for_places(
        launch, kernel.y, {a, b, y},
        BinaryValue<Row, T>{
            {a, Steps(kernel.x, kernel.y)}, {b, Steps(kernel.as<Binary>().second, kernel.y)}, y});
  });
}

template <class Row, int which, class T>
struct BinaryGradient {
  Repeated<T> a, b;
  const T* dy;
  T* dx;

  template <int width>
  SP_DEVICE void run(const Place& at) const {
    auto gradient = load<width>(dy + at.element);
    const auto of_a = a.template load_at<width>(at), of_b = b.template load_at<width>(at);
    for (int k = 0; k < width; ++k)
      gradient[k] = binary::gradient<Row, which>(of_a[k], of_b[k], gradient[k]);
    store(dx + at.element, gradient);
  }
};

/// Plans how the gradient of an element is summed over the places (terms) where the element is
/// read. The terms are first summed in parts, in an array of shape [parts][elements]. The parts are
/// then added up in order. The terms of an element lie along the axes where the input has one
/// element, channels first.
struct RepeatedSum {
  std::int64_t elements, terms, parts;
  bool over_channels;

  explicit RepeatedSum(const Kernel& kernel)
      : elements(kernel.differentiated().elements()),
        terms(elements == 0 ? 0 : kernel.y.elements() / elements),
        parts(std::clamp<std::int64_t>(busy / std::max<std::int64_t>(1, elements), 1,
                                       std::max<std::int64_t>(1, terms / 4))),
        over_channels(kernel.differentiated()[Axis::C] < kernel.y[Axis::C]) {}

  Bytes workspace() const {
    return {terms > 1 ? elements * parts * static_cast<std::int64_t>(sizeof(double)) : 0};
  }
};

template <class Row, int which, class T>
struct BinaryGradientPart {
  RepeatedSum plan;
  Repeated<T> a, b, dy;
  Divisor plan_parts, plan_elements;
  Divisor c, w, h, d;  ///< extents of the input
  /// terms per element along each axis: y's extent where the input's extent is 1, else 1
  Divisor more_c, more_w, more_h, more_d;
  double* sums;

  SP_DEVICE void operator()(std::int64_t index) const {
    // Neighbouring indices read neighbouring channels. These belong to one element's terms if the
    // sum is over channels, else to neighbouring elements.
    std::int64_t element = index;
    const std::int64_t part =
        plan.over_channels ? plan_parts.split(element) : split_off_elements(element);
    std::int64_t rest = element;
    Place first{};
    first.channel = c.split(rest);
    first.w = w.split(rest);
    first.h = h.split(rest);
    first.d = d.split(rest);
    first.n = rest;
    double sum = 0;
    for (std::int64_t term = part; term < plan.terms; term += plan.parts) {
      Place at = first;
      std::int64_t left = term;
      at.channel += more_c.split(left);
      at.w += more_w.split(left);
      at.h += more_h.split(left);
      at.d += more_d.split(left);
      sum +=
          binary::gradient<Row, which>(a.template load_at<1>(at)[0], b.template load_at<1>(at)[0],
                                       dy.template load_at<1>(at)[0]);
    }
    sums[part * plan.elements + element] = sum;
  }
  /// Leaves the element in `index` and returns the part.
  SP_DEVICE std::int64_t split_off_elements(std::int64_t& index) const {
    std::int64_t part = index;
    index = plan_elements.split(part);
    return part;
  }
};

template <class T>
struct BinaryGradientSum {
  RepeatedSum plan;
  const double* sums;
  T* dx;
  double divisor;  ///< of the sums
  SP_DEVICE void operator()(std::int64_t element) const {
    double sum = 0;
    for (std::int64_t part = 0; part < plan.parts; ++part)
      sum += sums[part * plan.elements + element];
    dx[element] = T(static_cast<float>(sum / divisor));
  }
};

/// `divisor`: divides sums; a gradient of which no element is read repeatedly is no sum.
template <class Row, int which, class T, class Launch>
void binary_gradient(const Kernel& kernel, const KernelCall& call, const Launch& launch,
                     double divisor = 1) {
  constexpr binary::Inputs reads = which == 0 ? Row::first_reads : Row::second_reads;
  const Shape &x = kernel.differentiated(), &y = kernel.y;
  const T* dy = call.read<T>(call.reads.size() - 1);
  T* dx = call.write<T>(0);
  const Repeated<T> a{reads.first ? call.read<T>(0) : nullptr, Steps(kernel.x, y)},
      b{reads.second ? call.read<T>(reads.first ? 1 : 0) : nullptr,
        Steps(kernel.as<Binary>().second, y)};
  const RepeatedSum plan(kernel);
  if (plan.terms == 1)
    return for_places(launch, y, {a.values, b.values, dy, dx},
                      BinaryGradient<Row, which, T>{a, b, dy, dx});
  const auto more = [&](Axis axis) { return Divisor(x[axis] == 1 ? y[axis] : 1); };
  auto* sums = static_cast<double*>(call.workspace);
  launch(plan.elements * plan.parts, BinaryGradientPart<Row, which, T>{plan,
                                                                       a,
                                                                       b,
                                                                       {dy, Steps(y, y)},
                                                                       Divisor(plan.parts),
                                                                       Divisor(plan.elements),
                                                                       Divisor(x[Axis::C]),
                                                                       Divisor(x[Axis::W]),
                                                                       Divisor(x[Axis::H]),
                                                                       Divisor(x[Axis::D]),
                                                                       more(Axis::C),
                                                                       more(Axis::W),
                                                                       more(Axis::H),
                                                                       more(Axis::D),
                                                                       sums});
  launch(plan.elements, BinaryGradientSum<T>{plan, sums, dx, divisor});
}

template <class T, class Launch>
void binary_backward(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  visit_row(kernel.as<Binary>().function, [&]<class Row>(Row) {
    kernel.as<Binary>().of == 0 ? binary_gradient<Row, 0, T>(kernel, call, launch)
                                : binary_gradient<Row, 1, T>(kernel, call, launch);
  });
}

}  // namespace stratplan::cuda_kernels
