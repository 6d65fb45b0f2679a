#include "model/partition/site.hpp"

#include "model/base/assert.hpp"

namespace stratplan {

Kernel Site::kernel(KernelKind kind) const {
  Kernel made = local_kernel(network, fusion.head, of_head(), rank, kind);
  if (works_on_activations(kind)) made.type = execution.precision.activations;
  return made;
}

Kernel Site::kernel(KernelKind kind, const Shape& shape) const {
  Kernel made{.kind = kind, .x = shape, .y = shape};
  if (works_on_activations(kind) || kind == KernelKind::Fill)
    made.type = execution.precision.activations;
  return made;
}

void Site::activate(Kernel& kernel) const {
  if (fusion.activation >= 0) kernel.activation = activation_of(layer(fusion.activation));
}

void Site::pass_back(PassSink& passes, Kernel kernel, std::vector<Use> reads) const {
  if (reads_data()) return;
  passes.add(run(std::move(kernel), std::move(reads), {input_gradient()}));
  passes.add(send(0, input_gradient()));
  passes.add(add(0, input_gradient()));
}

Region flat(std::int64_t elements) {
  Shape shape;
  shape[Axis::C] = elements;
  return whole(shape);
}

Kernel copy_kernel(const Region& source, const Region& from, const Region& destination,
                   const Region& to, DataType type, bool accumulate) {
  SP_ASSERT(source.contains(from) && destination.contains(to), "{} of {} -> {} of {}",
            to_string(from), to_string(source), to_string(to), to_string(destination));
  SP_ASSERT(from.shape() == to.shape(), "{} -> {}", to_string(from), to_string(to));
  Kernel kernel;
  kernel.kind = KernelKind::CopyRegion;
  kernel.type = type;
  kernel.accumulate = accumulate;
  kernel.x = source.shape();
  kernel.y = destination.shape();
  kernel.region = to.shape();
  for (const Axis axis : all_axes) {
    kernel.from[static_cast<std::size_t>(axis)] = from[axis].begin - source[axis].begin;
    kernel.to[static_cast<std::size_t>(axis)] = to[axis].begin - destination[axis].begin;
  }
  return kernel;
}

}  // namespace stratplan
