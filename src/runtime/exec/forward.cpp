#include "runtime/exec/forward.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/verify/dump.hpp"

namespace stratplan {
namespace {

/// Whether the op computes a loss in the forward phase. The first buffer that such an op reads is
/// the network's output.
bool computes_loss(const Op& op) {
  const auto* compute = std::get_if<ComputeOp>(&op.body);
  if (!compute || op.phase != Phase::Forward) return false;
  const KernelKind kind = compute->kernel.kind;
  return kind == KernelKind::SoftmaxCrossEntropy || kind == KernelKind::WeightedCrossEntropy ||
         kind == KernelKind::ElementwiseLoss || kind == KernelKind::DiceSums;
}

}  // namespace

std::vector<Outputs> forward(const Network& network, const Program& program, Executor& executor,
                             Communicator& communicator, std::int64_t batches) {
  std::vector<Outputs> outputs;
  for (const LayerIndex loss : network.losses()) {
    outputs.push_back({network.layer(loss).name, network.layer(loss).input, {}});
    outputs.back().shape[Axis::N] *= batches;
  }
  const auto place_of = [&](LayerIndex loss) {
    return static_cast<std::size_t>(std::ranges::find(program.losses, loss, &LossValue::layer) -
                                    program.losses.begin());
  };
  for (std::int64_t i = 0; i < batches; ++i) {
    std::vector<TensorBlock> blocks;  // a rank without a loss has an empty region of its input
    for (const LossValue& loss : program.losses)
      blocks.push_back({Region{}, network.layer(loss.layer).input, {}});
    executor.run(i, [&](std::size_t index) {
      const Op& op = program.ops[index];
      if (!computes_loss(op)) return;
      TensorBlock& block = blocks[place_of(op.layer)];
      block.region = program.buffer(op.reads[0]).region;
      block.values = executor.floats(op.reads[0]);
    });
    const std::vector<std::vector<float>> whole = gather_blocks(blocks, communicator);
    for (std::size_t loss = 0; loss < whole.size(); ++loss) {
      const std::vector<float> logical = to_logical_order(whole[loss], blocks[loss].global);
      outputs[loss].values.insert(outputs[loss].values.end(), logical.begin(), logical.end());
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
