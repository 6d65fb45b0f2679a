#include "runtime/verify/verify.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/base/assert.hpp"
#include "model/partition/lowering/lower.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/exec/trainer.hpp"
#include "runtime/verify/dump.hpp"
#include "runtime/verify/vanishing_gradients.hpp"

namespace stratplan {
namespace {

double norm_of_difference(const std::vector<float>& a, const std::vector<float>& b) {
  SP_ASSERT(a.size() == b.size(), "the tensors have {} and {} elements", a.size(), b.size());
  std::vector<float> difference(a.size());
  std::transform(a.begin(), a.end(), b.begin(), difference.begin(), std::minus<>());
  return norm(difference);
}

// ---------------------------------------------------------------- decisions

/// A buffer with the decisions of a layer. The decisions are the places of maxima, or values that
/// the layer's gradient compares with zero or with limits, such as a ReLU's outputs.
struct Decision {
  std::size_t op = 0;
  BufferId buffer = -1;
  TensorBlock block;  ///< the decisions; places of maxima are stored as floats
  bool places = false;
  /// the values at which the gradient jumps
  float low = 0, high = std::numeric_limits<float>::infinity();

  bool differ(float a, float b) const {
    return places ? a != b : (a > low) != (b > low) || (a < high) != (b < high);
  }
};

bool jumps(const Activation& pointwise) {
  const auto [low, high] = pointwise.jumps();
  return std::isfinite(low) || std::isfinite(high);
}

/// Returns the whole buffer that contains slice `id`; `id` itself if it is no slice.
BufferId whole_of(const Program& program, BufferId id) {
  while (program.buffer(id).inside >= 0) id = program.buffer(id).inside;
  return id;
}

/// Returns all decisions in program order, which is the same on all ranks. With the
/// interior/boundary split a layer's decisions are complete at its last kernel.
std::vector<Decision> decisions_of(const Program& program, const Network& network) {
  std::vector<Decision> decisions;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const auto* compute = std::get_if<ComputeOp>(&op.body);
    if (!compute) continue;
    const Kernel& kernel = compute->kernel;
    const BufferId deciding = deciding_buffer(op, kernel);
    if (deciding < 0) continue;
    const BufferId buffer = whole_of(program, deciding);
    if (buffer != deciding && !decisions.empty() && decisions.back().buffer == buffer) {
      decisions.back().op = i;
      continue;
    }
    const Region& held = program.buffer(buffer).region;
    const Shape& output = network.layer(op.layer).output;
    SP_ASSERT(intersect(held, whole(output)) == held,
              "{}: the {} decisions are not all in the output", network.layer(op.layer).name,
              held.elements());
    const bool places = kernel.kind == KernelKind::MaxPoolForward;
    decisions.push_back({i, buffer, {held, output, {}}, places});
    if (kernel.kind == KernelKind::PointwiseForward) {
      const auto [low, high] = kernel.as<Activation>().jumps();
      decisions.back().low = static_cast<float>(low);
      decisions.back().high = static_cast<float>(high);
    }
  }
  return decisions;
}

std::vector<float> read(const Decision& decision, Executor& executor) {
  if (!decision.places) return executor.floats(decision.buffer);
  std::vector<std::int32_t> places(static_cast<std::size_t>(decision.block.region.elements()));
  executor.download(decision.buffer, places.data());
  return {places.begin(), places.end()};
}

void write(const Decision& decision, const std::vector<float>& values, Executor& executor) {
  if (!decision.places) return executor.upload_floats(decision.buffer, values);
  const std::vector<std::int32_t> places(values.begin(), values.end());
  executor.upload(decision.buffer, places.data());
}

/// Calls each(index) for the decisions that op `op` completes.
template <class Each>
void for_decisions_of(std::size_t op, const std::vector<Decision>& decisions, Each each) {
  for (std::size_t i = 0; i < decisions.size(); ++i)
    if (decisions[i].op == op) each(i);
}

/// Runs the first step again. Returns the decisions of all layers, as whole tensors, on rank 0. The
/// result is empty on other ranks.
std::vector<std::vector<float>> decide_again(const Network& network, const Program& program,
                                             const TrainingSettings& settings, Executor& executor,
                                             Communicator& communicator) {
  std::vector<Decision> decisions = decisions_of(program, network);
  std::vector<TensorBlock> blocks;
  initialize_parameters(network, program, settings.seed, executor);
  executor.run(0, [&](std::size_t op) {
    for_decisions_of(op, decisions, [&](std::size_t i) {
      decisions[i].block.values = read(decisions[i], executor);
      blocks.push_back(std::move(decisions[i].block));
    });
  });
  if (program.ops.empty())  // this rank computes nothing, but all ranks gather equally many blocks
    for (const Decision& elsewhere :
         decisions_of(lower(network, LayerDecompositions(network.layers.size()), {}, 0), network))
      blocks.push_back({Region{}, elsewhere.block.global, {}});
  return gather_blocks(blocks, communicator);
}

/// Differences between an undivided step's own decisions and the decisions that replaced them.
struct Replay {
  double worst_output = 0;  ///< largest relative difference of a layer's deciding values
  std::string worst_layer;
  std::int64_t turned = 0;  ///< number of decisions that differ
};

/// Records how a layer's own decisions differ from `wanted`, then replaces them by `wanted`.
void replace(const Decision& decision, const std::vector<float>& wanted, const std::string& layer,
             Executor& executor, Replay& replay) {
  const std::vector<float> own = read(decision, executor);
  for (std::size_t i = 0; i < own.size(); ++i) replay.turned += decision.differ(own[i], wanted[i]);
  if (!decision.places) {
    const double difference = norm_of_difference(own, wanted) / std::max(norm(own), 1e-30);
    if (!(difference <= replay.worst_output)) {
      replay.worst_output = difference;
      replay.worst_layer = layer;
    }
  }
  write(decision, wanted, executor);
}

struct Undivided {
  std::vector<NamedTensor> iteration;
  std::map<std::string, double> scales;  ///< VanishingGradients::scales()
};

/// Runs the first step on one rank. Calls each(index, decision, layer, executor) as soon as a
/// decision is complete.
template <class Each>
Undivided run_undivided(const Network& network, const Execution& execution, Backend& backend,
                        const TrainingSettings& settings, DataSource& data, Each each) {
  Undivided found;
  Execution keeping = execution;  // recomputation would restore replaced outputs
  keeping.recompute.clear();
  run_loopback(1, [&](Communicator& communicator) {
    const Program program = lower(network, LayerDecompositions(network.layers.size()), keeping, 0);
    const std::vector<Decision> decisions = decisions_of(program, network);
    Executor executor(network, program, backend, communicator, data, settings);
    VanishingGradients vanishing(network, program);
    initialize_parameters(network, program, settings.seed, executor);
    executor.run(0, [&](std::size_t op) {
      for_decisions_of(op, decisions, [&](std::size_t i) {
        each(i, decisions[i], program.buffer(decisions[i].buffer).layer, executor);
      });
      vanishing.after(op, executor);
    });
    found = {gather_iteration(network, program, executor, communicator), vanishing.scales()};
  });
  return found;
}

VerificationResult compare_on_the_same_side(const Network& network, const Execution& execution,
                                            Backend& backend, const TrainingSettings& settings,
                                            DataSource& data,
                                            const std::vector<std::vector<float>>& decided,
                                            const std::vector<NamedTensor>& actual) {
  Replay replay;
  const Undivided undivided = run_undivided(
      network, execution, backend, settings, data,
      [&](std::size_t i, const Decision& decision, LayerIndex layer, Executor& executor) {
        replace(decision, decided.at(i), network.layer(layer).name, executor, replay);
      });
  const double tolerance = verification_tolerance(network, execution.precision);
  VerificationResult result = compare(undivided.iteration, actual, tolerance, undivided.scales);
  result.turned = replay.turned;
  if (!(replay.worst_output <= tolerance)) {
    result.passed = false;
    result.worst_tensor = replay.worst_layer + ".output";
    result.gradient_difference = replay.worst_output;
  }
  return result;
}

/// Returns rank 0's value on all ranks.
bool agreed(bool mine, Communicator& communicator) {
  double found = communicator.rank() == 0 && mine ? 1 : 0;
  communicator.all_reduce(Stream::Compute, all_ranks(communicator), &found, 1, DataType::F64);
  communicator.synchronize(Stream::Compute);
  return found > 0;
}

}  // namespace

