#pragma once
// Losses are means over the `terms` of the whole batch. Each rank sums its own terms.
#include "runtime/cuda/kernels/softmax.hpp"
#include "runtime/cuda/kernels/support/strips.hpp"

namespace stratplan::cuda_kernels {

/// to[0] = constant + factor * sum
struct LossFinish {
  double* to;
  double constant, factor;
  SP_DEVICE void operator()(std::int64_t, std::int64_t, const double (&sum)[1]) const {
    to[0] = constant + factor * sum[0];
  }
};

/// The factor of gradients: the weight of the loss, times the loss scale, which is in device
/// memory, if the loss is scaled.
struct GradientScale {
  double weight;
  const double* scaling;
  GradientScale(const Kernel& kernel, const KernelCall& call)
      : weight(kernel.loss_weight()), scaling(kernel.scaled() ? call.read<double>(2) : nullptr) {}
  SP_DEVICE double factor() const { return scaling == nullptr ? weight : weight * scaling[0]; }
};

// ---------------------------------------------------------------- cross-entropy

/// The cross-entropy of a row. write() stores the gradient of the mean loss, and loss() returns the
/// row's loss.
template <class T>
struct CrossEntropyRow : SoftmaxRow<T> {
  using typename SoftmaxRow<T>::Summary;
  using SoftmaxRow<T>::x, SoftmaxRow<T>::y;
  const std::int32_t* labels;
  Divisor channels;
  double terms;
  GradientScale scale;

  SP_DEVICE void write(std::int64_t i, const Summary& summary) const {
    const std::int64_t row = channels.quotient(i), label = row * channels.value() + labels[row];
    y[i] = T(
        static_cast<float>(scale.factor() * (summary.share(x[i]) - (i == label ? 1 : 0)) / terms));
  }
  SP_DEVICE double loss(std::int64_t row, const Summary& summary) const {
    return std::log(summary.sum) + summary.largest - x[row * channels.value() + labels[row]];
  }
};

/// Sums the losses of all rows. For sum_strips(), each loss is a row of one channel. If rows are
/// short, this term also summarizes them and writes their gradients.
template <class T>
struct CrossEntropyTerm {
  CrossEntropyRow<T> row;
  const ExponentialSum* summaries;  ///< summaries of long rows; null if rows are short

  template <int width>
  SP_DEVICE void run(const Strip& strip, double (&sum)[1][width]) const {
    for (std::int64_t r = strip.first; r < strip.last; r += strip.step)
      sum[0][0] += summaries != nullptr ? row.loss(r, summaries[r]) : written(r);
  }
  /// Writes the gradient of a short row and returns its loss. The loss is computed first, because
  /// the gradient may overwrite x.
  SP_DEVICE double written(std::int64_t r) const {
    const std::int64_t first = r * row.channels.value(), last = first + row.channels.value();
    const ExponentialSum summary = row.summary(first, last, 1);
    const double loss = row.loss(r, summary);
    for (std::int64_t i = first; i < last; ++i) row.write(i, summary);
    return loss;
  }
};

inline Bytes cross_entropy_workspace(const Kernel& kernel) {
  return row_workspace<SoftmaxRow<float>>(kernel) +
         SumPlan(one_set(rows_of(kernel)), 1, 1).workspace();
}
template <class T, class Launch>
void softmax_cross_entropy(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const Divisor channels(kernel.x[Axis::C]);
  const CrossEntropyRow<T> row{{call.read<T>(0), call.write<T>(1)},
                               call.read<std::int32_t>(1),
                               channels,
                               kernel.as<LossAttributes>().terms,
                               GradientScale(kernel, call)};
  const ExponentialSum* summaries =
      has_short_rows(kernel) ? nullptr : summarize_rows(kernel, call.workspace, launch, row);
  void* room = static_cast<char*>(call.workspace) + row_workspace<SoftmaxRow<float>>(kernel).value;
  sum_strips<1>(launch, one_set(rows_of(kernel)), 1, {}, room, CrossEntropyTerm<T>{row, summaries},
                LossFinish{call.write<double>(0), 0, 1 / kernel.as<LossAttributes>().terms});
  if (summaries != nullptr)
    launch(kernel.x.elements(), RowElement<CrossEntropyRow<T>>{row, channels, summaries});
}

// ---------------------------------------------------------------- squared error

/// Sums squared differences and writes their gradients. For sum_strips(), each element is a row of
/// one channel.
template <class T>
struct SquaredErrorTerm {
  const T* x;
  const float* target;
  T* dx;
  double factor;
  GradientScale scale;

