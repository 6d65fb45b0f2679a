// Local response normalization; the formulas are in reference/activations.cpp. Each row of channels
// is padded with zeros on both sides, so that sums over neighbouring channels are sums of shifted
// rows.
#include "runtime/cpu/kernels.hpp"
#include "runtime/cpu/vector_math.hpp"

namespace stratplan::cpu {
namespace {

/// The scratch rows of one thread. `padded` has size / 2 zeros before and after its channels. The
/// other rows have no padding.
struct Rows {
  float *padded, *sums, *power;
};

std::int64_t thread_floats(const Kernel& kernel) {
  return (3 * kernel.x[Axis::C] + kernel.as<LocalResponse>().size + 15) / 16 * 16;
}

/// Returns the rows of the calling thread, with the zeros in place.
Rows rows_of_thread(const Kernel& kernel, void* workspace) {
  const std::int64_t channels = kernel.x[Axis::C], size = kernel.as<LocalResponse>().size;
  float* padded = static_cast<float*>(workspace) + omp_get_thread_num() * thread_floats(kernel);
  std::fill_n(padded, size / 2, 0.0F);
  std::fill_n(padded + size / 2 + channels, size / 2, 0.0F);
  return {padded, padded + channels + size, padded + 2 * channels + size};
}

SP_CLONES void square_row(const float* x, float* squares, std::int64_t channels) {
#pragma GCC ivdep
  for (std::int64_t c = 0; c < channels; ++c) squares[c] = x[c] * x[c];
}

/// Computes sums[c], the sum of padded[c + t] over 0 <= t < size.
SP_CLONES void sum_neighbours(const float* padded, float* sums, std::int64_t channels,
                              std::int64_t size) {
  std::copy_n(padded, channels, sums);
  for (std::int64_t t = 1; t < size; ++t) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) sums[c] += padded[c + t];
  }
}

/// Replaces each sum of squares by its scale, k + factor * sum, and writes scale^-beta to `power`.
SP_CLONES void scale_row(float* sums, float* power, float k, float factor, float beta,
                         std::int64_t channels) {
#pragma GCC ivdep
  for (std::int64_t c = 0; c < channels; ++c) {
    sums[c] = k + factor * sums[c];
    power[c] = exponential(-beta * logarithm(sums[c]));
  }
}

SP_CLONES void multiply_row(const float* a, const float* b, float* product, std::int64_t channels) {
#pragma GCC ivdep
  for (std::int64_t c = 0; c < channels; ++c) product[c] = a[c] * b[c];
}

SP_CLONES void ratio_row(const float* x, const float* dy, const float* scale, const float* power,
                         float* ratio, std::int64_t channels) {
#pragma GCC ivdep
  for (std::int64_t c = 0; c < channels; ++c) ratio[c] = dy[c] * x[c] * power[c] / scale[c];
}

SP_CLONES void gradient_row(const float* x, const float* dy, const float* power, const float* sums,
                            float factor, float* dx, std::int64_t channels) {
#pragma GCC ivdep
  for (std::int64_t c = 0; c < channels; ++c) dx[c] = dy[c] * power[c] - factor * x[c] * sums[c];
}

/// Writes the scale of each channel of x to rows.sums, and scale^-beta to rows.power.
void find_scales(const Kernel& kernel, const float* x, const Rows& rows) {
  const LocalResponse& response = kernel.as<LocalResponse>();
  const std::int64_t channels = kernel.x[Axis::C];
  square_row(x, rows.padded + response.size / 2, channels);
  sum_neighbours(rows.padded, rows.sums, channels, response.size);
  scale_row(rows.sums, rows.power, static_cast<float>(response.k),
            static_cast<float>(response.alpha / static_cast<double>(response.size)),
            static_cast<float>(response.beta), channels);
}

template <class Row>
void for_each_row(const Kernel& kernel, const KernelCall& call, Row row) {
  const std::int64_t channels = kernel.x[Axis::C];
  in_parallel(kernel.x.elements() / channels, 16, [&](auto begin, auto end) {
    const Rows rows = rows_of_thread(kernel, call.workspace);
    for (std::int64_t i = begin; i < end; ++i) row(rows, i * channels);
  });
}

}  // namespace

Bytes local_response_workspace(const Kernel& kernel) {
  return {omp_get_max_threads() * thread_floats(kernel) * size_of(DataType::F32)};
}

void local_response_forward(const Kernel& kernel, const KernelCall& call) {
  for_each_row(kernel, call, [&](const Rows& rows, std::int64_t i) {
    find_scales(kernel, call.read(0) + i, rows);
    multiply_row(call.read(0) + i, rows.power, call.write(0) + i, kernel.x[Axis::C]);
  });
}

void local_response_backward(const Kernel& kernel, const KernelCall& call) {
  const LocalResponse& response = kernel.as<LocalResponse>();
  const float factor =
      static_cast<float>(2 * response.alpha * response.beta / static_cast<double>(response.size));
  const std::int64_t channels = kernel.x[Axis::C];
  for_each_row(kernel, call, [&](const Rows& rows, std::int64_t i) {
    const float *x = call.read(0) + i, *dy = call.read(1) + i;
    find_scales(kernel, x, rows);
    ratio_row(x, dy, rows.sums, rows.power, rows.padded + response.size / 2, channels);
    sum_neighbours(rows.padded, rows.sums, channels, response.size);
    gradient_row(x, dy, rows.power, rows.sums, factor, call.write(0) + i, channels);
  });
}

}  // namespace stratplan::cpu