BufferId deciding_buffer(const Op& op, const Kernel& kernel) {
  if (op.phase != Phase::Forward) return -1;  // recomputed outputs repeat the decisions
  if (kernel.epilogue().activation) return op.writes[0];
  switch (kernel.kind) {
    case KernelKind::MaxPoolForward: return op.writes[1];
    case KernelKind::PointwiseForward:
      if (!jumps(kernel.as<Activation>())) return -1;
      return reads_input(kernel.as<Activation>().function) ? op.reads[0] : op.writes[0];
    case KernelKind::PreluForward: return op.reads[0];
    default: return -1;
  }
}

double verification_tolerance(const Network& network, const Precision& precision) {
  double terms = 0;
  for (const Layer& layer : network.layers) terms += layer.longest_sum();
  const double stored = precision.activations == DataType::BF16  ? 0x1p-8
                        : precision.activations == DataType::F16 ? 0x1p-11
                                                                 : 0;
  return 2 * 0x1p-24 * std::sqrt(2 * terms) +
         2 * stored * std::sqrt(2 * static_cast<double>(network.layers.size()));
}

std::vector<NamedTensor> undivided_iteration(const Network& network, const Execution& execution,
                                             Backend& backend, const TrainingSettings& settings,
                                             DataSource& data) {
  return run_undivided(network, execution, backend, settings, data, [](auto&&...) {}).iteration;
}

