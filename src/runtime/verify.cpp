#include "runtime/verify.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/base/assert.hpp"
#include "model/base/philox.hpp"
#include "model/partition/lower.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/dump.hpp"
#include "runtime/trainer.hpp"

namespace stratplan {
namespace {

/// Terms of the longest sum among a layer's output, input gradient and parameter gradients.
double longest_sum(const Layer& layer) {
  const double positions = static_cast<double>(layer.output[Axis::N] * layer.output[Axis::D] * layer.output[Axis::H] * layer.output[Axis::W]);
  if (is_contraction(layer.kind)) {
    const Shape weights = layer.weights();
    const double forward = static_cast<double>(weights.elements() / weights[Axis::N]);
    const double backward = static_cast<double>(weights.elements() / weights[Axis::C]);
    return std::max({positions, forward, backward});
  }
  return layer.kind == LayerKind::BatchNorm ? positions : 1;
}

/// Rounding errors at the least size that there is, in every contraction.
void nudge_weights(const Program& program, std::uint64_t seed, Executor& executor) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const RandomStream stream(seed, "verification");
  std::uint64_t element = 0;
  for (const ParameterSlice& slice : program.parameters) {
    if (slice.what != ParameterSlice::What::Weights) continue;
    std::vector<float> weights(static_cast<std::size_t>(slice.region.elements()));
    executor.download(slice.value, weights.data());
    for (float& weight : weights) weight = std::nextafter(weight, stream.below(2, element++) == 1 ? infinity : -infinity);
    executor.upload(slice.value, weights.data());
  }
}

double difference(const NamedTensor& a, const NamedTensor& b) {
  SP_ASSERT(a.name == b.name && a.shape == b.shape, "{} and {}", a.name, b.name);
  std::vector<float> difference(a.values.size());
  std::transform(a.values.begin(), a.values.end(), b.values.begin(), difference.begin(), std::minus<>());
  return norm(difference);
}

}  // namespace

double verification_tolerance(const Network& network) {
  double terms = 0;
  for (const Layer& layer : network.layers) terms += longest_sum(layer);
  return 2 * 0x1p-24 * std::sqrt(2 * terms);
}

std::vector<NamedTensor> undivided_iteration(const Network& network, const Execution& execution, Backend& backend, const TrainingSettings& settings,
                                             bool nudged) {
  std::vector<NamedTensor> tensors;
  run_loopback(1, [&](Communicator& communicator) {
    const Program program = lower(network, LayerDecompositions(network.layers.size()), execution, 0);
    SyntheticData data(settings.seed);
    Executor executor(network, program, backend, communicator, data, settings);
    initialize_parameters(network, program, settings.seed, executor);
    if (nudged) nudge_weights(program, settings.seed, executor);
    executor.run(0);
    tensors = gather_iteration(network, program, executor, communicator);
  });
  return tensors;
}

Verification compare(const std::vector<NamedTensor>& expected, const std::vector<NamedTensor>& actual, double tolerance,
                     const std::vector<NamedTensor>& nudged) {
  SP_ASSERT(expected.size() == actual.size() && !expected.empty() && expected[0].name == "loss", "{} and {} tensors", expected.size(), actual.size());
  double squares = 0;
  for (std::size_t i = 1; i < expected.size(); ++i) squares += std::pow(norm(expected[i].values), 2);
  const double floor = 1e-6 * std::sqrt(squares);
  const auto relative = [&](const std::vector<NamedTensor>& other, std::size_t i) {
    return difference(expected[i], other[i]) / std::max(norm(expected[i].values), i == 0 ? 0 : floor);
  };
  const auto allowed = [&](std::size_t i) { return nudged.empty() ? tolerance : std::max(tolerance, std::min(4 * relative(nudged, i), 0.25)); };

  Verification result;
  result.tolerance = tolerance;
  result.loss_difference = relative(actual, 0);
  result.passed = result.loss_difference <= allowed(0);  // false for what is not a number, here and below
  double worst = 0;
  for (std::size_t i = 1; i < expected.size(); ++i) {
    const double found = relative(actual, i), limit = allowed(i);
    if (!(found <= limit)) result.passed = false;
    if (!(found / limit > worst) && !std::isnan(found)) continue;
    worst = found / limit;
    result.worst_tensor = expected[i].name;
    result.worst_difference = found;
    result.tolerance = limit;
  }
  return result;
}

Verification verify_iteration(const Network& network, const Execution& execution, Backend& backend, const TrainingSettings& settings,
                              const std::vector<NamedTensor>& expected, const std::vector<NamedTensor>& actual) {
  const double tolerance = verification_tolerance(network);
  const Verification strict = compare(expected, actual, tolerance);
  if (strict.passed) return strict;
  return compare(expected, actual, tolerance, undivided_iteration(network, execution, backend, settings, true));
}

}  // namespace stratplan
