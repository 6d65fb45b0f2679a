// How the kind of optimizer and micro-batches change a program's buffers and ops. The usual
// settings change nothing.
#include <gtest/gtest.h>

#include <map>

#include "model/partition/lowering/lower.hpp"
#include "support/networks.hpp"

namespace stratplan::lower_optimizer_test {
namespace {

LayerDecompositions everywhere(const Network& network, const std::string& text) {
  LayerDecompositions decompositions(network.layers.size());
  for (std::size_t i = 0; i < decompositions.size(); ++i)
    if (network.layers[i].kind != LayerKind::Input)
      decompositions[i] =
          nearest_legal(network.layers[i], Decomposition::parse(text)).decomposition;
  return decompositions;
}

/// Two 3x3 convolutions with bias, 2 x 8 x 8 to 8 channels, batch 4.
Network network_with(OptimizerKind optimizer, std::int64_t micro_batches = 1) {
  test::NetworkBuilder net(4 / micro_batches);
  const Window window{.kernel = 3, .pad_before = 1, .pad_after = 1};
  const LayerIndex y = net.convolution(
      net.relu(net.convolution(net.input({2, 1, 8, 8}), 8, test::planar(window), true)), 8,
      test::planar(window), true);
  Network network = net.finish_with_loss(y);
  network.batch = 4;
  network.training = {optimizer, micro_batches};
  return network;
}

std::map<KernelKind, int> count_kernels(const Program& program) {
  std::map<KernelKind, int> counts;
  for (const Op& op : program.ops)
    if (const auto* compute = std::get_if<ComputeOp>(&op.body)) ++counts[compute->kernel.kind];
  return counts;
}

struct Case {
  OptimizerKind optimizer;
  KernelKind kernel;
  int buffers;  ///< number of persistent buffers of the parameters' size: values, gradients, state
};

TEST(LowerOptimizer, KindDecidesStateAndKernel) {
  const Case cases[] = {{OptimizerKind::Sgd, KernelKind::Sgd, 2},
                        {OptimizerKind::Momentum, KernelKind::SgdMomentum, 3},
                        {OptimizerKind::Nesterov, KernelKind::SgdNesterov, 3},
                        {OptimizerKind::Adam, KernelKind::Adam, 4},
                        {OptimizerKind::AdamW, KernelKind::AdamW, 4},
                        {OptimizerKind::Lars, KernelKind::Lars, 3}};
  for (const Case& c : cases) {
    const Network network = network_with(c.optimizer);
    const Program program = lower(network, everywhere(network, "N2"), {}, 0);
    const Program usual =
        lower(network_with(OptimizerKind::Momentum), everywhere(network, "N2"), {}, 0);
    EXPECT_EQ(program.persistent * 3, usual.persistent * c.buffers) << name_of(c.optimizer);
    EXPECT_GT(count_kernels(program)[c.kernel], 0) << name_of(c.optimizer);
  }
}

/// Counts the update's collectives over 64-bit numbers, and its kernels that sum squares.
struct Norms {
  int reductions = 0;
  std::size_t group = 0;
  std::int64_t numbers = 0;
  int sums = 0;
};

Norms norms_of(const std::string& grid, int rank) {
  const Network network = network_with(OptimizerKind::Lars);
  Norms norms;
  for (const Op& op : lower(network, everywhere(network, grid), {}, rank).ops) {
    if (op.phase != Phase::Update) continue;
    if (const auto* collective = std::get_if<CollectiveOp>(&op.body)) {
      ++norms.reductions;
      norms.group = collective->group.size();
      norms.numbers = collective->count;
    } else {
      norms.sums += std::get<ComputeOp>(op.body).kernel.kind == KernelKind::SquaredNorms;
    }
  }
  return norms;
}

TEST(LowerOptimizer, NormsOfSplitTensorsAreReducedOnceForAll) {
  // There are two tensors of weights, with two numbers each.
  for (const int rank : {0, 1}) {
    EXPECT_EQ(norms_of("N2", rank).reductions, 0);  // each rank holds whole tensors
    EXPECT_EQ(norms_of("N2", rank).sums, 2);
    EXPECT_EQ(norms_of("F2", rank).reductions, 1);
    EXPECT_EQ(norms_of("F2", rank).group, 2U);
    EXPECT_EQ(norms_of("F2", rank).numbers, 4);
    EXPECT_EQ(norms_of("F2", rank).sums, 2);
  }
  // Among ranks that hold the same block, one contributes its sum. Each tensor has two blocks.
  for (const char* grid : {"F2 R2", "N2 F2", "H2 F2"}) {
    int sums = 0;
    for (int rank = 0; rank < 4; ++rank) sums += norms_of(grid, rank).sums;
    EXPECT_EQ(sums, 4) << grid;
  }
}

TEST(LowerOptimizer, MicroBatchesRepeatTheLayersAndReduceOnce) {
  const Network once = network_with(OptimizerKind::Momentum),
                four = network_with(OptimizerKind::Momentum, 4);
  const Program program = lower(four, everywhere(four, "H2"), {}, 0),
                usual = lower(once, everywhere(once, "H2"), {}, 0);
  auto counts = count_kernels(program), before = count_kernels(usual);
  EXPECT_EQ(counts[KernelKind::ConvolutionForward], 4 * before[KernelKind::ConvolutionForward]);
  EXPECT_EQ(counts[KernelKind::ConvolutionBackwardFilter],
            4 * before[KernelKind::ConvolutionBackwardFilter]);
  EXPECT_EQ(counts[KernelKind::SgdMomentum], before[KernelKind::SgdMomentum]);
  const auto reductions = [](const Program& p) {
    return std::ranges::count_if(
        p.ops, [](const Op& op) { return std::holds_alternative<CollectiveOp>(op.body); });
  };
  EXPECT_EQ(reductions(program), reductions(usual));
  EXPECT_LT(program.arena, usual.arena);
  EXPECT_EQ(program.persistent * 3, usual.persistent * 4);  // the accumulated gradients
}

}  // namespace
}  // namespace stratplan::lower_optimizer_test
