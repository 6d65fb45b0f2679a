// Functions of two tensors (network/functions/binary.hpp). If all positions along an axis read the
// same element of an input, the input's step along the axis is 0. An output may be one of the
// inputs, element for element, so loops are marked ivdep and pointers are not restrict.
#include <array>

#include "runtime/cpu/kernels.hpp"

namespace stratplan::cpu {
namespace {

/// Runs of channels in the inputs a and b, and in dy. A step is 0 (the same element for all
/// channels) or 1 (the next element).
struct Runs {
  const float *a, *b, *dy;
  std::int64_t a_step, b_step;
};

/// Calls loop(a_step, b_step) with the steps as compile-time constants, so that each pair of steps
/// has a vectorized loop.
template <class Loop>
[[gnu::always_inline]] inline void with_steps(const Runs& at, Loop loop) {
  using Same = std::integral_constant<std::int64_t, 0>;
  using Next = std::integral_constant<std::int64_t, 1>;
  if (at.a_step == 1 && at.b_step == 1) return loop(Next{}, Next{});
  if (at.a_step == 1) return loop(Next{}, Same{});
  if (at.b_step == 1) return loop(Same{}, Next{});
  loop(Same{}, Same{});
}

template <class Row>
[[gnu::always_inline]] inline void values(const Runs& at, float* y, std::int64_t count) {
  with_steps(at, [&](auto a_step, auto b_step) {
    _Pragma("GCC ivdep") for (std::int64_t i = 0; i < count; ++i) y[i] =
        Row::value(at.a[i * a_step], at.b[i * b_step]);
  });
}

template <class Row, int which>
[[gnu::always_inline]] inline void gradients(const Runs& at, float* dx, std::int64_t count) {
  with_steps(at, [&](auto a_step, auto b_step) {
    _Pragma("GCC ivdep") for (std::int64_t i = 0; i < count; ++i) dx[i] =
        binary::gradient<Row, which>(at.a[i * a_step], at.b[i * b_step], at.dy[i]);
  });
}

/// Adds the gradient of each channel to the channel's sum.
template <class Row, int which>
[[gnu::always_inline]] inline void add_to_channels(const Runs& at, double* sums,
                                                   std::int64_t count) {
  with_steps(at, [&](auto a_step, auto b_step) {
    _Pragma("GCC ivdep") for (std::int64_t i = 0; i < count; ++i) sums[i] +=
        binary::gradient<Row, which>(at.a[i * a_step], at.b[i * b_step], at.dy[i]);
  });
}

/// Returns the sum of the gradient over all channels. Eight partial sums make the order of
/// summation independent of the instruction set.
template <class Row, int which>
[[gnu::always_inline]] inline double sum_of_channels(const Runs& at, std::int64_t count) {
  constexpr std::int64_t lanes = 8;
  double sums[lanes]{};
  with_steps(at, [&](auto a_step, auto b_step) {
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes)
      for (std::int64_t lane = 0; lane < lanes; ++lane)
        sums[lane] += binary::gradient<Row, which>(at.a[(i + lane) * a_step],
                                                   at.b[(i + lane) * b_step], at.dy[i + lane]);
    for (; i < count; ++i)
      sums[0] += binary::gradient<Row, which>(at.a[i * a_step], at.b[i * b_step], at.dy[i]);
  });
  double sum = 0;
  for (const double lane : sums) sum += lane;
  return sum;
}

// Each loop is a function of its own, because only functions can be compiled for several
// instruction sets. The functions are flattened, because calls would prevent vectorization.
#define SP_ROW_LOOPS(Row)                                                                         \
  [[gnu::flatten]] SP_CLONES void values_of_##Row(const Runs& at, float* y, std::int64_t count) { \
    values<binary::Row>(at, y, count);                                                            \
  }                                                                                               \
  SP_GRADIENT_LOOPS(Row, 0, first)                                                                \
  SP_GRADIENT_LOOPS(Row, 1, second)
#define SP_GRADIENT_LOOPS(Row, which, name)                                                   \
  [[gnu::flatten]] SP_CLONES void name##_gradients_of_##Row(const Runs& at, float* dx,        \
                                                            std::int64_t count) {             \
    gradients<binary::Row, which>(at, dx, count);                                             \
  }                                                                                           \
  [[gnu::flatten]] SP_CLONES void name##_channels_of_##Row(const Runs& at, double* sums,      \
                                                           std::int64_t count) {              \
    add_to_channels<binary::Row, which>(at, sums, count);                                     \
  }                                                                                           \
  [[gnu::flatten]] SP_CLONES double name##_sum_of_##Row(const Runs& at, std::int64_t count) { \
    return sum_of_channels<binary::Row, which>(at, count);                                    \
  }
