#include "model/partition/layers/backward_reads.hpp"

#include <algorithm>

#include "model/partition/layers/layer_family.hpp"

namespace stratplan {
namespace {

/// Records which tensors of the forward phase the backward passes read.
class Reads : public PassSink {
 public:
  void declare(const Use& tensor, const TensorSpec& spec) override {
    if (!spec.kept && !is_backward) made_forward_.push_back(tensor);
  }
  void add(const Pass& pass) override {
    const auto* kernel = std::get_if<KernelPass>(&pass.body);
    if (!is_backward || !kernel) return;
    for (const Use& use : kernel->reads) {
      found.inputs |= use.role == Use::Role::Input;
      found.output |= use.role == Use::Role::Output ||
                      std::ranges::find(made_forward_, use) != made_forward_.end();
    }
  }

  bool is_backward = false;
  BackwardReads found;

 private:
  std::vector<Use> made_forward_;
};

}  // namespace

BackwardReads backward_reads(const Network& network, LayerIndex index) {
  const Layer& layer = network.layer(index);
  if (!network.needs_gradient(index) || is_loss(layer.kind)) return {};
  const Execution undivided;
  const LayerDistributions distributions = distribute(layer, {});
  const Site site{.network = network,
                  .execution = undivided,
                  .fusion = {index},
                  .decomposition = {},
                  .distributions = {&distributions}};
  Reads reads;
  family_of(layer.kind).forward(site, reads);
  reads.is_backward = true;
  family_of(layer.kind).backward(site, reads);
  return reads.found;
}

bool output_is_read_backward(const Network& network, LayerIndex layer) {
  return std::ranges::any_of(network.consumers(layer), [&](LayerIndex consumer) {
    return backward_reads(network, consumer).inputs;
  });
}

}  // namespace stratplan