VerificationResult compare(const std::vector<NamedTensor>& expected,
                           const std::vector<NamedTensor>& actual, double tolerance,
                           const std::map<std::string, double>& scales) {
  SP_ASSERT(expected.size() == actual.size() && !expected.empty() && expected[0].name == "loss",
            "the iterations have {} and {} tensors, or no loss", expected.size(), actual.size());
  double squares = 0;
  for (std::size_t i = 1; i < expected.size(); ++i)
    squares += std::pow(norm(expected[i].values), 2);
  const double floor = 1e-6 * std::sqrt(squares);
  const auto relative = [&](std::size_t i) {
    SP_ASSERT(expected[i].name == actual[i].name && expected[i].shape == actual[i].shape,
              "the tensors {} and {} differ in name or shape", expected[i].name, actual[i].name);
    const auto scale = scales.find(expected[i].name);
    const double least = i == 0                  ? 0
                         : scale == scales.end() ? floor
                                                 : std::max(floor, scale->second);
    return norm_of_difference(expected[i].values, actual[i].values) /
           std::max(norm(expected[i].values), least);
  };

  VerificationResult result;
  result.tolerance = tolerance;
  result.loss_difference = relative(0);
  result.passed = result.loss_difference <= tolerance;  // false for NaN, here and below
  for (std::size_t i = 1; i < expected.size(); ++i) {
    const double found = relative(i);
    if (!(found <= tolerance)) result.passed = false;
    if (found <= result.gradient_difference || std::isnan(result.gradient_difference)) continue;
    result.worst_tensor = expected[i].name;
    result.gradient_difference = found;
  }
  return result;
}

VerificationResult verify_first_step(const Network& network, const Program& program,
                                     const Execution& execution, const TrainingSettings& settings,
                                     Backend& backend, DataSource& data, Executor& executor,
                                     Communicator& communicator,
                                     const std::vector<NamedTensor>& expected,
                                     const std::vector<NamedTensor>& actual, Expected origin) {
  const bool collects = communicator.rank() == 0;
  const double tolerance = verification_tolerance(network, execution.precision);
  VerificationResult result;
  if (collects) result = compare(expected, actual, tolerance);
  result.passed = agreed(result.passed, communicator);
  if (result.passed) return result;
  if (origin == Expected::FromFile) {
    VerificationResult file;
    // autotune writes its file before it measures implementations. Implementations that were
    // measured to be the fastest may round differently, and so make other decisions.
    Execution by_rule = execution;
    by_rule.implementations.clear();
    if (collects)
      file = compare(undivided_iteration(network, by_rule, backend, settings, data), expected,
                     tolerance);
    file.passed = agreed(file.passed, communicator);
    if (!file.passed) return file;
  }
  const std::vector<std::vector<float>> decided =
      decide_again(network, program, settings, executor, communicator);
  if (collects)
    result = compare_on_the_same_side(network, execution, backend, settings, data, decided, actual);
  result.passed = agreed(result.passed, communicator);
  return result;
}

}  // namespace stratplan