  template <int width>
  SP_DEVICE void run(const Strip& strip, double (&sum)[1][width]) const {
    SP_UNROLL
    for (std::int64_t i = strip.first; i < strip.last; i += strip.step) {
      const double difference = double{x[i]} - target[i];
      sum[0][0] += difference * difference;
      dx[i] = T(static_cast<float>(scale.factor() * factor * difference));
    }
  }
};
template <class T, class Launch>
void mean_squared_error(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const double terms = kernel.as<LossAttributes>().terms;
  const SquaredErrorTerm<T> term{call.read<T>(0), call.read(1), call.write<T>(1), 2 / terms,
                                 GradientScale(kernel, call)};
  sum_strips<1>(launch, one_set(kernel.x.elements()), 1, {}, call.workspace, term,
                LossFinish{call.write<double>(0), 0, 1 / terms});
}

// ---------------------------------------------------------------- Dice

template <class T>
struct DiceTerm {
  const T* x;
  const std::int32_t* labels;
  Divisor classes;

  template <int width>
  SP_DEVICE void run(const Strip& strip, double (&sum)[3][width]) const {
    SP_UNROLL
    for (std::int64_t i = strip.first; i < strip.last; i += strip.step) {
      const auto value = load<width>(x + i);
      const std::int64_t label = labels[classes.quotient(i)];
      for (int k = 0; k < width; ++k) {
        const bool at_label = label == strip.channel + k;
        sum[0][k] += at_label ? value[k] : 0;
        sum[1][k] += value[k];
        sum[2][k] += at_label;
      }
    }
  }
};
struct DiceFinish {
  double* sums;  ///< [3][classes]
  std::int64_t classes;
  SP_DEVICE void operator()(std::int64_t, std::int64_t channel, const double (&sum)[3]) const {
    for (int s = 0; s < 3; ++s) sums[s * classes + channel] = sum[s];
  }
};
template <class T, class Launch>
void dice_sums(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const std::int64_t classes = kernel.x[Axis::C];
  sum_strips<3>(launch, one_set(kernel.x), classes, {call.read<T>(0)}, call.workspace,
                DiceTerm<T>{call.read<T>(0), call.read<std::int32_t>(1), Divisor(classes)},
                DiceFinish{call.write<double>(0), classes});
}

/// Sums a / b over the classes. The loss is 1 - mean over the classes of a / b
/// (reference/loss.cpp).
struct DiceQuotient {
  const double* sums;
  std::int64_t classes;
  double epsilon;
  SP_DEVICE double a(std::int64_t c) const { return 2 * sums[c] + epsilon; }
  SP_DEVICE double b(std::int64_t c) const {
    return sums[classes + c] + sums[2 * classes + c] + epsilon;
  }

  template <int width>
  SP_DEVICE void run(const Strip& strip, double (&sum)[1][width]) const {
    for (std::int64_t c = strip.first; c < strip.last; c += strip.step) sum[0][0] += a(c) / b(c);
  }
};
/// dx is a / b^2 / classes everywhere, minus 2 / b / classes at the label.
template <class T>
struct DiceGradient {
  DiceQuotient quotient;
  const std::int32_t* labels;
  T* dx;
  Divisor classes;
  GradientScale scale;

  template <int width>
  SP_DEVICE void run(const Strip& strip) const {
    float everywhere[width], at_label[width];
    for (int k = 0; k < width; ++k) {
      const double a = quotient.a(strip.channel + k), b = quotient.b(strip.channel + k),
                   terms = static_cast<double>(quotient.classes) / scale.factor();
      everywhere[k] = static_cast<float>(a / b / b / terms);
      at_label[k] = static_cast<float>((a / b - 2) / b / terms);
    }
    SP_UNROLL
    for (std::int64_t i = strip.first; i < strip.last; i += strip.step) {
      const std::int64_t label = labels[classes.quotient(i)];
      Pack<float, width> gradient{};
      for (int k = 0; k < width; ++k)
        gradient[k] = label == strip.channel + k ? at_label[k] : everywhere[k];
      store(dx + i, gradient);
    }
  }
};
template <class T, class Launch>
void dice_loss(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const std::int64_t classes = kernel.x[Axis::C];
  const DiceQuotient quotient{call.read<double>(1), classes,
                              kernel.as<DiceLossAttributes>().epsilon};
  for_strips(launch, one_set(kernel.x), classes, {call.write<T>(1)},
             DiceGradient<T>{quotient, call.read<std::int32_t>(0), call.write<T>(1),
                             Divisor(classes), GradientScale(kernel, call)});
  sum_strips<1>(launch, one_set(classes), 1, {}, call.workspace, quotient,
                LossFinish{call.write<double>(0), 1, -1 / static_cast<double>(classes)});
}

}  // namespace stratplan::cuda_kernels
