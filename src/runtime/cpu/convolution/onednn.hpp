#pragma once
// The one place that speaks to oneDNN (2.x and 3.x).
#include "runtime/cpu/convolution/route.hpp"
#include "runtime/device/host_backend.hpp"

namespace stratplan::cpu {

/// "oneDNN 2.6.3, AVX2"
std::string library_text();
bool has_avx512();

/// c = a * b + (accumulate ? c : 0), where a is rows x inner and b inner x columns, dense and
/// row-major; a transposed operand lies the other way.
struct Matrix {
  const float* data;
  bool transposed;
};
void multiply(Matrix a, Matrix b, float* c, std::int64_t rows, std::int64_t columns,
              std::int64_t inner, bool accumulate);

/// A convolution, any of the three passes, by a route other than MatrixProduct; null if the library
/// refuses, or
/// would not survive extents of which it takes no care. Its implementation() is the library's
/// name for it and starts with "ref" where there are only plain loops. Scratch memory and reordered
/// operands live in the workspace.
std::unique_ptr<HostKernel> make_primitive(const Kernel& kernel, Route route);

}  // namespace stratplan::cpu
