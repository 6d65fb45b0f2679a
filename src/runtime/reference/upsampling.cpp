// Upsampling, and padding with elements of the input. Each output element mixes input elements
// along D, H and W. The share of an input element is the product of its shares along the axes.
#include <algorithm>

#include "runtime/reference/kernels.hpp"

namespace stratplan::reference {
namespace {

/// Calls visit(input, share) for each input element that the output element at `output` mixes.
template <class Visit>
void for_each_mixed(const Kernel& kernel, const Index& output, Visit visit) {
  const auto& scales = kernel.as<UpsampleAttributes>().scales;
  const auto at = [&](std::size_t axis) { return mixture(scales[axis], output[axis + 2]); };
  const auto read = [&](Axis axis, std::int64_t position) {
    return inside(scales[static_cast<std::size_t>(spatial_index(axis))].ends, position,
                  kernel.x[axis]);
  };
  const Mixture d = at(0), h = at(1), w = at(2);
  for (const bool d_after : {false, true})
    for (const bool h_after : {false, true})
      for (const bool w_after : {false, true}) {
        const double share = (d_after ? d.share : 1 - d.share) * (h_after ? h.share : 1 - h.share) *
                             (w_after ? w.share : 1 - w.share);
        const Index input{output[0], output[1], read(Axis::D, d_after ? d.after : d.before),
                          read(Axis::H, h_after ? h.after : h.before),
                          read(Axis::W, w_after ? w.after : w.before)};
        visit(input, share);
      }
}

}  // namespace

void upsample_forward(const Kernel& kernel, const KernelCall& call) {
  for_each_index(kernel.y, [&](const Index& output) {
    double sum = 0;
    for_each_mixed(kernel, output, [&](const Index& input, double share) {
      sum += share * call.read(0)[offset(kernel.x, input)];
    });
    call.write(0)[offset(kernel.y, output)] = static_cast<float>(sum);
  });
}

void upsample_backward(const Kernel& kernel, const KernelCall& call) {
  const std::span<double> dx = sums_of(call, kernel.x.elements());
  for_each_index(kernel.y, [&](const Index& output) {
    const double dy = call.read(0)[offset(kernel.y, output)];
    for_each_mixed(kernel, output, [&](const Index& input, double share) {
      dx[static_cast<std::size_t>(offset(kernel.x, input))] += share * dy;
    });
  });
  for (std::size_t i = 0; i < dx.size(); ++i) call.write(0)[i] = static_cast<float>(dx[i]);
}

}  // namespace stratplan::reference
