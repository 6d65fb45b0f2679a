#include "runtime/cpu/convolution.hpp"

#include "runtime/cpu/kernels.hpp"
#include "runtime/cpu/onednn.hpp"
#include "runtime/cpu/plain_convolution.hpp"
#include "runtime/cpu/route.hpp"
#include "runtime/cpu/unfold.hpp"
#include "runtime/cpu/winograd.hpp"

namespace stratplan::cpu {
namespace {

void fill_rows(const float* row, float* rows, std::int64_t count, std::int64_t columns) {
  for (std::int64_t i = 0; i < count; ++i) std::copy_n(row, columns, rows + i * columns);
}

/// x (rows x inner), weights (columns x inner), y (rows x columns): nothing is reordered.
void multiply_forward(const Kernel& kernel, const HostCall& call) {
  const MatrixShape m = *as_matrix_product(kernel);
  if (kernel.bias) fill_rows(call.read(2), call.write(0), m.rows, m.columns);
  multiply({call.read(0), false}, {call.read(1), true}, call.write(0), m.rows, m.columns, m.inner, kernel.bias);
}

void multiply_backward_data(const Kernel& kernel, const HostCall& call) {
  const MatrixShape m = *as_matrix_product(kernel);
  multiply({call.read(0), false}, {call.read(1), false}, call.write(0), m.rows, m.inner, m.columns, false);
}

void multiply_backward_filter(const Kernel& kernel, const HostCall& call) {
  const MatrixShape m = *as_matrix_product(kernel);
  multiply({call.read(1), true}, {call.read(0), false}, call.write(0), m.columns, m.inner, m.rows, false);
}

std::unique_ptr<HostKernel> matrix_kernel(const Kernel& kernel) {
  switch (kernel.kind) {
    case KernelKind::ConvolutionForward: return std::make_unique<FunctionKernel>(kernel, multiply_forward, "gemm");
    case KernelKind::ConvolutionBackwardData: return std::make_unique<FunctionKernel>(kernel, multiply_backward_data, "gemm");
    default: return std::make_unique<FunctionKernel>(kernel, multiply_backward_filter, "gemm");
  }
}

/// A block whose windows read nothing but padding has an empty x: outputs are the bias, gradients of weights are zero.
void convolve_nothing(const Kernel& kernel, const HostCall& call) {
  const std::int64_t filters = kernel.y[Axis::C];
  if (kernel.kind == KernelKind::ConvolutionForward) {
    std::fill_n(call.write(0), kernel.y.elements(), 0.0F);
    if (kernel.bias) fill_rows(call.read(2), call.write(0), kernel.y.elements() / filters, filters);
  } else if (kernel.kind == KernelKind::ConvolutionBackwardFilter) {
    std::fill_n(call.write(0), kernel.operands().writes[0].elements, 0.0F);
  }
}

bool contains(const HostKernel& kernel, std::string_view word) { return kernel.implementation().find(word) != std::string::npos; }

}  // namespace

std::unique_ptr<HostKernel> prepare_convolution(const Kernel& kernel) {
  if (kernel.x.elements() == 0) return std::make_unique<FunctionKernel>(kernel, convolve_nothing, "own");
  // The preferred route, unless the library has a generated kernel only by another; its plain loops are thousands of times slower and never taken.
  std::unique_ptr<HostKernel> general;
  for (Route route : routes(kernel, has_avx512())) {
    if (route == Route::MatrixProduct) return matrix_kernel(kernel);
    if (route == Route::Winograd) return make_winograd(kernel);
    if (route == Route::Unfolded) return make_unfolded(kernel);
    std::unique_ptr<HostKernel> made = make_primitive(kernel, route);
    if (!made || contains(*made, "ref")) continue;
    if (!contains(*made, "gemm")) return made;
    if (!general) general = std::move(made);
  }
  if (general) return general;
  std::unique_ptr<HostKernel> unfolded = kernel.groups == 1 ? make_unfolded(kernel) : nullptr;
  return unfolded ? std::move(unfolded) : make_plain_convolution(kernel);
}

}  // namespace stratplan::cpu
