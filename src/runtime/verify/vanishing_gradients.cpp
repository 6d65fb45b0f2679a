#include "runtime/verify/vanishing_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace stratplan {
namespace {

using What = ParameterRole;

/// The parameters whose gradients a kernel sums up, and the index of the output's gradient among
/// the buffers that the kernel reads.
struct Sum {
  std::vector<What> of;
  std::size_t terms = 0;
};

Sum sum_of(KernelKind kind) {
  if (kind == KernelKind::BiasGradient) return {{What::Bias}, 0};
  if (kind == KernelKind::BatchNormBackwardSums) return {{What::Scale, What::Shift}, 1};
  return {};
}

/// Returns the size of the terms per channel (vanishing_gradients.hpp). `terms` has channels last.
std::vector<double> sizes(What what, const std::vector<float>& terms, std::size_t channels) {
  std::vector<double> sizes(channels);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const double term = terms[i];
    sizes[i % channels] += what == What::Scale ? term * term : std::abs(term);
  }
  // The product of two Euclidean norms is an upper bound (Cauchy-Schwarz).
  if (what == What::Scale)
    for (double& size : sizes)
      size = std::sqrt(size * static_cast<double>(terms.size() / channels));
  return sizes;
}

}  // namespace

bool shifts_vanish(const Network& network, LayerIndex layer) {
  return std::ranges::all_of(network.consumers(layer), [&](LayerIndex reader) {
    const LayerKind kind = network.layer(reader).kind;
    return normalizes_each_channel(kind) || (passes_shifts(kind) && shifts_vanish(network, reader));
  });
}

bool scales_vanish(const Network& network, LayerIndex layer) {
  return std::ranges::all_of(network.consumers(layer), [&](LayerIndex reader) {
    const Layer& behind = network.layer(reader);
    return normalizes_each_channel(behind.kind) ||
           (behind.passes_scales() && scales_vanish(network, reader));
  });
}

VanishingGradients::VanishingGradients(const Network& network, const Program& program)
    : network_(network), program_(program) {
  for (const ParameterSlice& slice : program.parameters) {
    const bool shifts = slice.what == What::Bias || slice.what == What::Shift;
    if ((shifts && shifts_vanish(network, slice.layer)) ||
        (slice.what == What::Scale && scales_vanish(network, slice.layer)))
      vanishing_.insert({slice.layer, slice.what});
  }
}

void VanishingGradients::after(std::size_t index, Executor& executor) {
  const Op& op = program_.ops[index];
  const auto* compute = std::get_if<ComputeOp>(&op.body);
  if (!compute) return;
  const Sum sum = sum_of(compute->kernel.kind);
  for (const What what : sum.of) {
    if (!vanishing_.contains({op.layer, what})) continue;
    const std::vector<double> more = sizes(what, executor.floats(op.reads[sum.terms]),
                                           static_cast<std::size_t>(compute->kernel.y[Axis::C]));
    std::vector<double>& sums = sums_[{op.layer, what}];
    sums.resize(more.size());
    const double scale = executor.loss_scaling().scale;
    std::ranges::transform(sums, more, sums.begin(),
                           [&](double before, double term) { return before + term / scale; });
  }
}

std::map<std::string, double> VanishingGradients::scales() const {
  std::map<std::string, double> scales;
  for (const ParameterSlice& slice : program_.parameters) {
    const auto found = sums_.find({slice.layer, slice.what});
    if (found == sums_.end()) continue;
    const std::vector<double>& sums = found->second;
    scales[slice.name(network_)] =
        std::sqrt(std::inner_product(sums.begin(), sums.end(), sums.begin(), 0.0));
  }
  return scales;
}

}  // namespace stratplan
