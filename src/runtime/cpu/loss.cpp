// Losses are summed in double, in the order of the rows.
#include <cmath>

#include "runtime/cpu/kernels.hpp"

namespace stratplan::cpu {
namespace {

struct LossMath {
  static double exp(double x) { return std::exp(x); }
  static double log1p(double x) { return std::log1p(x); }
};

}  // namespace

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

void label_weights(const Kernel& kernel, const KernelCall& call) {
  const auto& attributes = kernel.as<CrossEntropyAttributes>();
  const std::int64_t rows = kernel.x.elements() / kernel.x[Axis::C];
  const auto* labels = call.read<std::int32_t>(0);
  double sum = 0;
  for (std::int64_t row = 0; row < rows; ++row)
    if (labels[row] != attributes.ignored)
      sum += attributes.weighted ? call.read(1)[labels[row]] : 1;
  *call.write<double>(0) = sum;
}

/// The formula is that of reference/loss.cpp. The share of a class in a label is even[c], and `own`
/// more for the label's class.
void weighted_cross_entropy(const Kernel& kernel, const KernelCall& call) {
  const auto& attributes = kernel.as<CrossEntropyAttributes>();
  const std::int64_t classes = kernel.x[Axis::C], rows = kernel.x.elements() / classes;
  const auto* labels = call.read<std::int32_t>(1);
  const float* weights = attributes.weighted ? call.read(2) : nullptr;
  const double divisor = attributes.terms *
                         (attributes.reads_divisor() ? *call.read<double>(weights ? 3 : 2) : 1),
               factor = divisor > 0 ? 1 / divisor : 0, back = factor * kernel.loss_weight();
  float* even = static_cast<float*>(call.workspace);
  double sum_of_even = 0;
  for (std::int64_t c = 0; c < classes; ++c)
    sum_of_even += even[c] = static_cast<float>(
        attributes.smoothing / static_cast<double>(classes) * (weights ? weights[c] : 1));
  double loss = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* x = call.read(0) + row * classes;
    float* dx = call.write(1) + row * classes;
    const std::int32_t label = labels[row];
    if (label == attributes.ignored) {
      std::fill_n(dx, classes, 0.0F);
      continue;
    }
    const float largest = *std::max_element(x, x + classes);
    const double at_label = x[label],
                 own = (1 - attributes.smoothing) * (weights ? weights[label] : 1);
    double sum = 0, below = 0;  // of exponentials, and of even[c] * (largest - x[c])
    for (std::int64_t c = 0; c < classes; ++c) {
      below += double{even[c]} * (double{largest} - x[c]);
      sum += dx[c] = std::exp(x[c] - largest);
    }
    loss += (sum_of_even + own) * std::log(sum) + below + own * (double{largest} - at_label);
    const float share = static_cast<float>((sum_of_even + own) * back / sum);
    for (std::int64_t c = 0; c < classes; ++c)
      dx[c] = share * dx[c] - static_cast<float>(back) * even[c];
    dx[label] -= static_cast<float>(own * back);
  }
  *call.write<double>(0) = loss * factor;
}

void elementwise_loss(const Kernel& kernel, const KernelCall& call) {
  const float *x = call.read(0), *target = call.read(1);
  const auto& attributes = kernel.as<ElementLossAttributes>();
  const double constant = attributes.loss.constant,
               factor = kernel.loss_weight() / attributes.terms;
  double loss = 0;
  visit_row(attributes.loss.function, [&]<class Row>(Row) {
    for (std::int64_t i = 0; i < kernel.x.elements(); ++i) {
      const double from = x[i], to = target[i];
      loss += Row::template value<LossMath>(from, to, constant);
      call.write(1)[i] =
          static_cast<float>(factor * Row::template gradient<LossMath>(from, to, constant));
    }
  });
  *call.write<double>(0) = loss / attributes.terms;
}

void dice_sums(const Kernel& kernel, const KernelCall& call) {
  const auto& attributes = kernel.as<DiceSumsAttributes>();
  const std::int64_t classes = kernel.x[Axis::C],
                     sets = attributes.per_sample ? kernel.x[Axis::N] : 1,
                     rows = kernel.x.elements() / classes / sets;
  std::fill_n(call.write<double>(0), sets * 3 * classes, 0.0);
  for (std::int64_t set = 0; set < sets; ++set) {
    const float* x = call.read(0) + set * rows * classes;
    const auto* labels = call.read<std::int32_t>(1) + set * rows;
    double *at_label = call.write<double>(0) + set * 3 * classes, *all = at_label + classes,
           *counts = all + classes;
    if (!attributes.ignored) add_column_sums(x, rows, classes, all);
    for (std::int64_t row = 0; row < rows; ++row) {
      if (labels[row] == attributes.ignored) continue;
      at_label[labels[row]] += x[row * classes + labels[row]];
      counts[labels[row]] += 1;
      if (attributes.ignored)
        for (std::int64_t c = 0; c < classes; ++c) all[c] += x[row * classes + c];
    }
  }
}

/// With a and b as in reference/loss.cpp, dx of a position that counts is a / b^2 / classes /
/// divisor everywhere, minus 2 / b / classes / divisor at the label.
void dice_loss(const Kernel& kernel, const KernelCall& call) {
  const auto& attributes = kernel.as<DiceLossAttributes>();
  const std::int64_t classes = kernel.x[Axis::C],
                     sets = attributes.per_sample ? kernel.x[Axis::N] : 1,
                     rows = kernel.x.elements() / classes / sets;
  float *everywhere = static_cast<float*>(call.workspace), *found = everywhere + classes;
  const double terms = static_cast<double>(classes) * attributes.divisor / kernel.loss_weight();
  double loss = 0;
  for (std::int64_t set = 0; set < sets; ++set) {
    const auto* labels = call.read<std::int32_t>(0) + set * rows;
    const double *at_label = call.read<double>(1) + set * 3 * classes, *all = at_label + classes,
                 *counts = all + classes;
    double mean = 0;
    for (std::int64_t c = 0; c < classes; ++c) {
      const double a = 2 * at_label[c] + attributes.epsilon,
                   b = all[c] + counts[c] + attributes.epsilon;
      mean += a / b / static_cast<double>(classes);
      everywhere[c] = static_cast<float>(a / b / b / terms);
      found[c] = static_cast<float>((a / b - 2) / b / terms);
    }
    in_parallel(rows, 64, [&](auto begin, auto end) {
      for (std::int64_t row = begin; row < end; ++row) {
        float* dx = call.write(1) + (set * rows + row) * classes;
        if (labels[row] == attributes.ignored) {
          std::fill_n(dx, classes, 0.0F);
          continue;
        }
        std::copy_n(everywhere, classes, dx);
        dx[labels[row]] = found[labels[row]];
      }
    });
    loss += (1 - mean) / attributes.divisor;
  }
  *call.write<double>(0) = loss;
}

}  // namespace stratplan::cpu
