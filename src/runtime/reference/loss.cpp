// Losses are means over the `terms` of the whole batch. Each rank sums its own terms. The Dice loss
// is a quotient of sums over all ranks, so it takes two kernels.
#include <algorithm>
#include <cmath>

#include "runtime/reference/kernels.hpp"

namespace stratplan::reference {
namespace {

/// Returns the factor by which gradients are multiplied: the weight of the loss, times the loss
/// scale if the loss is scaled.
double gradient_scale(const Kernel& kernel, const KernelCall& call) {
  return kernel.loss_weight() * (kernel.scaled() ? call.read<double>(2)[0] : 1);
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

void mean_squared_error(const Kernel& kernel, const KernelCall& call) {
  const double terms = kernel.as<LossAttributes>().terms;
  double loss = 0;
  const double scale = gradient_scale(kernel, call);
  for (std::int64_t i = 0; i < kernel.x.elements(); ++i) {
    const double difference = double{call.read(0)[i]} - call.read(1)[i];
    loss += difference * difference;
    call.write(1)[i] = static_cast<float>(scale * 2 * difference / terms);
  }
  *call.write<double>(0) = loss / terms;
}

void dice_sums(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t classes = kernel.x[Axis::C], rows = kernel.x.elements() / classes;
  double *at_label = call.write<double>(0), *all = at_label + classes, *labels = all + classes;
  std::fill_n(at_label, 3 * classes, 0.0);
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* x = call.read(0) + row * classes;
    const std::int32_t label = call.read<std::int32_t>(1)[row];
    at_label[label] += x[label];
    labels[label] += 1;
    for (std::int64_t c = 0; c < classes; ++c) all[c] += x[c];
  }
}

/// The loss is 1 - the mean over the classes of a / b, with a = 2 * (sum of x at the label) +
/// epsilon and b = (sum of x) + (positions with the label) + epsilon.
void dice_loss(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t classes = kernel.x[Axis::C];
  const double *at_label = call.read<double>(1), *all = at_label + classes, *labels = all + classes;
  const double epsilon = kernel.as<DiceLossAttributes>().epsilon;
  double mean = 0;
  const double scale = gradient_scale(kernel, call);
  for (std::int64_t c = 0; c < classes; ++c) {
    const double a = 2 * at_label[c] + epsilon, b = all[c] + labels[c] + epsilon;
    mean += a / b / static_cast<double>(classes);
    for (std::int64_t i = c; i < kernel.x.elements(); i += classes) {
      const double da = call.read<std::int32_t>(0)[i / classes] == c ? 2 : 0;
      call.write(1)[i] =
          static_cast<float>(scale * (a / b - da) / b / static_cast<double>(classes));
    }
  }
  *call.write<double>(0) = 1 - mean;
}

}  // namespace stratplan::reference
