// Losses are summed in double, in the order of the rows.
#include <cmath>

#include "runtime/cpu/kernels.hpp"

namespace stratplan::cpu {

void softmax_cross_entropy(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t classes = kernel.x[Axis::C], rows = kernel.x.elements() / classes;
  const double terms = kernel.as<LossAttributes>().terms, weight = kernel.loss_weight();
  double loss = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* x = call.read(0) + row * classes;
    float* dx = call.write(1) + row * classes;
    const std::int32_t label = call.read<std::int32_t>(1)[row];
    const float largest = *std::max_element(x, x + classes);
    const double at_label = x[label];
    double sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += dx[c] = std::exp(x[c] - largest);
    loss += std::log(sum) + double{largest} - at_label;
    const float factor = static_cast<float>(weight / (sum * terms));
    for (std::int64_t c = 0; c < classes; ++c) dx[c] *= factor;
    dx[label] -= static_cast<float>(weight / terms);
  }
  *call.write<double>(0) = loss / terms;
}

void mean_squared_error(const Kernel& kernel, const KernelCall& call) {
  const float *x = call.read(0), *target = call.read(1);
  const double terms = kernel.as<LossAttributes>().terms, factor = kernel.loss_weight() * 2 / terms;
  double loss = 0;
  for (std::int64_t i = 0; i < kernel.x.elements(); ++i) {
    const double difference = double{x[i]} - target[i];
    loss += difference * difference;
    call.write(1)[i] = static_cast<float>(factor * difference);
  }
  *call.write<double>(0) = loss / terms;
}

void dice_sums(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t classes = kernel.x[Axis::C], rows = kernel.x.elements() / classes;
  const float* x = call.read(0);
  const auto* labels = call.read<std::int32_t>(1);
  double *at_label = call.write<double>(0), *all = at_label + classes, *counts = all + classes;
  std::fill_n(at_label, 3 * classes, 0.0);
  add_column_sums(x, rows, classes, all);
  for (std::int64_t row = 0; row < rows; ++row) {
    at_label[labels[row]] += x[row * classes + labels[row]];
    counts[labels[row]] += 1;
  }
}

/// dx is a / b^2 / classes everywhere, minus 2 / b / classes at the label, with a and b as in
/// reference/loss.cpp.
void dice_loss(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t classes = kernel.x[Axis::C], rows = kernel.x.elements() / classes;
  const auto* labels = call.read<std::int32_t>(0);
  const double *at_label = call.read<double>(1), *all = at_label + classes, *counts = all + classes;
  float *everywhere = static_cast<float*>(call.workspace), *found = everywhere + classes;
  const double epsilon = kernel.as<DiceLossAttributes>().epsilon,
               terms = static_cast<double>(classes) / kernel.loss_weight();
  double mean = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    const double a = 2 * at_label[c] + epsilon, b = all[c] + counts[c] + epsilon;
    mean += a / b / static_cast<double>(classes);
    everywhere[c] = static_cast<float>(a / b / b / terms);
    found[c] = static_cast<float>((a / b - 2) / b / terms);
  }
  in_parallel(rows, 64, [&](auto begin, auto end) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* dx = call.write(1) + row * classes;
      std::copy_n(everywhere, classes, dx);
      dx[labels[row]] = found[labels[row]];
    }
  });
  *call.write<double>(0) = 1 - mean;
}

}  // namespace stratplan::cpu
