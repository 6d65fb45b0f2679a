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
      : weight(kernel.loss_weight()),
        scaling(kernel.scaled() ? static_cast<const double*>(call.reads.back()) : nullptr) {}
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
template <class Row>
struct RowLossTerm {
  Row row;
  const typename Row::Summary* summaries;  ///< summaries of long rows; null if rows are short

  template <int width>
  SP_DEVICE void run(const Strip& strip, double (&sum)[1][width]) const {
    for (std::int64_t r = strip.first; r < strip.last; r += strip.step)
      sum[0][0] += summaries != nullptr ? row.loss(r, summaries[r]) : written(r);
  }
  /// Writes the gradient of a short row and returns its loss. The loss is computed first, because
  /// the gradient may overwrite x.
  SP_DEVICE double written(std::int64_t r) const {
    const std::int64_t first = r * row.channels.value(), last = first + row.channels.value();
    const auto summary = row.summary(first, last, 1);
    const double loss = row.loss(r, summary);
    for (std::int64_t i = first; i < last; ++i) row.write(i, summary);
    return loss;
  }
};

template <class Row>
Bytes row_loss_workspace(const Kernel& kernel) {
  return row_workspace<Row>(kernel) + SumPlan(one_set(rows_of(kernel)), 1, 1).workspace();
}
/// Computes the loss of all rows, and writes their gradients. `finish` gets the sum of the losses.
template <class Launch, class Row, class Finish>
void row_losses(const Kernel& kernel, const KernelCall& call, const Launch& launch, const Row& row,
                const Finish& finish) {
  const auto* summaries =
      has_short_rows(kernel) ? nullptr : summarize_rows(kernel, call.workspace, launch, row);
  void* room = static_cast<char*>(call.workspace) + row_workspace<Row>(kernel).value;
  sum_strips<1>(launch, one_set(rows_of(kernel)), 1, {}, room, RowLossTerm<Row>{row, summaries},
                finish);
  if (summaries != nullptr)
    launch(kernel.x.elements(), RowElement<Row>{row, row.channels, summaries});
}

template <class T, class Launch>
void softmax_cross_entropy(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const double terms = kernel.as<LossAttributes>().terms;
  row_losses(kernel, call, launch,
             CrossEntropyRow<T>{{call.read<T>(0), call.write<T>(1)},
                                call.read<std::int32_t>(1),
                                Divisor(kernel.x[Axis::C]),
                                terms,
                                GradientScale(kernel, call)},
             LossFinish{call.write<double>(0), 0, 1 / terms});
}

// ---------------------------------------------------------------- cross-entropy with weights

/// The weights of labels: 0 if a label does not count, else the weight of its class.
struct LabelWeight {
  const std::int32_t* labels;
  const float* weights;  ///< null: the weights of all classes are 1
  bool ignores;
  std::int64_t ignored;

  LabelWeight(const Kernel& kernel, const std::int32_t* labels_, const float* weights_)
      : labels(labels_),
        weights(kernel.as<CrossEntropyAttributes>().weighted ? weights_ : nullptr),
        ignores(kernel.as<CrossEntropyAttributes>().ignored.has_value()),
        ignored(kernel.as<CrossEntropyAttributes>().ignored.value_or(0)) {}
  SP_DEVICE double of_class(std::int64_t c) const { return weights == nullptr ? 1 : weights[c]; }
  SP_DEVICE bool counts(std::int64_t row) const { return !ignores || labels[row] != ignored; }
  SP_DEVICE double of_row(std::int64_t row) const {
    return counts(row) ? of_class(labels[row]) : 0;
  }

