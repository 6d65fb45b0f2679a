#include "runtime/cpu/convolution/convolution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/cpu/convolution/onednn.hpp"
#include "runtime/cpu/convolution/plain_convolution.hpp"
#include "runtime/cpu/convolution/route.hpp"
#include "runtime/cpu/convolution/unfold.hpp"
#include "runtime/cpu/convolution/winograd.hpp"
#include "runtime/cpu/kernels.hpp"

namespace stratplan::cpu {
namespace {

void fill_rows(const float* row, float* rows, std::int64_t count, std::int64_t columns) {
  for (std::int64_t i = 0; i < count; ++i) std::copy_n(row, columns, rows + i * columns);
}

/// Computes the forward pass as one matrix product. As stored, x is a matrix of rows x inner, the
/// weights are columns x inner, and y is rows x columns. No operand is reordered.
void multiply_forward(const Kernel& kernel, const KernelCall& call) {
  const MatrixShape m = *as_matrix_product(kernel);
  if (kernel.as<ConvolutionAttributes>().bias)
    fill_rows(call.read(2), call.write(0), m.rows, m.columns);
  multiply({call.read(0), false}, {call.read(1), true}, call.write(0), m.rows, m.columns, m.inner,
           kernel.as<ConvolutionAttributes>().bias);
  activate(kernel, call.write(0), kernel.y.elements());
}

void multiply_backward_data(const Kernel& kernel, const KernelCall& call) {
  const MatrixShape m = *as_matrix_product(kernel);
  multiply({call.read(0), false}, {call.read(1), false}, call.write(0), m.rows, m.inner, m.columns,
           false);
}

void multiply_backward_filter(const Kernel& kernel, const KernelCall& call) {
  const MatrixShape m = *as_matrix_product(kernel);
  multiply({call.read(1), true}, {call.read(0), false}, call.write(0), m.columns, m.inner, m.rows,
           false);
}

std::unique_ptr<HostKernel> matrix_kernel(const Kernel& kernel) {
  switch (kernel.kind) {
    case KernelKind::ConvolutionForward:
      return std::make_unique<FunctionKernel>(kernel, multiply_forward, "gemm");
    case KernelKind::ConvolutionBackwardData:
      return std::make_unique<FunctionKernel>(kernel, multiply_backward_data, "gemm");
    default: return std::make_unique<FunctionKernel>(kernel, multiply_backward_filter, "gemm");
  }
}

/// Computes a convolution whose x is empty, because all windows of the block read only padding.
/// Outputs are the bias with the activation applied, and gradients of weights are zero.
void convolve_nothing(const Kernel& kernel, const KernelCall& call) {
  const std::int64_t filters = kernel.y[Axis::C];
  if (kernel.kind == KernelKind::ConvolutionForward) {
    std::fill_n(call.write(0), kernel.y.elements(), 0.0F);
    if (kernel.as<ConvolutionAttributes>().bias)
      fill_rows(call.read(2), call.write(0), kernel.y.elements() / filters, filters);
    activate(kernel, call.write(0), kernel.y.elements());
  } else if (kernel.kind == KernelKind::ConvolutionBackwardFilter) {
    std::fill_n(call.write(0), kernel.operands().writes[0].elements, 0.0F);
  }
}

bool contains(const HostKernel& kernel, std::string_view word) {
  return kernel.implementation().find(word) != std::string::npos;
}

/// Returns null if the route does not apply to the kernel.
std::unique_ptr<HostKernel> make(const Kernel& kernel, Route route) {
  switch (route) {
    case Route::MatrixProduct: return as_matrix_product(kernel) ? matrix_kernel(kernel) : nullptr;
    case Route::Winograd:
      return kernel.as<ConvolutionAttributes>().groups == 1 && suits_winograd(kernel)
                 ? make_winograd(kernel)
                 : nullptr;
    case Route::Unfolded:
      return kernel.as<ConvolutionAttributes>().groups == 1 ? make_unfolded(kernel) : nullptr;
    default: return make_primitive(kernel, route);
  }
}

/// Whether a kernel is fast. Kernels of this backend's own routes are fast. The slow
/// implementations of oneDNN are plain loops ("ref") and matrix products of windows unfolded sample
/// by sample ("gemm").
bool is_fast(const HostKernel& kernel, Route route) {
  const bool own =
      route == Route::MatrixProduct || route == Route::Winograd || route == Route::Unfolded;
  return own || (!contains(kernel, "ref") && !contains(kernel, "gemm"));
}

constexpr std::array all_routes{Route::MatrixProduct, Route::Winograd, Route::Unfolded,
                                Route::ChannelsLast,  Route::Blocked,  Route::Planar};

/// Returns all routes: first the routes that routes() returns, then the others.
std::vector<Route> ordered_routes(const Kernel& kernel) {
  std::vector<Route> order = routes(kernel, has_avx512());
  for (const Route route : all_routes)
    if (std::ranges::count(order, route) == 0) order.push_back(route);
  return order;
}

/// Returns the first fast kernel. If no kernel is fast, returns oneDNN's own unfolding ("gemm"),
/// else this backend's plain loops. The plain loops of oneDNN ("ref") are thousands of times slower
/// and never taken.
std::unique_ptr<HostKernel> make_by_rule(const Kernel& kernel) {
  std::unique_ptr<HostKernel> general;
  for (const Route route : ordered_routes(kernel)) {
    std::unique_ptr<HostKernel> made = make(kernel, route);
    if (!made) continue;
    if (is_fast(*made, route)) return made;
    if (!contains(*made, "ref") && !general) general = std::move(made);
  }
  return general ? std::move(general) : make_plain_convolution(kernel);
}

}  // namespace

std::unique_ptr<HostKernel> prepare_convolution(const Kernel& kernel, const std::string& choice) {
  if (kernel.x.elements() == 0)
    return std::make_unique<FunctionKernel>(kernel, convolve_nothing, "own");
  if (choice.empty()) return make_by_rule(kernel);
  const auto route = std::find_if(all_routes.begin(), all_routes.end(),
                                  [&](Route known) { return name_of(known) == choice; });
  std::unique_ptr<HostKernel> made = route == all_routes.end() ? nullptr : make(kernel, *route);
  if (!made)
    throw EnvironmentError(
        fmt::format("the plan computes the kernel {} with the implementation {}, which the cpu "
                    "backend does not offer here; make the plan anew on this machine",
                    kernel.key(), choice));
  return made;
}

std::vector<std::string> convolution_choices(const Kernel& kernel) {
  if (kernel.x.elements() == 0) return {};
  std::vector<std::string> names;
  for (const Route route : ordered_routes(kernel)) {
    if (route == Route::Planar) continue;
    const std::unique_ptr<HostKernel> made = make(kernel, route);
    if (made && is_fast(*made, route)) names.emplace_back(name_of(route));
  }
  return names.size() > 1 ? names : std::vector<std::string>();
}

}  // namespace stratplan::cpu
