#include "model/partition/layers/site.hpp"

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
  if (fusion.activation >= 0)
    kernel.epilogue().activation = activation_of(layer(fusion.activation));
}

void Site::pass_back(PassSink& passes, Kernel kernel, std::vector<Use> reads) const {
  if (!wants_gradient()) return;
  passes.add(run(std::move(kernel), std::move(reads), {input_gradient()}));
  passes.add(send(0, input_gradient()));
  passes.add(add(0, input_gradient()));
}

void load_data(const Execution& execution, LayerIndex layer, std::size_t input,
               const Needed& needed, int rank, PassSink& passes) {
  const Region region = needed.region(rank);
  if (region.empty()) return;
  const DataType stored = execution.precision.activations;
  const int which = static_cast<int>(input);
  const Use read{Use::Role::Input, layer, which};
  Use loaded = read;
  if (is_narrow(stored)) {
    loaded.role = Use::Role::Loaded;
    passes.declare(loaded, {"loaded", TensorClass::Activation, region, DataType::F32});
  }
  passes.add({layer, LoadPass{LoadOp::What::Samples, loaded, region, needed.tensor, 0}});
  if (!is_narrow(stored)) return;
  Kernel convert{.kind = KernelKind::Convert, .x = region.shape(), .y = region.shape()};
  convert.type = stored;
  passes.add({layer, KernelPass{convert, {loaded}, {read}}});
}

}  // namespace stratplan
