#pragma once
// A channels-last tensor consists of rows of channels. Each index has a strip, that is, a few
// neighbouring channels of every n-th row. So coefficients of a channel are loaded once for many
// rows, and sums over rows stay in registers. Neighbouring indices have neighbouring channels, then
// neighbouring rows. So all indices together read one contiguous piece of memory at a time.
//
// Sums are taken in parts that do not depend on the device. Each index adds up its strip. The parts
// are then added up in order, in two rounds if there are many.
#include <algorithm>
#include <cmath>

#include "model/partition/program/kernel.hpp"
#include "runtime/cuda/kernels/support/divisor.hpp"
#include "runtime/cuda/kernels/support/pack.hpp"

namespace stratplan::cuda_kernels {

/// The local rows of each set of samples. Samples, and so sets, lie one after the other in memory.
struct RowSets {
  std::int64_t samples = 1, positions = 1;  ///< samples on this rank, and positions per sample
  std::int64_t set_samples = 1, first_sample = 0, first_set = 0, sets = 1;

  SP_DEVICE std::int64_t begin(std::int64_t set) const {
    const std::int64_t sample = (first_set + set) * set_samples - first_sample;
    return (sample < 0 ? 0 : sample > samples ? samples : sample) * positions;
  }
  SP_DEVICE std::int64_t rows(std::int64_t set) const { return begin(set + 1) - begin(set); }
  std::int64_t most_rows() const { return std::min(set_samples, samples) * positions; }
};

inline std::int64_t positions(const Shape& shape) {
  return shape[Axis::D] * shape[Axis::H] * shape[Axis::W];
}
inline RowSets sets_of(const Kernel& kernel) {
  const StatisticsSets& sets = kernel.sets();
  return {kernel.x[Axis::N], positions(kernel.x), sets.set_samples,
          sets.first_sample, sets.first_set,      sets.sets};
}
/// Puts all rows into one set.
inline RowSets one_set(std::int64_t rows) {
  return {.samples = rows, .set_samples = std::max<std::int64_t>(1, rows)};
}
inline RowSets one_set(const Shape& shape) { return one_set(shape[Axis::N] * positions(shape)); }
inline RowSets a_set_each_sample(const Shape& shape) {
  return {.samples = shape[Axis::N], .positions = positions(shape), .sets = shape[Axis::N]};
}

struct Strip {
  std::int64_t set, part, channel;
  /// offsets at which the strip's rows begin: first, first + step, ... below last
  std::int64_t first, last, step;
};

/// Calls load(slot, element), then use(slot, element), for the rows of a strip, `batch` rows at a
/// time. The loads of a batch are in flight together. Without batches each load would wait for the
/// store before it, because the compiler must assume that the load reads what was stored.
template <int batch, class Load, class Use>
SP_DEVICE void in_batches(const Strip& strip, const Load& load, const Use& use) {
  std::int64_t i = strip.first;
  for (; i + (batch - 1) * strip.step < strip.last; i += batch * strip.step) {
    for (int slot = 0; slot < batch; ++slot) load(slot, i + slot * strip.step);
    for (int slot = 0; slot < batch; ++slot) use(slot, i + slot * strip.step);
  }
  for (; i < strip.last; i += strip.step) {
    load(0, i);
    use(0, i);
  }
}

class Strips {
 public:
  /// `parts`: the number of indices that share the rows of a set. `packed`: whether an index has
  /// four channels if their number is a multiple of four.
  Strips(const RowSets& sets, std::int64_t channels, std::int64_t parts, bool packed)
      : sets_(sets),
        channels_(channels),
        packed_(packed && channels % pack_width == 0),
        columns_(packed_ ? channels / pack_width : channels),
        parts_(parts) {}

  std::int64_t count() const {
    return sets_.sets * parts_.value() * channels_ / (packed_ ? pack_width : 1);
  }
  bool packed() const { return packed_; }
  SP_DEVICE Strip at(std::int64_t index) const {
    const std::int64_t column = columns_.split(index), part = parts_.split(index),
                       channel = packed_ ? column * pack_width : column;
    return {index,
            part,
            channel,
            (sets_.begin(index) + part) * channels_ + channel,
            sets_.begin(index + 1) * channels_,
            parts_.value() * channels_};
  }

