// Recomputation: which outputs are kept, which ops are repeated, and that the backward phase finds
// the same values.
#include "model/partition/lowering/recompute.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "support/any_network.hpp"
#include "support/program_run.hpp"

namespace stratplan::recompute_test {
namespace {

using test::everywhere;
using test::NetworkBuilder;
using test::problem_with;
using testing::HasSubstr;

constexpr Window same{.kernel = 3, .pad_before = 1, .pad_after = 1};
using Names = std::set<std::string>;

/// The network of the header's table: input0 | conv1 bn2 relu3 | conv4 bn5 relu6 | fc7 loss8
Network header_network() {
  NetworkBuilder net(4, 4);
  const LayerIndex first =
      net.relu(net.batch_norm(net.convolution(net.input({3, 1, 8, 5}), 4, same)));
  return net.finish_with_loss(
      net.fully_connected(net.relu(net.batch_norm(net.convolution(first, 4, same))), 3));
}

/// Returns the forward kernels, halo exchanges and sums over ranks in the backward phase, in order,
/// for example "conv1".
std::string recomputed(const Network& network, const Program& program) {
  std::string text;
  for (const Op& op : program.ops) {
    if (op.phase != Phase::Backward || op.writes.empty() ||
        program.buffer(op.writes[0]).tensor_class != TensorClass::Activation)
      continue;
    const auto* compute = std::get_if<ComputeOp>(&op.body);
    if (compute && compute->kernel.kind == KernelKind::CopyRegion)
      continue;  // copies a halo into its place
    text += (text.empty() ? "" : " ") + network.layer(op.layer).name;
  }
  return text;
}

/// Returns the activations that stay from the forward to the backward phase, without loaded data.
Names kept(const Program& program) {
  int turn = 0;
  while (program.ops[static_cast<std::size_t>(turn)].phase == Phase::Forward) ++turn;
  Names names;
  for (const Buffer& buffer : program.buffers)
    if (buffer.tensor_class == TensorClass::Activation && buffer.first_op >= 0 &&
        buffer.first_op < turn && buffer.last_op >= turn)
      names.insert(buffer.name);
  return names;
}

TEST(Recomputation, TableOfTheHeader) {
  const Network network = header_network();
  struct Row {
    Names named;
    Names kept;  // without the data
    const char* again;
  };
  const Row table[] = {
      {{}, {"conv1.y", "relu3.y", "conv4.y", "relu6.y"}, ""},
      {{"conv1"}, {"relu3.y", "conv4.y", "relu6.y"}, "conv1"},
      {{"conv1", "conv4"}, {"relu3.y", "relu6.y"}, "conv4 conv1"},
      {{"relu3", "conv4"}, {"relu6.y"}, "conv1 bn2 conv4"},
      {{"relu3", "relu6"},
       {},
       "conv1 bn2 conv4 bn5"},  // fc7 needs all of them at once, so nothing is saved
      {{"input0"},
       {"conv1.y", "relu3.y", "conv4.y", "relu6.y"},
       "conv1"},  // the data is loaded again, for conv1
      {{"bn2", "fc7"},
       {"relu3.y", "conv4.y", "relu6.y"},
       "conv1"},  // bn2 is fused with relu3, which is kept; nothing reads fc7
  };
  for (const Row& row : table) {
    SCOPED_TRACE(testing::PrintToString(row.named));
    const Execution execution{.precision = {}, .recompute = row.named};
    const Program program =
        lower(network, everywhere(network, Decomposition::parse("N1")), execution, 0);
    Names expected = row.kept;
    if (!row.named.contains("input0")) expected.insert("input0->conv1");
    EXPECT_EQ(kept(program), expected);
    EXPECT_EQ(recomputed(network, program), row.again);
    EXPECT_EQ(problem_with(network, everywhere(network, Decomposition::parse("N2 H2")), execution),
              "");
  }
}

TEST(Recomputation, BringsAllInputsThatAProductReads) {
  NetworkBuilder net(4, 4);
  const LayerIndex data = net.input({3, 1, 8, 5});
  const LayerIndex first = net.convolution(data, 4, same), second = net.convolution(data, 4, same);
  const Network network = net.finish_with_loss(net.binary(BinaryFunction::Multiply, first, second));
  const Execution execution{.precision = {}, .recompute = {"conv1", "conv2"}};
  const Program program =
      lower(network, everywhere(network, Decomposition::parse("N1")), execution, 0);
  EXPECT_EQ(kept(program), (Names{"input0->conv1", "input0->conv2"}));
  EXPECT_EQ(recomputed(network, program), "conv1 conv2");
  for (const char* grid : {"N2 H2", "C4", "H4"})
    EXPECT_EQ(problem_with(network, everywhere(network, Decomposition::parse(grid)), execution), "")
        << grid;
}

TEST(Recomputation, TakesLessMemoryTheMoreOfItIsTransient) {
  NetworkBuilder net(2, 2);
  LayerIndex x = net.input({3, 1, 16, 16});
  for (int i = 0; i < 6; ++i) x = net.relu(net.batch_norm(net.convolution(x, 8, same)));
  const Network network = net.finish_with_loss(x);
  const auto arena = [&](const Names& names, const char* grid) {
    return lower(network, everywhere(network, Decomposition::parse(grid)),
                 {.precision = {}, .recompute = names}, 0)
        .arena.value;
  };
  const std::int64_t tensor = std::int64_t{2} * 8 * 16 * 16 * 4;
  // Six convolutions' outputs are dropped. While the loss lives, the last one is not yet
  // recomputed; later one at a time is.
  EXPECT_LE(arena(layers_to_recompute(network), "N1"), arena({}, "N1") - 4 * tensor);
  EXPECT_LE(arena(layers_to_recompute(network), "H2"), arena({}, "H2") - 4 * tensor / 2);
}

TEST(Recomputation, WhatABlockKeepsForItselfAlone) {
  struct Row {
    const char* what;
    std::function<LayerIndex(NetworkBuilder&, LayerIndex)>
        block;  // a convolution follows the block
    const char* named;
  };
  using Net = NetworkBuilder&;
  const Row table[] = {
      {"a convolution's output is read by the normalization",
       [](Net net, LayerIndex x) { return net.relu(net.batch_norm(net.convolution(x, 4, same))); },
       "conv2"},
      {"an activation's output by the next convolution too",
       [](Net net, LayerIndex x) { return net.relu(net.convolution(x, 4, same, true)); }, ""},
      {"several layers",
       [](Net net, LayerIndex x) {
         return net.dropout(net.sigmoid(net.batch_norm(net.convolution(x, 4, same))));
       },
       "sigmoid4"},
      {"nobody else reads it",
       [](Net net, LayerIndex x) {
         return net.max_pool(net.relu(net.convolution(x, 4, same)), same);
       },
       "relu3"},
      {"but to make something again",
       [](Net net, LayerIndex x) {
         return net.relu(
             net.batch_norm(net.average_pool(net.relu(net.convolution(x, 4, same)), same)));
       },
       "pool4"},
      {"with an addition",
       [](Net net, LayerIndex x) {
         return net.relu(net.add({net.batch_norm(net.convolution(x, 4, same)), x}));
       },
       "conv2"},
      {"slopes", [](Net net, LayerIndex x) { return net.prelu(net.convolution(x, 4, same)); },
       "conv2"},
  };
  for (const Row& row : table) {
    SCOPED_TRACE(row.what);
    NetworkBuilder net(4, 4);
    const LayerIndex first = net.convolution(net.input({4, 1, 8, 5}), 4, same);
    const Network network = net.finish_with_loss(net.convolution(row.block(net, first), 4, same));
    Names expected{"input0"};
    if (*row.named) expected.insert(row.named);
    EXPECT_EQ(layers_to_recompute(network), expected);
    for (const bool fuse : {true, false}) {
      const Execution execution{.precision = {}, .fuse = fuse, .recompute = expected};
      EXPECT_EQ(problem_with(network, everywhere(network, Decomposition::parse("H2")), execution),
                "");
    }
  }
}

TEST(Recomputation, RepeatsNoSumForANormalization) {
  const Network network = header_network();
  const auto sums = [&](const Names& names) {
    const Program program = lower(network, everywhere(network, Decomposition::parse("N2 H2")),
                                  {.precision = {}, .recompute = names}, 0);
    return std::ranges::count_if(program.ops, [](const Op& op) {
      return op.producer < 0 && std::holds_alternative<CollectiveOp>(op.body);
    });
  };
  EXPECT_EQ(sums({}), sums({"relu3", "relu6"}));
}

TEST(Recomputation, ReasonsAgainstIt) {
  const Network network = header_network();
  const auto reason = [&](LayerIndex layer) {
    return check_recompute(network, layer).value_or(Rejection{}).reason;
  };
  EXPECT_EQ(reason(0), "");
  EXPECT_EQ(reason(1), "");
  EXPECT_EQ(reason(8),
            "layer loss8 cannot be recomputed: a loss makes its gradient in the forward phase");
}

/// Returns a random subset of the layers that can be recomputed.
Names any_names(const Network& network) {
  Names names;
  for (LayerIndex index = 0; index < network.size(); ++index)
    if (!check_recompute(network, index) && test::any_int(0, 2) == 0)
      names.insert(network.layer(index).name);
  return names;
}

RC_GTEST_PROP(Recomputation, BackwardFindsWhatItWouldHaveFound, ()) {
  const Network network = test::any_network();
  const Decomposition wanted{
      test::any_grid(test::any_topology(), {all_dims.begin(), all_dims.end()}),
      test::any_int(0, 1) ? OutputLayout::AllReduce : OutputLayout::ReduceScatter};
  const Execution execution{
      .bucket_bytes = {512},
      .precision = {},
      .fuse = test::any_int(0, 1) > 0,
      .recompute = test::any_int(0, 3) == 0 ? layers_to_recompute(network) : any_names(network)};
  RC_ASSERT(problem_with(network, everywhere(network, wanted), execution) == "");
}

/// Layers with different decompositions: recomputation repeats the transfers, too.
RC_GTEST_PROP(Recomputation, AlsoBetweenLayersOfDifferentDecompositions, ()) {
  const Network network = test::any_network();
  const Topology topology = test::any_topology();
  LayerDecompositions decompositions;
  for (const Layer& layer : network.layers)
    decompositions.push_back(
        layer.kind == LayerKind::Input
            ? Decomposition{}
            : nearest_legal(layer, {test::any_grid(topology, {all_dims.begin(), all_dims.end()})})
                  .decomposition);
  RC_ASSERT(problem_with(network, decompositions,
                         {.precision = {}, .recompute = any_names(network)}) == "");
}

}  // namespace
}  // namespace stratplan::recompute_test
