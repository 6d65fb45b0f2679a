#pragma once
// Convolutions and poolings of every form, to compare backends.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "runtime/kernel_runner.hpp"

namespace stratplan::test {

/// Sets input extents that give these outputs and leave elements at the end that no window reaches:
/// a random number or, without `random`, as many as the stride allows.
inline void set_input_extents(Kernel& kernel, Random* random) {
  for (Axis axis : spatial_axes) {
    Window& w = kernel.windows()[static_cast<std::size_t>(spatial_index(axis))];
    const std::int64_t covered =
        (kernel.y[axis] - 1) * w.stride + w.span() - w.pad_before - w.pad_after;
    if (covered < 1) w.pad_before = w.pad_after = 0;
    const std::int64_t unreached =
        random == nullptr ? w.stride - 1 : between(*random, 0, w.stride - 1);
    kernel.x[axis] =
        (covered < 1 ? (kernel.y[axis] - 1) * w.stride + w.span() : covered) + unreached;
  }
}

/// Returns a kernel with any window, stride, dilation and asymmetric padding. Every third one is
/// 3-D.
inline Kernel random_window_kernel(KernelKind kind, int index, Random& random, bool same_channels) {
  Kernel kernel{.kind = kind};
  const std::int64_t samples = between(random, 1, 3);
  kernel.x[Axis::N] = kernel.y[Axis::N] = samples;
  kernel.x[Axis::C] = between(random, 1, 19);
  kernel.y[Axis::C] = same_channels ? kernel.x[Axis::C] : between(random, 1, 20);
  for (Axis axis : spatial_axes) {
    if (axis == Axis::D && index % 3 != 0) continue;
    Window& w = kernel.windows()[static_cast<std::size_t>(spatial_index(axis))];
    w.kernel = between(random, 1, 4);
    w.stride = between(random, 1, 3);
    w.dilation = between(random, 1, 2);
    w.pad_before = between(random, 0, w.span() - 1);
    w.pad_after = between(random, 0, w.span() - 1);
    kernel.y[axis] = between(random, 1, 6);
  }
  set_input_extents(kernel, &random);
  return kernel;
}

struct ConvolutionRow {
  std::int64_t n, c, f, d, h, w;  // extents of the output
  std::int64_t kernel_d, kernel, stride, pad_before, pad_after;
};
/// At least one row for each implementation that the cpu backend has of one of the passes.
inline constexpr ConvolutionRow convolution_rows[] = {
    // n   c   f  d   h    w  kd k s pb pa
    {2, 64, 72, 1, 5, 6, 1, 3, 1, 1, 1},  // whole blocks of channels
    {1, 72, 64, 1, 4, 5, 1, 3, 2, 1, 0},
    {1, 16, 16, 1, 2, 200, 1, 3, 1, 1, 1},  // long rows
    {1, 3, 16, 1, 3, 200, 1, 7, 2, 3, 2},
    {2, 200, 216, 1, 12, 25, 1, 1, 1, 0, 0},  // 1x1 kernel, many channels, more than 512 rows
    {1, 200, 216, 1, 10, 30, 1, 1, 2, 0, 0},
    {1, 24, 40, 1, 7, 7, 1, 1, 1, 0, 0},  // 1x1 kernel, few rows
    {1, 13, 17, 1, 40, 20, 1, 1, 1, 0, 0},
    {3, 7, 10, 1, 1, 1, 1, 6, 1, 0, 0},  // the window covers the input: a matrix product
    {2, 8, 16, 1, 1, 1, 4, 4, 1, 0, 0},
    {5, 20, 30, 1, 1, 1, 1, 1, 1, 0, 0},
    {2, 5, 6, 1, 1, 1, 1, 3, 3, 0, 0},    // almost covers it: two rows and columns are not read
    {1, 64, 64, 3, 4, 5, 3, 3, 1, 1, 1},  // 3-D
    {1, 9, 18, 1, 6, 6, 1, 5, 2, 2, 2},
    {2, 18, 20, 1, 20, 15, 1, 5, 2, 1, 2},  // unfolded: strided
    {1, 64, 24, 1, 9, 5, 1, 4, 1, 2, 1},
    {2, 20, 9, 3, 7, 6, 3, 3, 3, 1, 0},  // narrow, with depth
    {2, 32, 48, 1, 14, 15, 1, 3, 1, 1, 1},
    // Winograd's transform, with tiles that reach over the edge
    {1, 16, 32, 1, 19, 23, 1, 3, 1, 0, 2},
    {1, 48, 16, 3, 17, 18, 3, 3, 1, 1, 1},
    {3, 16, 16, 4, 10, 11, 2, 3, 1, 2, 0},  // Winograd's transform with depth
    {1, 16, 8, 1, 30, 20, 1, 3, 1, 0, 2},
    {3, 24, 40, 1, 9, 8, 1, 1, 3, 0, 0},  // 1x1 kernel, more than 512 rows
};

struct GroupedRow {
  std::int64_t groups, c, f;  // per group
  std::int64_t n, d, h, w;    // extents of the output
  std::int64_t kernel, stride, dilation, pad_before, pad_after;
};
/// Groups of whole blocks of channels and of other numbers; depthwise with one filter each and with
/// several; 1x1 kernels and larger ones; 2-D and 3-D.
inline constexpr GroupedRow grouped_rows[] = {
    // g  c  f  n  d  h  w  k  s  d pb pa
    {2, 8, 16, 2, 1, 5, 6, 3, 1, 1, 1, 1},
    {32, 4, 4, 1, 1, 7, 7, 3, 2, 1, 1, 0},
    {3, 5, 2, 2, 1, 4, 6, 2, 1, 2, 1, 1},
    {4, 8, 8, 2, 1, 6, 5, 1, 1, 1, 0, 0},
    {3, 3, 4, 1, 1, 5, 5, 1, 2, 1, 0, 0},
    {2, 16, 8, 1, 3, 4, 4, 3, 1, 1, 1, 1},
    {5, 2, 1, 2, 3, 4, 3, 2, 2, 1, 0, 1},
    {32, 1, 1, 2, 1, 9, 8, 3, 1, 1, 1, 1},
    {40, 1, 1, 1, 1, 5, 7, 5, 2, 1, 2, 2},
    {13, 1, 1, 2, 1, 6, 6, 3, 1, 1, 1, 1},
    {16, 1, 1, 1, 1, 6, 5, 3, 1, 2, 2, 2},
    {8, 1, 2, 1, 1, 5, 6, 3, 1, 1, 1, 1},
    {16, 1, 1, 1, 3, 5, 4, 3, 1, 1, 1, 1},
    {6, 1, 3, 2, 1, 1, 1, 4, 1, 1, 0, 0},      // the window covers the input
    {2, 16, 16, 1, 1, 20, 17, 3, 1, 1, 1, 1},  // as one group: Winograd's transform
};

inline void append_grouped(std::vector<Kernel>& kernels, KernelKind kind) {
  for (const GroupedRow& row : grouped_rows) {
    Kernel kernel{.kind = kind,
                  .x = {{row.n, row.groups * row.c, 1, 1, 1}},
                  .y = {{row.n, row.groups * row.f, row.d, row.h, row.w}}};
    kernel.as<ConvolutionAttributes>().groups = row.groups;
    const Window window{row.kernel, row.stride, row.dilation, row.pad_before, row.pad_after};
    kernel.windows() = {{row.d == 1 ? Window{} : window, window, window}};
    set_input_extents(kernel, nullptr);
    kernels.push_back(kernel);
  }
}

/// Appends kernels with the windows that blocks of a transposed convolution's output have. The
/// first and the last window reach over the block's borders by any part of their span. If the
/// stride exceeds the kernel, the first window may end before the block begins. The last row is
/// large enough for Winograd's transform.
inline void append_transposed(std::vector<Kernel>& kernels, KernelKind kind) {
  struct Row {
    std::int64_t kernel, stride, dilation, pad_before, x, y;
  };
  const Row rows[] = {{3, 2, 1, 2, 3, 3}, {3, 2, 1, 0, 8, 4}, {5, 2, 1, 3, 6, 5},
                      {2, 2, 1, 1, 2, 2}, {4, 1, 2, 5, 2, 8}, {1, 3, 1, 1, 5, 3},
                      {1, 3, 1, 2, 4, 2}, {2, 3, 1, 2, 3, 2}, {2, 5, 1, 4, 7, 3},
                      {3, 2, 1, 1, 8, 4}, {7, 1, 1, 6, 1, 7}, {3, 1, 1, 2, 20, 22}};
  for (const Row& row : rows)
    for (const std::int64_t channels : {5, 16})
      for (const std::int64_t groups : {std::int64_t{1}, channels}) {
        Kernel kernel{.kind = kind,
                      .x = {{2, channels, 1, row.x, row.x}},
                      .y = {{2, channels, 1, row.y, row.y}}};
        kernel.as<ConvolutionAttributes>().groups = groups;
        const std::int64_t end =
            (row.y - 1) * row.stride - row.pad_before + (row.kernel - 1) * row.dilation + 1;
        const Window window{row.kernel, row.stride, row.dilation, row.pad_before,
                            std::max<std::int64_t>(0, end - row.x)};
        kernel.windows() = {{{}, window, window}};
        kernels.push_back(kernel);
      }
}

/// Appends kernels whose windows leave more than a stride of x unread, as output padding of a
/// dilated transposed convolution does. oneDNN refuses such kernels.
inline void append_unread(std::vector<Kernel>& kernels, KernelKind kind) {
  for (const std::int64_t groups : {1, 2, 6})
    for (const std::int64_t depth : {1, 3})
      for (const std::int64_t unread : {2, 4}) {
        Kernel kernel{
            .kind = kind, .x = {{3, 6, depth, 5 + unread, 6}}, .y = {{3, 6 * groups, 1, 3, 4}}};
        kernel.as<ConvolutionAttributes>().groups = groups;
        kernel.windows() = {
            {{.kernel = depth}, {.kernel = 2, .dilation = 3, .pad_before = 1}, {.kernel = 3}}};
        kernels.push_back(kernel);
      }
}

/// Appends kernels whose windows reach far beyond both ends of a small volume. oneDNN 2.6.3 gets
/// their filter gradients wrong.
inline void append_small_volumes(std::vector<Kernel>& kernels, KernelKind kind) {
  for (const std::int64_t groups : {1, 16})
    for (const auto& [depth, window] : std::initializer_list<std::pair<std::int64_t, Window>>{
             {4, {.kernel = 4, .stride = 2, .pad_before = 3, .pad_after = 3}},
             {7, {.kernel = 7, .stride = 2, .pad_before = 3, .pad_after = 3}},
             {6, {.kernel = 5, .stride = 3, .pad_before = 4, .pad_after = 4}}}) {
      const std::int64_t outputs =
          (depth + window.pad_before + window.pad_after - window.kernel) / window.stride + 1;
      Kernel kernel{.kind = kind, .x = {{2, 16, depth, 5, 5}}, .y = {{2, 16, outputs, 5, 5}}};
      kernel.as<ConvolutionAttributes>().groups = groups;
      const Window plane{.kernel = 3, .pad_before = 1, .pad_after = 1};
      kernel.windows() = {{window, plane, plane}};
      kernels.push_back(kernel);
    }
}

inline std::vector<Kernel> convolutions(KernelKind kind) {
  Random random(static_cast<unsigned>(kind));
  std::vector<Kernel> kernels;
  for (int i = 0; i < 30; ++i) kernels.push_back(random_window_kernel(kind, i, random, false));
  for (const ConvolutionRow& row : convolution_rows) {
    Kernel kernel{
        .kind = kind, .x = {{row.n, row.c, 1, 1, 1}}, .y = {{row.n, row.f, row.d, row.h, row.w}}};
    const Window window{.kernel = row.kernel,
                        .stride = row.stride,
                        .pad_before = row.pad_before,
                        .pad_after = row.pad_after};
    kernel.windows() = {{row.kernel_d == 1 ? Window{} : window, window, window}};
    set_input_extents(kernel, nullptr);
    kernels.push_back(kernel);
  }
  append_grouped(kernels, kind);
  append_transposed(kernels, kind);
  append_unread(kernels, kind);
  append_small_volumes(kernels, kind);
  if (kind == KernelKind::ConvolutionForward) {
    for (std::size_t i = 0; i < kernels.size(); i += 2)
      kernels[i].as<ConvolutionAttributes>().bias = true;
  }
  return kernels;
}

inline std::vector<Kernel> pools(KernelKind kind) {
  Random random(static_cast<unsigned>(kind));
  std::vector<Kernel> kernels;
  for (int i = 0; i < 30; ++i) {
    kernels.push_back(random_window_kernel(kind, i, random, true));
    kernels.back().as<PoolAttributes>().count_padding = i % 2 == 0;
  }
  // Negative padding: the block holds elements that its windows leave out.
  for (const std::int64_t before : {-2, 1})
    for (const std::int64_t after : {-1, 2}) {
      Kernel kernel{.kind = kind, .x = {{2, 8, 1, 1, 1}}, .y = {{2, 8, 1, 4, 3}}};
      const Window window{.kernel = 3, .stride = 2, .pad_before = before, .pad_after = after};
      kernel.windows() = {{{}, window, window}};
      set_input_extents(kernel, nullptr);
      kernels.push_back(kernel);
    }
  return kernels;
}

}  // namespace stratplan::test