 private:
  RowSets sets_;
  std::int64_t channels_;
  bool packed_;
  Divisor columns_, parts_;
};

template <int width, class Work>
struct StripWork {
  Strips strips;
  Work work;
  SP_DEVICE void operator()(std::int64_t index) const {
    work.template run<width>(strips.at(index));
  }
};

/// The number of indices that keep a device's memory busy. It is about 500 on each of 132
/// multiprocessors, with four loads each.
inline constexpr std::int64_t busy = 65536;
/// Returns the number of parts of a set. Each part has one index per four channels. The parts are
/// enough to keep the device busy, with `fewest` to `most` rows in each part.
inline std::int64_t parts_of(const RowSets& sets, std::int64_t channels, std::int64_t fewest,
                             std::int64_t most) {
  const std::int64_t columns =
      std::max<std::int64_t>(1, sets.sets * ((channels + pack_width - 1) / pack_width));
  const std::int64_t rows = std::max<std::int64_t>(1, sets.most_rows());
  const auto in_parts_of = [&](std::int64_t length) { return (rows + length - 1) / length; };
  return std::clamp(busy / columns, in_parts_of(most), in_parts_of(fewest));
}

/// Calls work.run<width>(strip) for strips that cover all rows. `addresses`: the tensors'
/// addresses, which must be aligned for packs to be used.
template <class Launch, class Work>
void for_strips(const Launch& launch, const RowSets& sets, std::int64_t channels,
                std::initializer_list<const void*> addresses, const Work& work) {
  const Strips strips(sets, channels, parts_of(sets, channels, 1, 8), aligned(addresses));
  strips.packed() ? launch(strips.count(), StripWork<pack_width, Work>{strips, work})
                  : launch(strips.count(), StripWork<1, Work>{strips, work});
}

// ---------------------------------------------------------------- sums

/// Plans the sums of each channel of each set. Partial sums have the shape
/// [sets][parts][sums][channels]. If there are many parts, they are folded into the shape
/// [sets][groups][sums][channels] first.
struct SumPlan {
  std::int64_t sets, channels, sums, parts, groups;

  SumPlan(const RowSets& rows, std::int64_t channels_, std::int64_t sums_)
      : sets(rows.sets),
        channels(channels_),
        sums(sums_),
        parts(parts_of(rows, channels_, 8, std::int64_t{1} << 40)),
        groups(parts) {
    if (parts > 64)
      groups = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(parts))));
  }
  std::int64_t values(std::int64_t pieces) const { return sets * pieces * sums * channels; }
  bool folds() const { return groups < parts; }
  Bytes workspace() const {
    return {(values(parts) + (folds() ? values(groups) : 0)) * size_of(DataType::F64)};
  }
};

/// Adds up a strip into the sums of its part.
template <int sums, class Term>
struct PartialSums {
  Term term;
  double* parts;  ///< [sets][parts][sums][channels]
  std::int64_t parts_of_set, channels;

  template <int width>
  SP_DEVICE void run(const Strip& strip) const {
    double sum[sums][width] = {};
    term.template run<width>(strip, sum);
    double* to = parts + (strip.set * parts_of_set + strip.part) * sums * channels + strip.channel;
    for (int s = 0; s < sums; ++s)
      for (int k = 0; k < width; ++k) to[s * channels + k] = sum[s][k];
  }
};

/// Adds up every groups_of_set-th part into one group.
struct Fold {
  const double* parts;
  double* folded;
  std::int64_t parts_of_set, groups_of_set;
  Divisor values, groups;  ///< `values` divides by sums * channels

  SP_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t to = index, value = values.split(index), group = groups.split(index);
    const double* from = parts + index * parts_of_set * values.value() + value;
    double sum = 0;
    SP_UNROLL
    for (std::int64_t part = group; part < parts_of_set; part += groups_of_set)
      sum += from[part * values.value()];
    folded[to] = sum;
  }
};

template <int sums, class Finish>
struct FinishSums {
  const double* parts;
  std::int64_t parts_of_set;
  Divisor channels;
  Finish finish;

  SP_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t channel = channels.split(index);
    const double* from = parts + index * parts_of_set * sums * channels.value() + channel;
    double sum[sums] = {};
    SP_UNROLL
    for (std::int64_t part = 0; part < parts_of_set; ++part)
      for (int s = 0; s < sums; ++s) sum[s] += from[(part * sums + s) * channels.value()];
    finish(index, channel, sum);
  }
};

/// Sums over the rows of each set. term.run<width>(strip, double (&sum)[sums][width]) adds a
/// strip's terms. finish(set, channel, const double (&sum)[sums]) gets the sums of all rows of a
/// set. `workspace` must have SumPlan(...).workspace() bytes. `addresses` are as in for_strips().
template <int sums, class Launch, class Term, class Finish>
void sum_strips(const Launch& launch, const RowSets& sets, std::int64_t channels,
                std::initializer_list<const void*> addresses, void* workspace, const Term& term,
                const Finish& finish) {
  const SumPlan plan(sets, channels, sums);
  const Strips strips(sets, channels, plan.parts, aligned(addresses));
  double *parts = static_cast<double*>(workspace), *folded = parts + plan.values(plan.parts);
  using Partial = PartialSums<sums, Term>;
  const Partial partial{term, parts, plan.parts, channels};
  strips.packed() ? launch(strips.count(), StripWork<pack_width, Partial>{strips, partial})
                  : launch(strips.count(), StripWork<1, Partial>{strips, partial});
  if (plan.folds())
    launch(plan.values(plan.groups), Fold{parts, folded, plan.parts, plan.groups,
                                          Divisor(sums * channels), Divisor(plan.groups)});
  launch(sets.sets * channels, FinishSums<sums, Finish>{plan.folds() ? folded : parts, plan.groups,
                                                        Divisor(channels), finish});
}

}  // namespace stratplan::cuda_kernels
