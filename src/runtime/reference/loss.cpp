// Losses are means over the `terms` of the whole batch. Each rank sums its own terms. The Dice loss
// is a quotient of sums over all ranks, so it takes two kernels.
#include <algorithm>
#include <cmath>

#include "runtime/reference/kernels.hpp"

namespace stratplan::reference {
namespace {

struct LossMath {
  static double exp(double x) { return std::exp(x); }
  static double log1p(double x) { return std::log1p(x); }
};

/// Returns the factor by which gradients are multiplied: the weight of the loss, times the loss
/// scale if the loss is scaled.
double gradient_scale(const Kernel& kernel, const KernelCall& call) {
  return kernel.loss_weight() *
         (kernel.scaled() ? static_cast<const double*>(call.reads.back())[0] : 1);
}

}  // namespace

void softmax_cross_entropy(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t classes = kernel.x[Axis::C], rows = kernel.x.elements() / classes;
  const double terms = kernel.as<LossAttributes>().terms;
  double loss = 0;
  const double scale = gradient_scale(kernel, call);
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* x = call.read(0) + row * classes;
    const std::int32_t label = call.read<std::int32_t>(1)[row];
    const double largest = *std::max_element(x, x + classes);
    double sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(x[c] - largest);
    loss += std::log(sum) + largest - x[label];
    for (std::int64_t c = 0; c < classes; ++c) {
      const double p = std::exp(x[c] - largest) / sum;
      call.write(1)[row * classes + c] =
          static_cast<float>(scale * (p - (c == label ? 1 : 0)) / terms);
    }
  }
  *call.write<double>(0) = loss / terms;
}

void label_weights(const Kernel& kernel, const KernelCall& call) {
  const auto& attributes = kernel.as<CrossEntropyAttributes>();
  const std::int64_t rows = kernel.x.elements() / kernel.x[Axis::C];
  double sum = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int32_t label = call.read<std::int32_t>(0)[row];
    if (label != attributes.ignored) sum += attributes.weighted ? call.read(1)[label] : 1;
  }
  *call.write<double>(0) = sum;
}

/// The loss of a label is (1 - smoothing) * w[label] * -log p[label], plus smoothing / classes
/// times the sum of w[c] * -log p[c] over all classes c. The sum of all losses is divided by the
/// sum of the labels' weights. If no label counts, the loss is zero.
void weighted_cross_entropy(const Kernel& kernel, const KernelCall& call) {
  const auto& attributes = kernel.as<CrossEntropyAttributes>();
  const std::int64_t classes = kernel.x[Axis::C], rows = kernel.x.elements() / classes;
  const double divisor = attributes.terms * (attributes.reads_divisor()
                                                 ? *call.read<double>(attributes.weighted ? 3 : 2)
                                                 : 1),
               factor = divisor > 0 ? 1 / divisor : 0, scale = gradient_scale(kernel, call);
  const auto weight = [&](std::int64_t c) {
    return attributes.weighted ? double{call.read(2)[c]} : 1;
  };
  double loss = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* x = call.read(0) + row * classes;
    float* dx = call.write(1) + row * classes;
    const std::int32_t label = call.read<std::int32_t>(1)[row];
    if (label == attributes.ignored) {
      std::fill_n(dx, classes, 0.0F);
      continue;
    }
    const double largest = *std::max_element(x, x + classes);
    double sum = 0, shares = 0;  // of exponentials, and of the shares of all classes in the label
    for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(x[c] - largest);
    const auto share = [&](std::int64_t c) {
      return attributes.smoothing / static_cast<double>(classes) * weight(c) +
             (c == label ? (1 - attributes.smoothing) * weight(c) : 0);
    };
    for (std::int64_t c = 0; c < classes; ++c) {
      shares += share(c);
      loss += share(c) * (std::log(sum) + largest - x[c]);
    }
    for (std::int64_t c = 0; c < classes; ++c)
      dx[c] =
          static_cast<float>(scale * factor * (shares * std::exp(x[c] - largest) / sum - share(c)));
  }
  *call.write<double>(0) = loss * factor;
}

void elementwise_loss(const Kernel& kernel, const KernelCall& call) {
  const auto& attributes = kernel.as<ElementLossAttributes>();
  const double constant = attributes.loss.constant, terms = attributes.terms,
               scale = gradient_scale(kernel, call);
  double sum = 0;
  visit_row(attributes.loss.function, [&]<class Row>(Row) {
    for (std::int64_t i = 0; i < kernel.x.elements(); ++i) {
      const double x = call.read(0)[i], target = call.read(1)[i];
      sum += Row::template value<LossMath>(x, target, constant);
      call.write(1)[i] =
          static_cast<float>(scale * Row::template gradient<LossMath>(x, target, constant) / terms);
    }
  });
  *call.write<double>(0) = sum / terms;
}

void dice_sums(const Kernel& kernel, const KernelCall& call) {
  const auto& attributes = kernel.as<DiceSumsAttributes>();
  const std::int64_t classes = kernel.x[Axis::C], rows = kernel.x.elements() / classes,
                     sets = attributes.per_sample ? kernel.x[Axis::N] : 1;
  std::fill_n(call.write<double>(0), sets * 3 * classes, 0.0);
  for (std::int64_t row = 0; row < rows; ++row) {
    double *at_label = call.write<double>(0) + row / (rows / sets) * 3 * classes,
           *all = at_label + classes, *labels = all + classes;
    const float* x = call.read(0) + row * classes;
    const std::int32_t label = call.read<std::int32_t>(1)[row];
    if (label == attributes.ignored) continue;
    at_label[label] += x[label];
    labels[label] += 1;
    for (std::int64_t c = 0; c < classes; ++c) all[c] += x[c];
  }
}

/// The loss of a set of samples is 1 - the mean over the classes of a / b, with a = 2 * (sum of x
/// at the label) + epsilon and b = (sum of x) + (positions with the label) + epsilon. The sum of
/// the losses of all sets is divided by `divisor`.
void dice_loss(const Kernel& kernel, const KernelCall& call) {
  const auto& attributes = kernel.as<DiceLossAttributes>();
  const std::int64_t classes = kernel.x[Axis::C], rows = kernel.x.elements() / classes,
                     sets = attributes.per_sample ? kernel.x[Axis::N] : 1, in_set = rows / sets;
  const double scale = gradient_scale(kernel, call),
               terms = static_cast<double>(classes) * attributes.divisor;
  double loss = 0;
  for (std::int64_t set = 0; set < sets; ++set) {
    const double *at_label = call.read<double>(1) + set * 3 * classes, *all = at_label + classes,
                 *labels = all + classes;
    double mean = 0;
    for (std::int64_t c = 0; c < classes; ++c) {
      const double a = 2 * at_label[c] + attributes.epsilon,
                   b = all[c] + labels[c] + attributes.epsilon;
      mean += a / b / static_cast<double>(classes);
      for (std::int64_t row = set * in_set; row < (set + 1) * in_set; ++row) {
        const std::int32_t label = call.read<std::int32_t>(0)[row];
        const double dx = label == attributes.ignored ? 0 : (a / b - (label == c ? 2 : 0)) / b;
        call.write(1)[row * classes + c] = static_cast<float>(scale * dx / terms);
      }
    }
    loss += (1 - mean) / attributes.divisor;
  }
  *call.write<double>(0) = loss;
}

}  // namespace stratplan::reference
