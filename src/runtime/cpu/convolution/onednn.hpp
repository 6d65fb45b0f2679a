#pragma once
// The only interface of this project to oneDNN (2.x and 3.x).
#include "runtime/cpu/convolution/route.hpp"
#include "runtime/device/host_backend.hpp"

namespace stratplan::cpu {

/// Returns the library's version and instruction set, for example "oneDNN 2.6.3, AVX2".
std::string library_text();
bool has_avx512();

/// A dense row-major operand of multiply(). If `transposed`, `data` holds the transpose of the
/// operand.
struct Matrix {
  const float* data;
  bool transposed;
};
/// Computes c = a * b + (accumulate ? c : 0). a is rows x inner, b is inner x columns, and c is
/// dense and row-major.
void multiply(Matrix a, Matrix b, float* c, std::int64_t rows, std::int64_t columns,
              std::int64_t inner, bool accumulate);

/// Prepares any of the three passes of a convolution with oneDNN. `route`: ChannelsLast, Blocked or
/// Planar. Returns null if the library refuses the kernel, or if the library would handle its
/// extents unsafely or wrongly. implementation() returns the library's name of the
/// implementation, which contains "ref" for plain loops. The workspace holds scratch memory and
/// reordered operands. Throws EnvironmentError if memory runs out.
std::unique_ptr<HostKernel> make_primitive(const Kernel& kernel, Route route);

}  // namespace stratplan::cpu
