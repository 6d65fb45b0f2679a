#include "runtime/verify.hpp"

#include <algorithm>
#include <cmath>

#include "model/base/assert.hpp"
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
  return 4 * 0x1p-24 * std::sqrt(2 * terms);
}

std::vector<NamedTensor> undivided_iteration(const Network& network, const Execution& execution, Backend& backend, const TrainingSettings& settings) {
  std::vector<NamedTensor> tensors;
  run_loopback(1, [&](Communicator& communicator) {
    const Program program = lower(network, LayerDecompositions(network.layers.size()), execution, 0);
    SyntheticData data(settings.seed);
    Executor executor(network, program, backend, communicator, data, settings);
    initialize_parameters(network, program, settings.seed, executor);
    executor.run(0);
    tensors = gather_iteration(network, program, executor, communicator);
  });
  return tensors;
}

Verification compare(const std::vector<NamedTensor>& expected, const std::vector<NamedTensor>& actual, double tolerance) {
  SP_ASSERT(expected.size() == actual.size() && !expected.empty() && expected[0].name == "loss", "{} and {} tensors", expected.size(), actual.size());
  Verification result;
  result.tolerance = tolerance;
  result.loss_difference = difference(expected[0], actual[0]) / std::abs(static_cast<double>(expected[0].values[0]));
  double squares = 0;
  for (std::size_t i = 1; i < expected.size(); ++i) squares += std::pow(norm(expected[i].values), 2);
  const double floor = 1e-6 * std::sqrt(squares);
  result.passed = result.loss_difference <= tolerance;  // false for what is not a number, here and below
  for (std::size_t i = 1; i < expected.size(); ++i) {
    const double relative = difference(expected[i], actual[i]) / std::max(norm(expected[i].values), floor);
    if (!(relative <= tolerance)) result.passed = false;
    if (!(relative <= result.worst_difference)) {
      result.worst_difference = relative;
      result.worst_tensor = expected[i].name;
    }
  }
  return result;
}

}  // namespace stratplan