  template <int width>
  SP_DEVICE void run(const Strip& strip, double (&sum)[1][width]) const {
    for (std::int64_t r = strip.first; r < strip.last; r += strip.step) sum[0][0] += of_row(r);
  }
};
template <class Launch>
void label_weights(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const bool weighted = kernel.as<CrossEntropyAttributes>().weighted;
  sum_strips<1>(launch, one_set(rows_of(kernel)), 1, {}, call.workspace,
                LabelWeight(kernel, call.read<std::int32_t>(0), weighted ? call.read(1) : nullptr),
                LossFinish{call.write<double>(0), 0, 1});
}

/// One divided by the divisor of the loss, which is in device memory if it depends on the labels; 0
/// if no label counts.
struct LossFactor {
  const double* divisor;  ///< null: 1
  double terms;
  SP_DEVICE double operator()() const {
    const double by = terms * (divisor == nullptr ? 1 : divisor[0]);
    return by > 0 ? 1 / by : 0;
  }
};
struct WeightedLossFinish {
  double* to;
  LossFactor factor;
  SP_DEVICE void operator()(std::int64_t, std::int64_t, const double (&sum)[1]) const {
    to[0] = sum[0] * factor();
  }
};

/// Sums over the classes of a row: of weights, and of weights * x.
struct WeightedScores {
  ExponentialSum exponentials;
  double weights, scores;
};
/// The formula is that of reference/loss.cpp.
template <class T>
struct WeightedEntropyRow {
  using Summary = WeightedScores;
  const T* x;
  T* dx;
  LabelWeight weight;
  Divisor channels;
  double smoothing;
  LossFactor factor;
  GradientScale scale;

  SP_DEVICE Summary summary(std::int64_t first, std::int64_t last, std::int64_t step) const {
    Summary summary{ExponentialSum::of(x, first, last, step), 0, 0};
    if (smoothing == 0) return summary;
    const std::int64_t row_begin = channels.quotient(first) * channels.value();
    for (std::int64_t i = first; i < last; i += step) {
      summary.weights += weight.of_class(i - row_begin);
      summary.scores += weight.of_class(i - row_begin) * double{x[i]};
    }
    return summary;
  }
  SP_DEVICE static Summary merged(const Summary& a, const Summary& b) {
    return {ExponentialSum::merged(a.exponentials, b.exponentials), a.weights + b.weights,
            a.scores + b.scores};
  }
  /// The share of each class in a label, divided by its weight.
  SP_DEVICE double even() const { return smoothing / static_cast<double>(channels.value()); }
  SP_DEVICE void write(std::int64_t i, const Summary& summary) const {
    const std::int64_t row = channels.quotient(i), c = i - row * channels.value();
    const double own = (1 - smoothing) * weight.of_row(row),
                 shares = own + even() * summary.weights,
                 share = even() * weight.of_class(c) + (c == weight.labels[row] ? own : 0);
    dx[i] = T(static_cast<float>(weight.counts(row)
                                     ? scale.factor() * factor() *
                                           (shares * summary.exponentials.share(x[i]) - share)
                                     : 0));
  }
  SP_DEVICE double loss(std::int64_t row, const Summary& summary) const {
    if (!weight.counts(row)) return 0;
    const double own = (1 - smoothing) * weight.of_row(row),
                 at_label = double{x[row * channels.value() + weight.labels[row]]},
                 largest = summary.exponentials.largest;
    return (own + even() * summary.weights) * std::log(summary.exponentials.sum) +
           own * (largest - at_label) + even() * (summary.weights * largest - summary.scores);
  }
};
template <class T, class Launch>
void weighted_cross_entropy(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const auto& attributes = kernel.as<CrossEntropyAttributes>();
  const bool weighted = attributes.weighted;
  const LossFactor factor{
      attributes.reads_divisor() ? call.read<double>(weighted ? 3 : 2) : nullptr, attributes.terms};
  row_losses(
      kernel, call, launch,
      WeightedEntropyRow<T>{
          call.read<T>(0), call.write<T>(1),
          LabelWeight(kernel, call.read<std::int32_t>(1), weighted ? call.read(2) : nullptr),
          Divisor(kernel.x[Axis::C]), attributes.smoothing, factor, GradientScale(kernel, call)},
      WeightedLossFinish{call.write<double>(0), factor});
}

