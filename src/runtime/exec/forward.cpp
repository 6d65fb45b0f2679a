#include "runtime/exec/forward.hpp"

#include <algorithm>
#include <cmath>

#include "model/base/assert.hpp"
#include "runtime/verify/dump.hpp"

namespace stratplan {
namespace {

/// Whether the op computes a loss in the forward phase. The first buffer that such an op reads is
/// the network's output.
bool computes_loss(const Op& op) {
  const auto* compute = std::get_if<ComputeOp>(&op.body);
  if (!compute || op.phase != Phase::Forward) return false;
  const KernelKind kind = compute->kernel.kind;
  return kind == KernelKind::SoftmaxCrossEntropy || kind == KernelKind::MeanSquaredError ||
         kind == KernelKind::DiceSums;
}

}  // namespace

Outputs forward(const Network& network, const Program& program, Executor& executor,
                Communicator& communicator, std::int64_t batches) {
  const Shape batch = network.layers.back().input;
  SP_ASSERT(is_loss(network.layers.back().kind), "the last layer, {}, is not a loss",
            network.layers.back().name);
  Outputs outputs{batch, {}};
  outputs.shape[Axis::N] *= batches;
  for (std::int64_t i = 0; i < batches; ++i) {
    std::vector<TensorBlock> block;
    executor.run(i, [&](std::size_t index) {
      const Op& op = program.ops[index];
      if (!computes_loss(op)) return;
      const Region& region = program.buffer(op.reads[0]).region;
      block = {{region, batch, executor.floats(op.reads[0])}};
    });
    SP_ASSERT(block.size() == 1, "the program read {} blocks of the output, expected one",
              block.size());
    for (const std::vector<float>& whole : gather_blocks(block, communicator)) {
      const std::vector<float> logical = to_logical_order(whole, batch);
      outputs.values.insert(outputs.values.end(), logical.begin(), logical.end());
    }
  }
  return outputs;
}

void apply_softmax(Outputs& outputs) {
  if (outputs.values.empty()) return;  // only rank 0 has the values
  const std::int64_t channels = outputs.shape[Axis::C],
                     positions =
                         outputs.shape[Axis::D] * outputs.shape[Axis::H] * outputs.shape[Axis::W];
  const auto softmax_at = [&](std::int64_t first) {
    const auto value = [&](std::int64_t c) -> float& {
      return outputs.values[static_cast<std::size_t>(first + c * positions)];
    };
    float greatest = value(0);
    for (std::int64_t c = 1; c < channels; ++c) greatest = std::max(greatest, value(c));
    double sum = 0;
    for (std::int64_t c = 0; c < channels; ++c)
      sum += std::exp(static_cast<double>(value(c) - greatest));
    for (std::int64_t c = 0; c < channels; ++c)
      value(c) = static_cast<float>(std::exp(static_cast<double>(value(c) - greatest)) / sum);
  };
  for (std::int64_t n = 0; n < outputs.shape[Axis::N]; ++n)
    for (std::int64_t position = 0; position < positions; ++position)
      softmax_at(n * channels * positions + position);
}

}  // namespace stratplan
