#pragma once
// Sums of tensors, and dropout.
#include <algorithm>
#include <vector>

#include "model/base/philox.hpp"
#include "runtime/cuda/kernels/support/elements.hpp"
#include "runtime/cuda/kernels/support/places.hpp"

namespace stratplan::cuda_kernels {

/// The largest number of tensors that one launch adds.
inline constexpr std::size_t most_terms = 16;

template <class T>
struct SumWork {
  T* to;
  std::int64_t count;
  bool packed;
  int terms = 0;
  const T* from[most_terms] = {};

  SP_DEVICE void operator()(std::int64_t index) const {
    const std::int64_t first = index * pack_width;
    if (packed && first + pack_width <= count) return add<pack_width>(first);
    for (std::int64_t i = first; i < first + pack_width && i < count; ++i) add<1>(i);
  }
  template <int width>
  SP_DEVICE void add(std::int64_t first) const {
    auto sum = load<width>(from[0] + first);
    for (int t = 1; t < terms; ++t) {
      const auto term = load<width>(from[t] + first);
      for (int k = 0; k < width; ++k) sum[k] += term[k];
    }
    store(to + first, sum);
  }
};

/// If the result overwrites a term, the first launch reads that term. Each later launch adds more
/// terms to the result of the launch before.
template <class T, class Launch>
void add(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  T* y = call.write<T>(0);
  std::vector<const T*> terms;
  for (std::size_t i = 0; i < call.reads.size(); ++i) terms.push_back(call.read<T>(i));
  const auto overwritten = std::find(terms.begin(), terms.end(), y);
  if (overwritten != terms.end()) std::iter_swap(terms.begin(), overwritten);
  for (std::size_t next = 0; next < terms.size();) {
    SumWork<T> work{y, kernel.y.elements(), aligned({y})};
    if (next > 0) work.from[work.terms++] = y;
    for (; next < terms.size() && work.terms < static_cast<int>(most_terms); ++next) {
      work.packed = work.packed && aligned({terms[next]});
      work.from[work.terms++] = terms[next];
    }
    launch((work.count + pack_width - 1) / pack_width, work);
  }
}

/// An element is kept if its uniform random number is at least the probability of being dropped.
/// Four elements share a block of random numbers, so a pack usually needs one block.
template <class T>
struct DropoutWork {
  RandomStream steps;
  const StepNumbers* now;
  Region region;
  Shape global;
  double probability;
  float factor;
  const T* x;
  T* y;

  template <int width>
  SP_DEVICE void run(const Place& at) const {
    const RandomStream random = steps.at(now->step);
    const auto start = [&](Axis axis) { return region.interval[static_cast<int>(axis)].begin; };
    const std::int64_t first = row_of(global, at.n + start(Axis::N), at.d + start(Axis::D),
                                      at.h + start(Axis::H), at.w + start(Axis::W)) +
                               at.channel + start(Axis::C);
    auto value = load<width>(x + at.element);
    std::uint64_t block = static_cast<std::uint64_t>(first) / 4;
    PhiloxBlock words = random.words(block);
    for (int k = 0; k < width; ++k) {
      const std::uint64_t element = static_cast<std::uint64_t>(first + k);
      if (element / 4 != block) words = random.words(++block);
      const std::uint32_t word = element % 4 == 0   ? words[0]
                                 : element % 4 == 1 ? words[1]
                                 : element % 4 == 2 ? words[2]
                                                    : words[3];
      value[k] = RandomStream::unit(word) >= probability ? value[k] * factor : 0;
    }
    store(y + at.element, value);
  }
};
template <class T, class Launch>
void dropout(const Kernel& kernel, const KernelCall& call, const Launch& launch) {
  const KernelContext& context = call.context;
  const double probability = kernel.as<DropoutAttributes>().probability;
  const RandomStream steps(context.seed, context.layer);
  const T* x = call.read<T>(0);
  T* y = call.write<T>(0);
  for_places(launch, kernel.x, {x, y},
             DropoutWork<T>{steps, context.now, context.region, context.global, probability,
                            static_cast<float>(1 / (1 - probability)), x, y});
}

}  // namespace stratplan::cuda_kernels