// ---------------------------------------------------------------- losses of each element

struct LossMath {
  static SP_DEVICE double exp(double x) { return std::exp(x); }
  static SP_DEVICE double log1p(double x) { return std::log1p(x); }
};

/// Sums the losses of elements and writes their gradients. For sum_strips(), each element is a row
/// of one channel.
template <class Row, class T>
struct ElementLossTerm {
  const T* x;
  const float* target;
  T* dx;
  double constant, factor;
  GradientScale scale;

  template <int width>
  SP_DEVICE void run(const Strip& strip, double (&sum)[1][width]) const {
    SP_UNROLL
    for (std::int64_t i = strip.first; i < strip.last; i += strip.step) {
      const double from = double{x[i]}, to = target[i];
      sum[0][0] += Row::template value<LossMath>(from, to, constant);
      dx[i] = T(static_cast<float>(scale.factor() * factor *
                                   Row::template gradient<LossMath>(from, to, constant)));
    }
  }
};
template <class T, class Launch>
void elementwise_loss(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const auto& attributes = kernel.as<ElementLossAttributes>();
  const double factor = 1 / attributes.terms;
  visit_row(attributes.loss.function, [&]<class Row>(Row) {
    const ElementLossTerm<Row, T> term{call.read<T>(0),  call.read(1),
                                       call.write<T>(1), attributes.loss.constant,
                                       factor,           GradientScale(kernel, call)};
    sum_strips<1>(launch, one_set(kernel.x.elements()), 1, {}, call.workspace, term,
                  LossFinish{call.write<double>(0), 0, factor});
  });
}

// ---------------------------------------------------------------- Dice

/// The label that does not count.
struct IgnoredLabel {
  bool any;
  std::int64_t label;
  explicit IgnoredLabel(const std::optional<std::int64_t>& ignored)
      : any(ignored.has_value()), label(ignored.value_or(0)) {}
  SP_DEVICE bool is(std::int64_t found) const { return any && found == label; }
};

/// The rows of each set of samples over which a Dice loss sums.
inline RowSets dice_sets(const Kernel& kernel, bool per_sample) {
  return per_sample ? a_set_each_sample(kernel.x) : one_set(kernel.x);
}

template <class T>
struct DiceTerm {
  const T* x;
  const std::int32_t* labels;
  Divisor classes;
  IgnoredLabel ignored;

  template <int width>
  SP_DEVICE void run(const Strip& strip, double (&sum)[3][width]) const {
    SP_UNROLL
    for (std::int64_t i = strip.first; i < strip.last; i += strip.step) {
      const auto value = load<width>(x + i);
      const std::int64_t label = labels[classes.quotient(i)];
      const bool counts = !ignored.is(label);
      for (int k = 0; k < width; ++k) {
        const bool at_label = counts && label == strip.channel + k;
        sum[0][k] += at_label ? value[k] : 0;
        sum[1][k] += counts ? value[k] : 0;
        sum[2][k] += at_label;
      }
    }
  }
};
struct DiceFinish {
  double* sums;  ///< [sets][3][classes]
  std::int64_t classes;
  SP_DEVICE void operator()(std::int64_t set, std::int64_t channel, const double (&sum)[3]) const {
    for (int s = 0; s < 3; ++s) sums[(set * 3 + s) * classes + channel] = sum[s];
  }
};
inline Bytes dice_sums_workspace(const Kernel& kernel) {
  return SumPlan(dice_sets(kernel, kernel.as<DiceSumsAttributes>().per_sample), kernel.x[Axis::C],
                 3)
      .workspace();
}
template <class T, class Launch>
void dice_sums(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const std::int64_t classes = kernel.x[Axis::C];
  const auto& attributes = kernel.as<DiceSumsAttributes>();
  sum_strips<3>(launch, dice_sets(kernel, attributes.per_sample), classes, {call.read<T>(0)},
                call.workspace,
                DiceTerm<T>{call.read<T>(0), call.read<std::int32_t>(1), Divisor(classes),
                            IgnoredLabel(attributes.ignored)},
                DiceFinish{call.write<double>(0), classes});
}

