#include "runtime/reference/kernels.hpp"

namespace stratplan::reference {
namespace {

/// Returns the offset at which index i reads a tensor that is repeated along its axes of extent 1.
std::int64_t repeated_offset(const Shape& shape, Index i) {
  for (const Axis axis : all_axes)
    if (shape[axis] == 1) i[static_cast<std::size_t>(axis)] = 0;
  return offset(shape, i);
}

}  // namespace

void binary_forward(const Kernel& kernel, const KernelCall& call) {
  const Binary& binary = kernel.as<Binary>();
  visit_row(binary.function, [&]<class Row>(Row) {
    for_each_index(kernel.y, [&](const Index& i) {
      const double a = call.read(0)[repeated_offset(kernel.x, i)],
                   b = call.read(1)[repeated_offset(binary.second, i)];
      call.write(0)[offset(kernel.y, i)] = static_cast<float>(Row::value(a, b));
    });
  });
}

void binary_backward(const Kernel& kernel, const KernelCall& call) {
  const Binary& binary = kernel.as<Binary>();
  const auto [first, second] = row_of(binary.function).reads[static_cast<std::size_t>(binary.of)];
  const float* a = first ? call.read(0) : nullptr;
  const float* b = second ? call.read(first ? 1 : 0) : nullptr;
  const float* dy = call.read(call.reads.size() - 1);
  const Shape& differentiated = kernel.differentiated();
  const auto sums = sums_of(call, differentiated.elements());
  visit_row(binary.function, [&]<class Row>(Row) {
    for_each_index(kernel.y, [&](const Index& i) {
      const double of_a = a ? a[repeated_offset(kernel.x, i)] : 0,
                   of_b = b ? b[repeated_offset(binary.second, i)] : 0,
                   of_dy = dy[offset(kernel.y, i)];
      sums[static_cast<std::size_t>(repeated_offset(differentiated, i))] +=
          binary.of == 0 ? Row::first_gradient(of_a, of_b, of_dy)
                         : Row::second_gradient(of_a, of_b, of_dy);
    });
  });
  for (std::size_t i = 0; i < sums.size(); ++i) call.write(0)[i] = static_cast<float>(sums[i]);
}

}  // namespace stratplan::reference
