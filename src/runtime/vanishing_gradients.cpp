#include "runtime/vanishing_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace stratplan {
namespace {

bool takes_means_away(LayerKind kind) { return kind == LayerKind::BatchNorm || kind == LayerKind::InstanceNorm; }

bool passes_shifts(LayerKind kind) {
  return kind == LayerKind::MaxPool || kind == LayerKind::GlobalAveragePool || kind == LayerKind::Upsample || kind == LayerKind::Add ||
         kind == LayerKind::Concat;
}

}  // namespace

bool shifts_vanish(const Network& network, LayerIndex layer) {
  return std::ranges::all_of(network.consumers(layer), [&](LayerIndex reader) {
    const LayerKind kind = network.layer(reader).kind;
    return takes_means_away(kind) || (passes_shifts(kind) && shifts_vanish(network, reader));
  });
}

VanishingGradients::VanishingGradients(const Network& network, const Program& program) : network_(network), program_(program) {
  for (LayerIndex i = 0; i < network.size(); ++i)
    if (network.layer(i).bias && shifts_vanish(network, i)) layers_.insert(i);
}

void VanishingGradients::after(std::size_t index, Executor& executor) {
  const Step& step = program_.steps[index];
  const auto* compute = std::get_if<ComputeStep>(&step.body);
  if (!compute || compute->kernel.kind != KernelKind::BiasGradient || !layers_.contains(step.layer)) return;
  const BufferId terms = step.reads[0];
  std::vector<float> values(static_cast<std::size_t>(program_.buffer(terms).region.elements()));
  executor.download(terms, values.data());
  std::vector<double>& sums = sums_[step.layer];
  sums.resize(static_cast<std::size_t>(compute->kernel.y[Axis::C]));
  for (std::size_t i = 0; i < values.size(); ++i) sums[i % sums.size()] += std::abs(static_cast<double>(values[i]));
}

std::map<std::string, double> VanishingGradients::scales() const {
  std::map<std::string, double> scales;
  for (const ParameterSlice& slice : program_.parameters) {
    const auto found = sums_.find(slice.layer);
    if (found == sums_.end() || slice.what != ParameterSlice::What::Bias) continue;
    const std::vector<double>& sums = found->second;
    scales[slice.name(network_)] = std::sqrt(std::inner_product(sums.begin(), sums.end(), sums.begin(), 0.0));
  }
  return scales;
}

}  // namespace stratplan