/// Sums a / b over the classes of all sets. The loss of a set is 1 - mean over its classes of a / b
/// (reference/loss.cpp).
struct DiceQuotient {
  const double* sums;  ///< [sets][3][classes]
  Divisor classes;
  double epsilon;
  SP_DEVICE const double* of_set(std::int64_t set) const {
    return sums + set * 3 * classes.value();
  }
  SP_DEVICE double a(std::int64_t set, std::int64_t c) const {
    return 2 * of_set(set)[c] + epsilon;
  }
  SP_DEVICE double b(std::int64_t set, std::int64_t c) const {
    return of_set(set)[classes.value() + c] + of_set(set)[2 * classes.value() + c] + epsilon;
  }

  template <int width>
  SP_DEVICE void run(const Strip& strip, double (&sum)[1][width]) const {
    for (std::int64_t i = strip.first; i < strip.last; i += strip.step) {
      const std::int64_t set = classes.quotient(i), c = i - set * classes.value();
      sum[0][0] += a(set, c) / b(set, c);
    }
  }
};
/// dx of a position that counts is a / b^2 / terms everywhere, minus 2 / b / terms at the label.
template <class T>
struct DiceGradient {
  DiceQuotient quotient;
  const std::int32_t* labels;
  T* dx;
  double terms;  ///< number of classes, times the divisor of the loss
  IgnoredLabel ignored;
  GradientScale scale;

  template <int width>
  SP_DEVICE void run(const Strip& strip) const {
    float everywhere[width], at_label[width];
    for (int k = 0; k < width; ++k) {
      const double a = quotient.a(strip.set, strip.channel + k),
                   b = quotient.b(strip.set, strip.channel + k), by = terms / scale.factor();
      everywhere[k] = static_cast<float>(a / b / b / by);
      at_label[k] = static_cast<float>((a / b - 2) / b / by);
    }
    SP_UNROLL
    for (std::int64_t i = strip.first; i < strip.last; i += strip.step) {
      const std::int64_t label = labels[quotient.classes.quotient(i)];
      Pack<float, width> gradient{};
      for (int k = 0; k < width; ++k)
        gradient[k] = ignored.is(label)            ? 0
                      : label == strip.channel + k ? at_label[k]
                                                   : everywhere[k];
      store(dx + i, gradient);
    }
  }
};
inline RowSets dice_quotients(const Kernel& kernel) {
  const std::int64_t sets = kernel.as<DiceLossAttributes>().per_sample ? kernel.x[Axis::N] : 1;
  return one_set(sets * kernel.x[Axis::C]);
}
template <class T, class Launch>
void dice_loss(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const std::int64_t classes = kernel.x[Axis::C];
  const auto& attributes = kernel.as<DiceLossAttributes>();
  const RowSets sets = dice_sets(kernel, attributes.per_sample);
  const double terms = static_cast<double>(classes) * attributes.divisor;
  const DiceQuotient quotient{call.read<double>(1), Divisor(classes), attributes.epsilon};
  for_strips(launch, sets, classes, {call.write<T>(1)},
             DiceGradient<T>{quotient, call.read<std::int32_t>(0), call.write<T>(1), terms,
                             IgnoredLabel(attributes.ignored), GradientScale(kernel, call)});
  sum_strips<1>(launch, dice_quotients(kernel), 1, {}, call.workspace, quotient,
                LossFinish{call.write<double>(0),
                           static_cast<double>(sets.sets) / attributes.divisor, -1 / terms});
}

}  // namespace stratplan::cuda_kernels
