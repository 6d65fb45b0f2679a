// A convolution on the part of x that its windows reach gives the same result as on all of x. The
// reference backend is the judge.
#include "runtime/cuda/cudnn/cropped.hpp"

#include <gtest/gtest.h>

#include "runtime/kernel_runner.hpp"

namespace stratplan::test {
namespace {

using cudnn::Cropped;
using cudnn::cropped;

Kernel copy(const Shape& source, const Shape& destination, const CopyAttributes& attributes) {
  return {.kind = KernelKind::CopyRegion, .x = source, .y = destination, .attributes = attributes};
}

/// part_of: the part of x that the windows reach. around: x with that part in it, and zeros
/// elsewhere.
Values part_of(Backend& backend, const Kernel& kernel, const Cropped& part, const Values& x) {
  const Kernel cut = copy(kernel.x, part.kernel.x, {.region = part.kernel.x, .from = part.from});
  return run(backend, cut, {x}).at(0);
}
Values around(Backend& backend, const Kernel& kernel, const Cropped& part, const Values& values) {
  const Kernel paste = copy(part.kernel.x, kernel.x, {.region = part.kernel.x, .to = part.from});
  return run(backend, paste, {values}, whole_context(paste),
             {zeros({DataType::F32, kernel.x.elements()})})
      .at(0);
}

Values on_the_part(Backend& backend, const Kernel& kernel, std::vector<Values> reads) {
  const Cropped part = cropped(kernel);
  if (kernel.kind != KernelKind::ConvolutionBackwardData)
    reads[0] = part_of(backend, kernel, part, reads[0]);
  const Values result = run(backend, part.kernel, reads).at(0);
  return kernel.kind == KernelKind::ConvolutionBackwardData ? around(backend, kernel, part, result)
                                                            : result;
}

TEST(Cropped, SaysWhatIsRead) {
  struct Row {
    std::int64_t x;
    Window window;
    std::int64_t y, from, extent, pad_before, pad_after;
  };
  // x; kernel, stride, dilation, pads; y, from, extent, pads
  const std::vector<Row> table{
      {8, {3, 1, 1, 1, 1}, 8, 0, 8, 1, 1},    // nothing to crop
      {8, {3, 2, 1, 1, 0}, 4, 0, 8, 1, 1},    // padding that is not read makes both ends alike
      {7, {3, 2, 1, 1, 0}, 3, 0, 7, 1, 0},    // here it would be read
      {8, {3, 2, 1, 0, 0}, 3, 0, 8, 0, 0},    // less than a stride remains at the end
      {8, {1, 1, 1, -2, 0}, 6, 2, 6, 0, 0},   // begins inside of x
      {8, {3, 1, 1, -1, -2}, 3, 1, 5, 0, 0},  // begins and ends inside of x
      {9, {2, 3, 1, 0, 0}, 2, 0, 5, 0, 0},    // more than a stride remains at the end
      {9, {2, 3, 1, -1, 2}, 3, 1, 8, 0, 0},   // padding that is not read
      {4, {3, 1, 1, -2, 3}, 3, 2, 2, 0, 3}};
  for (const Row& row : table) {
    const Kernel kernel{.kind = KernelKind::ConvolutionForward,
                        .x = {{1, 1, 1, row.x, 1}},
                        .y = {{1, 1, 1, row.y, 1}},
                        .attributes = ConvolutionAttributes{.windows = {Window{}, row.window, {}}}};
    const Cropped part = cropped(kernel);
    SCOPED_TRACE(kernel.key());
    const Window& window = part.kernel.windows()[1];
    EXPECT_EQ(part.kernel.x[Axis::H], row.extent);
    EXPECT_EQ(part.from[static_cast<std::size_t>(Axis::H)], row.from);
    EXPECT_EQ(window.pad_before, row.pad_before);
    EXPECT_EQ(window.pad_after, row.pad_after);
    EXPECT_EQ(part.whole, part.kernel.x == kernel.x);
    EXPECT_EQ(window.output_extent(row.extent), row.y);
  }
}

TEST(Cropped, GivesTheSameInAllDirections) {
  Random random(5);
  const std::unique_ptr<Backend> backend = make_reference_backend();
  for (int round = 0; round < 200; ++round) {
    Kernel kernel{
        .kind = KernelKind::ConvolutionForward, .x = {{2, 2, 1, 1, 1}}, .y = {{2, 3, 1, 1, 1}}};
    for (const Axis axis : spatial_axes) {
      Window& window = kernel.windows()[static_cast<std::size_t>(spatial_index(axis))];
      window = {between(random, 1, 3), between(random, 1, 3), between(random, 1, 2),
                between(random, -2, 2), 0};
      kernel.y[axis] = between(random, 1, 3);
      const std::int64_t end =
          (kernel.y[axis] - 1) * window.stride + window.span() - window.pad_before;
      kernel.x[axis] = std::max<std::int64_t>(1 - std::min<std::int64_t>(0, window.pad_before),
                                              end + between(random, -2, 4));
      window.pad_after = std::max<std::int64_t>(-1, end - kernel.x[axis]);
    }
    if (cropped(kernel).kernel.x.elements() == 0) continue;
    for (const KernelKind kind :
         {KernelKind::ConvolutionForward, KernelKind::ConvolutionBackwardData,
          KernelKind::ConvolutionBackwardFilter}) {
      kernel.kind = kind;
      std::vector<Values> reads;
      for (const Operand& operand : kernel.operands().reads)
        reads.push_back(random_values(operand, random));
      EXPECT_EQ(floats(on_the_part(*backend, kernel, reads)),
                floats(run(*backend, kernel, reads).at(0)))
          << kernel.key();
    }
  }
}

}  // namespace
}  // namespace stratplan::test
