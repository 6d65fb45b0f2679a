// Sharding: each rank's share, the buffers that each stage keeps, and that every parameter is
// updated once, with all gradients.
#include "model/partition/sharding.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/partition/lowering/recompute.hpp"
#include "support/any_network.hpp"
#include "support/program_run.hpp"

namespace stratplan::sharding_test {
namespace {

using test::everywhere;
using test::NetworkBuilder;
using test::problem_with;

constexpr Window same{.kernel = 3, .pad_before = 1, .pad_after = 1};

/// The network of the header's example: 8 x 3 x 3 x 3 weights, 8 scales and 8 shifts.
Network header_network() {
  NetworkBuilder net(6, 6);
  return net.finish_with_loss(
      net.relu(net.batch_norm(net.convolution(net.input({3, 1, 8, 5}), 8, same))));
}

TEST(Sharding, SharesOfTheHeader) {
  const Network network = header_network();
  const Program program = lower(network, everywhere(network, Decomposition::parse("N3")),
                                {.precision = {}, .sharding = 1}, 1);
  using Shares = std::vector<std::int64_t>;
  std::map<std::string, Shares> shares;
  for (const ParameterSlice& slice : program.parameters) {
    EXPECT_EQ(slice.sharers, (std::vector<int>{0, 1, 2}));
    shares[slice.name(network)] = slice.shares;
  }
  // The backward phase completes gradients from the last layer on: scales and shifts (16 elements
  // each), then the 216 weights, in shares of 96.
  const std::map<std::string, Shares> expected{
      {"bn2.scale", {8, 0, 0}}, {"bn2.shift", {8, 0, 0}}, {"conv1.weights", {64, 96, 56}}};
  EXPECT_EQ(shares, expected);
}

TEST(Sharding, WhatEachStageKeepsOfABucket) {
  const Network network = header_network();
  constexpr std::int64_t all = 256, bucket = 288, share = 96;
  struct Row {
    int sharding;
    std::int64_t values, gradients, state;
    const char* collectives;  // of parameters and gradients, in order
  };
  const Row table[] = {
      {0, all, all, all, "all_reduce"},
      {1, bucket, bucket, share, "all_reduce all_gather"},
      {2, bucket, share, share, "reduce_scatter all_gather"},
      {3, share, share, share, "all_gather all_gather reduce_scatter"},
  };
  for (const Row& row : table) {
    SCOPED_TRACE(row.sharding);
    for (int rank = 0; rank < 3; ++rank) {
      const Program program = lower(network, everywhere(network, Decomposition::parse("N3")),
                                    {.precision = {}, .sharding = row.sharding}, rank);
      std::map<TensorClass, std::int64_t> kept;
      for (const Buffer& buffer : program.buffers)
        if (buffer.persistent && buffer.inside < 0)
          kept[buffer.tensor_class] += buffer.region.elements();
      EXPECT_EQ(kept[TensorClass::Parameter], row.values);
      EXPECT_EQ(kept[TensorClass::ParameterGradient], row.gradients);
      EXPECT_EQ(kept[TensorClass::OptimizerState], row.state);
      std::string collectives;
      for (const Op& op : program.ops)
        if (const auto* collective = std::get_if<CollectiveOp>(&op.body);
            collective && collective->type == DataType::F32)
          collectives += (collectives.empty() ? "" : " ") + std::string(name_of(collective->op));
      EXPECT_EQ(collectives, row.collectives);
    }
  }
}

/// Gradients and values that are not kept live only as long as their bucket needs them.
TEST(Sharding, BucketsComeAndGo) {
  NetworkBuilder net(2, 2);
  LayerIndex x = net.input({16, 1, 4, 4});
  for (int i = 0; i < 8; ++i) x = net.relu(net.convolution(x, 16, same));
  const Network network = net.finish_with_loss(x);
  const auto memory = [&](int sharding) {
    const Program program =
        lower(network, everywhere(network, Decomposition::parse("N2")),
              {.bucket_bytes = {4096}, .precision = {}, .sharding = sharding}, 0);
    return program.persistent.value + program.arena.value;
  };
  constexpr std::int64_t layer = 16 * 16 * 9 * 4, all = 8 * layer;
  EXPECT_EQ(memory(1), memory(0) - all / 2);
  EXPECT_LE(memory(2), memory(1) - all / 2 + layer);  // one bucket's gradients at a time
  EXPECT_LE(memory(3), memory(2) - all / 2 + layer);  // the same for values
}

TEST(Sharding, WhoeverHasNoPartnersKeepsAll) {
  const Network network = header_network();
  for (const char* grid : {"N1", "F2"}) {
    for (const int sharding : {1, 2, 3}) {
      const LayerDecompositions decompositions = everywhere(network, Decomposition::parse(grid));
      const Program plain = lower(network, decompositions, {}, 0),
                    sharded =
                        lower(network, decompositions, {.precision = {}, .sharding = sharding}, 0);
      EXPECT_EQ(plain.persistent, sharded.persistent) << grid;
      EXPECT_EQ(plain.ops.size(), sharded.ops.size()) << grid;
    }
  }
}

/// Shares of one replica's members follow each other, so that its members can reduce them.
TEST(Sharding, RanksThatRepeatWorkShareItsState) {
  const Network network = header_network();
  for (const auto& [grid, sharers] :
       {std::pair("R2", std::vector{0, 1}), {"N2 R2", std::vector{0, 2, 1, 3}}}) {
    const LayerDecompositions decompositions = everywhere(network, Decomposition::parse(grid));
    for (const int sharding : {1, 2, 3}) {
      SCOPED_TRACE(std::string(grid) + ", sharding " + std::to_string(sharding));
      const Execution execution{.precision = {}, .sharding = sharding};
      const Program plain = lower(network, decompositions, {}, 0),
                    sharded = lower(network, decompositions, execution, 0);
      EXPECT_LT(sharded.persistent, plain.persistent);
      for (const ParameterSlice& slice : sharded.parameters) EXPECT_EQ(slice.sharers, sharers);
      EXPECT_EQ(problem_with(network, decompositions, execution), "");
    }
  }
}

/// The collectives of a step over parameters' gradients, as every rank sees them.
std::map<std::vector<int>, Bytes> gradient_sums(const Network& network, const char* grid) {
  const LayerDecompositions decompositions = everywhere(network, Decomposition::parse(grid));
  std::map<std::vector<int>, Bytes> sums;
  for (int rank = 0; rank < Decomposition::parse(grid).grid.ranks(); ++rank)
    for (const Op& op : lower(network, decompositions, {}, rank).ops) {
      const auto* collective = std::get_if<CollectiveOp>(&op.body);
      if (collective && op.stream == Stream::Gradient && collective->op == Collective::AllReduce &&
          collective->group.front() == rank)
        sums[collective->group] += collective->bytes();
    }
  return sums;
}

/// On nodes of four ranks, a gradient that four ranks of each node hold is summed between nodes
/// once, not four times.
TEST(GradientSums, OfRepeatedWorkCrossNodesOnce) {
  const Network network = header_network();
  constexpr std::int64_t all = 256 * 4;  // bytes of the gradients, with padding
  struct Row {
    const char* grid;
    std::size_t groups;
  };
  for (const auto& [grid, groups] :
       {Row{"N2 R4", 4}, Row{"N4 R4", 4}, Row{"N3 R4", 4}, Row{"N2 R3", 3}, Row{"N2 R2 | R2", 4}}) {
    const auto sums = gradient_sums(network, grid);
    std::int64_t crossing = 0;
    for (const auto& [group, bytes] : sums) crossing += bytes.value;
    EXPECT_EQ(sums.size(), groups) << grid;
    EXPECT_GE(crossing, all) << grid;
    EXPECT_LT(crossing, all + 16 * 4 * 4) << grid;
    EXPECT_EQ(problem_with(network, everywhere(network, Decomposition::parse(grid)), {}), "");
  }
}

TEST(Sharding, LarsNeedsWholeTensors) {
  const Training lars{OptimizerKind::Lars, 1};
  EXPECT_FALSE(check_sharding(lars, 0));
  EXPECT_FALSE(check_sharding({OptimizerKind::AdamW, 4}, 3));
  EXPECT_EQ(
      check_sharding(lars, 2)->reason,
      "sharding stage 2 needs an optimizer that treats each element separately, but lars takes "
      "the norms of whole tensors");
}

RC_GTEST_PROP(Sharding, EveryParameterIsUpdatedOnceWithAllGradients, ()) {
  const Network network = test::any_network();
  const Decomposition wanted{
      test::any_grid(test::any_topology(), {all_dims.begin(), all_dims.end()}),
      test::any_int(0, 1) ? OutputLayout::AllReduce : OutputLayout::ReduceScatter};
  Execution execution{.bucket_bytes = {test::any_int(1, 3000)},
                      .precision = {},
                      .fuse = test::any_int(0, 1) > 0,
                      .sharding = test::any_int(1, 3)};
  if (test::any_int(0, 1)) execution.recompute = layers_to_recompute(network);
  RC_ASSERT(problem_with(network, everywhere(network, wanted), execution) == "");
}

}  // namespace
}  // namespace stratplan::sharding_test