SP_BINARY_FUNCTIONS(SP_ROW_LOOPS)
#undef SP_GRADIENT_LOOPS
#undef SP_ROW_LOOPS

struct GradientLoops {
  void (*alone)(const Runs&, float*, std::int64_t);
  void (*channels)(const Runs&, double*, std::int64_t);
  double (*sum)(const Runs&, std::int64_t);
};
struct Loops {
  void (*values)(const Runs&, float*, std::int64_t);
  std::array<GradientLoops, 2> gradients;
};
#define SP_ROW_ENTRY(Row)                                                          \
  Loops{values_of_##Row,                                                           \
        {{{first_gradients_of_##Row, first_channels_of_##Row, first_sum_of_##Row}, \
          {second_gradients_of_##Row, second_channels_of_##Row, second_sum_of_##Row}}}},
constexpr std::array loops{SP_BINARY_FUNCTIONS(SP_ROW_ENTRY)};
#undef SP_ROW_ENTRY

const Loops& loops_of(const Kernel& kernel) {
  return loops[static_cast<std::size_t>(kernel.as<Binary>().function)];
}

/// Computes the offsets into a tensor of shape `shape` at which positions of a tensor of shape
/// `places` read it. The second tensor may have more elements along some axes.
class Steps {
 public:
  Steps(const Shape& shape, const Shape& places) {
    std::int64_t stride = 1;
    for (const Axis axis : {Axis::C, Axis::W, Axis::H, Axis::D, Axis::N}) {
      of(axis) = shape[axis] == 1 && places[axis] > 1 ? 0 : stride;
      stride *= shape[axis];
    }
  }
  std::int64_t of(Axis axis) const { return steps_[static_cast<std::size_t>(axis)]; }
  std::int64_t row(std::int64_t n, std::int64_t d, std::int64_t h, std::int64_t w) const {
    return n * of(Axis::N) + d * of(Axis::D) + h * of(Axis::H) + w * of(Axis::W);
  }

 private:
  std::int64_t& of(Axis axis) { return steps_[static_cast<std::size_t>(axis)]; }
  std::array<std::int64_t, axis_count> steps_{};
};

/// The two inputs and dy, addressed by positions of y.
struct Tensors {
  const float *a, *b, *dy;
  Steps of_a, of_b, of_dy;

  Runs at(std::int64_t n, std::int64_t d, std::int64_t h, std::int64_t w) const {
    return {a + of_a.row(n, d, h, w), b + of_b.row(n, d, h, w),
            dy ? dy + of_dy.row(n, d, h, w) : nullptr, of_a.of(Axis::C), of_b.of(Axis::C)};
  }
};

/// Calls visit(position, runs) for the positions [begin, end) of y, in memory order.
template <class Visit>
void for_positions(const Shape& y, const Tensors& tensors, std::int64_t begin, std::int64_t end,
                   Visit visit) {
  for (std::int64_t position = begin; position < end; ++position) {
    const std::int64_t w = position % y[Axis::W], rows = position / y[Axis::W],
                       h = rows % y[Axis::H], planes = rows / y[Axis::H], d = planes % y[Axis::D];
    visit(position, tensors.at(planes / y[Axis::D], d, h, w));
  }
}

/// Returns the shape of y, flattened to one run of elements if all tensors have that shape.
Shape merged(const Kernel& kernel) {
  if (kernel.x != kernel.y || kernel.as<Binary>().second != kernel.y) return kernel.y;
  Shape flat;
  flat[Axis::C] = kernel.y.elements();
  return flat;
}

/// Calls visit(runs, offset of the first channel in y, number of channels) for pieces of y.
template <class Visit>
void for_runs(const Kernel& kernel, const float* a, const float* b, const float* dy, Visit visit) {
  const Shape y = merged(kernel);
  if (y != kernel.y)
    return in_parallel(y[Axis::C], element_grain, [&](std::int64_t begin, std::int64_t end) {
      visit(Runs{a + begin, b + begin, dy ? dy + begin : nullptr, 1, 1}, begin, end - begin);
    });
  const Tensors tensors{a,          b, dy, Steps(kernel.x, y), Steps(kernel.as<Binary>().second, y),
                        Steps(y, y)};
  const std::int64_t channels = y[Axis::C];
  in_parallel(y.elements() / channels, std::max<std::int64_t>(1, element_grain / channels),
              [&](std::int64_t begin, std::int64_t end) {
                for_positions(y, tensors, begin, end, [&](std::int64_t position, const Runs& at) {
                  visit(at, position * channels, channels);
                });
              });
}

/// Calls visit(runs) for the positions of y that read the element at `position` of `repeated`.
/// These are all positions along the axes where `repeated` has one element.
template <class Visit>
void for_repeats(const Shape& repeated, const Shape& y, std::int64_t position,
                 const Tensors& tensors, Visit visit) {
  const auto range = [&](Axis axis, std::int64_t index) {
    return repeated[axis] == 1 ? std::pair<std::int64_t, std::int64_t>{0, y[axis]}
                               : std::pair<std::int64_t, std::int64_t>{index, index + 1};
  };
  const std::int64_t rows = position / repeated[Axis::W], planes = rows / repeated[Axis::H];
  const auto along_w = range(Axis::W, position % repeated[Axis::W]),
             along_h = range(Axis::H, rows % repeated[Axis::H]),
             along_d = range(Axis::D, planes % repeated[Axis::D]);
  const std::int64_t n = planes / repeated[Axis::D];
  for (std::int64_t d = along_d.first; d < along_d.second; ++d)
    for (std::int64_t h = along_h.first; h < along_h.second; ++h)
      for (std::int64_t w = along_w.first; w < along_w.second; ++w) visit(tensors.at(n, d, h, w));
}

constexpr std::int64_t summed_channels = 64;  ///< channels whose sums are held at a time

/// Writes the gradient of an input whose elements are read repeatedly. An element's gradient is the
/// sum over the positions of y that read the element. A unit of work is one position and one block
/// of channels.
void sum_repeats(const Kernel& kernel, const Tensors& tensors, const GradientLoops& gradient,
                 float* dx) {
  const Shape &repeated = kernel.differentiated(), &y = kernel.y;
  const bool over_channels = repeated[Axis::C] < y[Axis::C];
  const std::int64_t channels = repeated[Axis::C],
                     blocks =
                         over_channels ? 1 : (channels + summed_channels - 1) / summed_channels,
                     positions = repeated.elements() / channels,
                     terms = y.elements() / (positions * blocks);
  in_parallel(positions * blocks, std::max<std::int64_t>(1, element_grain / terms),
              [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t unit = begin; unit < end; ++unit) {
                  const std::int64_t position = unit / blocks,
                                     first = unit % blocks * summed_channels,
                                     count = std::min(summed_channels, channels - first);
                  double sums[summed_channels]{};
                  for_repeats(repeated, y, position, tensors, [&](Runs at) {
                    if (over_channels) {
                      sums[0] += gradient.sum(at, y[Axis::C]);
                    } else {
                      at.a += first * at.a_step;
                      at.b += first * at.b_step;
                      at.dy += first;
                      gradient.channels(at, sums, count);
                    }
                  });
                  for (std::int64_t c = 0; c < count; ++c)
                    dx[position * channels + first + c] = static_cast<float>(sums[c]);
                }
              });
}

}  // namespace

void binary_forward(const Kernel& kernel, const KernelCall& call) {
  for_runs(kernel, call.read(0), call.read(1), nullptr,
           [&](const Runs& at, std::int64_t first, std::int64_t count) {
             loops_of(kernel).values(at, call.write(0) + first, count);
           });
}

/// If the gradient does not depend on an input, the input is not an operand. The loops then read dy
/// in the input's place and ignore the values.
void binary_backward(const Kernel& kernel, const KernelCall& call) {
  const Binary& binary = kernel.as<Binary>();
  const auto which = static_cast<std::size_t>(binary.of);
  const auto [first, second] = row_of(binary.function).reads[which];
  const float* dy = call.read(call.reads.size() - 1);
  const float *a = first ? call.read(0) : dy, *b = second ? call.read(first ? 1 : 0) : dy;
  const GradientLoops& gradient = loops_of(kernel).gradients[which];
  if (kernel.differentiated() == kernel.y)
    return for_runs(kernel, a, b, dy, [&](const Runs& at, std::int64_t begin, std::int64_t count) {
      gradient.alone(at, call.write(0) + begin, count);
    });
  const Tensors tensors{a,
                        b,
                        dy,
                        Steps(kernel.x, kernel.y),
                        Steps(binary.second, kernel.y),
                        Steps(kernel.y, kernel.y)};
  sum_repeats(kernel, tensors, gradient, call.write(0));
}

}  // namespace stratplan::cpu
