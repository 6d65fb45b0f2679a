// Runs the programs of all ranks together on symbolic values. Every kernel must find exactly the
// values that the undivided network would hold there.
#include "model/partition/lowering/lower.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/partition/transfer.hpp"
#include "support/generators.hpp"
#include "support/networks.hpp"
#include "support/program_run.hpp"

namespace stratplan {
namespace {

using test::everywhere;
using test::NetworkBuilder;
using test::problem_with;
using test::small_network;

LayerDecompositions each(const Network& network, const std::vector<const char*>& texts) {
  LayerDecompositions decompositions;
  for (int i = 0; i < network.size(); ++i)
    decompositions.push_back(network.layer(i).kind == LayerKind::Input
                                 ? Decomposition{}
                                 : Decomposition::parse(texts[static_cast<std::size_t>(i)]));
  return decompositions;
}

TEST(Lower, EveryUniformDecompositionOfASmallNetwork) {
  const Network network = small_network(6, 4);
  for (const char* text : {"N1",
                           "N2",
                           "N3",
                           "N5",
                           "N6",
                           "H2",
                           "H3",
                           "H5",
                           "W2",
                           "W4",
                           "C2",
                           "C3",
                           "F2",
                           "F3",
                           "F5",
                           "R2",
                           "R6",
                           "N2 H2",
                           "H2 W2",
                           "H3 W2",
                           "F2 C2",
                           "C2 F2",
                           "F2 C3",
                           "N2 F2",
                           "N2 C2",
                           "H2 R2",
                           "N2 R2",
                           "R2 N2",
                           "N2 | H2",
                           "N2 | H2 W2",
                           "H2 | H2",
                           "N3 | F2",
                           "C2 | C2",
                           "N3 H2 W2",
                           "F2 C2 H3",
                           "C2 all-reduce",
                           "C3 F2 all-reduce",
                           "N2 C2 all-reduce",
                           "H2 C2 R2 all-reduce",
                           "N2 H2 F2 C2"}) {
    EXPECT_EQ(problem_with(network, everywhere(network, Decomposition::parse(text))), "") << text;
  }
}

TEST(Lower, SeveralInputsAndLosses) {
  const Network network = test::several_ends(6);
  for (const char* text : {"N1", "N2", "N5", "H2", "W2", "C2", "F2", "R2", "N2 H2", "F2 C2",
                           "N2 | H2", "C2 all-reduce"})
    EXPECT_EQ(problem_with(network, everywhere(network, Decomposition::parse(text))), "") << text;
}

TEST(Lower, VolumesAndSplitsAlongDepth) {
  NetworkBuilder net(2);
  const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  const LayerIndex x = net.input({3, 7, 6, 6});
  LayerIndex y = net.relu(net.convolution(x, 4, {same, same, same}, true));
  y = net.pool(LayerKind::MaxPool, y,
               {Window{.kernel = 2, .stride = 2}, Window{.kernel = 2, .stride = 2},
                Window{.kernel = 2, .stride = 2}});
  y = net.convolution(y, 6, {same, same, same});
  const Network network = net.finish_with_loss(net.fully_connected(y, 5));
  for (const char* text :
       {"D2", "D3", "D2 H2", "D3 W2", "N2 D2", "D2 C2", "F2 D3", "D2 R2", "D2 H2 W3"})
    EXPECT_EQ(problem_with(network, everywhere(network, Decomposition::parse(text))), "") << text;
}

TEST(Lower, BranchesThatAreJoinedPaddedAndEnlarged) {
  NetworkBuilder net(2);
  const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  const LayerIndex x = net.input({3, 1, 8, 7});
  const LayerIndex wide = net.relu(net.convolution(x, 3, same));
  const LayerIndex narrow =
      net.convolution(net.max_pool(wide, {.kernel = 2, .stride = 2}), 5, same, true);
  const LayerIndex again =
      net.pad(net.upsample(narrow, {1, 2, 2}, true), {{{}, {}, {.pad_before = 1}}});
  const LayerIndex joined =
      net.concat({again, x, wide,
                  net.upsample(net.max_pool(wide, {.kernel = 9, .pad_before = 1, .pad_after = 1}),
                               {1, 4, 7}, false)});
  const Network network =
      net.finish_with_loss(net.concat({net.convolution(joined, 4, same), joined, joined}));
  for (const char* text : {"N2", "H2", "H3", "H5", "W2", "W4", "C2", "C5", "F3", "F2 C2", "R3",
                           "N2 C3", "H2 W2", "C2 H2", "N2 | C2", "C3 all-reduce"})
    EXPECT_EQ(problem_with(network, everywhere(network, Decomposition::parse(text))), "") << text;
}

TEST(Lower, BlocksSmallerThanTheHalo) {
  NetworkBuilder net(1);
  const Window wide{.kernel = 7, .stride = 1, .dilation = 1, .pad_before = 3, .pad_after = 3};
  const Window sparse{.kernel = 3, .stride = 1, .dilation = 3, .pad_before = 3, .pad_after = 3};
  const LayerIndex x = net.input({2, 1, 6, 6});
  const Network network = net.finish_with_loss(
      net.convolution(net.convolution(net.convolution(x, 2, wide), 2, wide), 2, sparse));
  for (const char* text : {"H6", "H5", "W4", "H3 W2", "H4 W3"})
    EXPECT_EQ(problem_with(network, everywhere(network, Decomposition::parse(text))), "") << text;
}

TEST(Lower, RedistributionBetweenLayersThatAllDiffer) {
  NetworkBuilder net(4);
  const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  LayerIndex y = net.input({6, 1, 8, 8});
  for (int i = 0; i < 4; ++i) y = net.relu(net.convolution(y, 6, same, i % 2 == 0));
  const Network network = net.finish_with_loss(net.fully_connected(y, 8));
  const std::vector<std::vector<const char*>> plans{
      // Layers: input, conv, relu, conv, relu, conv, relu, conv, relu, fc, loss
      {"", "H4", "H4", "R4", "R4", "H4", "H4", "W4", "W4", "N4", "N4"},
      {"", "H4", "R4", "H4", "R4", "H4", "R4", "H4", "R4", "R4", "H1 R4"},
      {"", "N4", "C4", "H4", "W4", "F4", "N2 H2", "C2 F2", "H2 W2", "F4", "N4"},
      {"", "C2 F2", "F2 C2", "C4 all-reduce", "R2 N2", "N2 R2", "R2 W2", "W2 R2", "R4", "C4",
       "N2 R2"},
      {"", "N2 | H2", "H2 | N2", "C2 | F2", "F2 | C2", "R2 | W2", "H2 | R2", "N4", "W2 | W2",
       "C2 | N2", "N2 | R2"},
      {"", "N3", "H3", "C3", "F3", "R3", "W3", "C3 all-reduce", "N3", "F3", "R3"},
      {"", "N2 H3", "H6", "F3 C2", "R6", "W3 N2", "H2 W3", "C2 F3 all-reduce", "N3 R2", "C6",
       "N2 R3"},
  };
  for (const auto& plan : plans) {
    const LayerDecompositions decompositions = each(network, plan);
    for (int i = 1; i < network.size(); ++i) {
      const auto rejection = check(network.layer(i), decompositions[static_cast<std::size_t>(i)]);
      ASSERT_FALSE(rejection) << rejection->reason;
    }
    EXPECT_EQ(problem_with(network, decompositions), "") << testing::PrintToString(plan);
  }
}

TEST(Lower, StatisticsSetsThatLieInGroupsOrStraddleThem) {
  struct Case {
    std::int64_t batch, samples;
    const char* text;
  };
  const std::vector<Case> cases{
      // batch, samples per statistics set, grid
      {8, 8, "N2"},    {8, 4, "N2"},       {8, 2, "N2"},         {8, 4, "N4"},    {8, 4, "N3"},
      {8, 3, "N2"},    {8, 3, "N4"},       {7, 2, "N3"},         {5, 5, "N5"},    {12, 1, "N3"},
      {8, 4, "N2 H2"}, {8, 4, "N4 W2"},    {8, 4, "H2 R2"},      {8, 4, "N4 R2"}, {8, 4, "N3 H2"},
      {8, 3, "N2 C2"}, {8, 4, "N2 | N2"},  {8, 4, "N2 H2 | N2"}, {8, 4, "H2 N4"}, {8, 4, "F2 N4"},
      {8, 4, "N4 F2"}, {9, 3, "N3 R2 H2"}, {8, 4, "R2 N4"},
  };
  for (const Case& c : cases) {
    NetworkBuilder net(c.batch, c.samples);
    const LayerIndex x = net.input({4, 1, 4, 4});
    const Network network =
        net.finish_with_loss(net.relu(net.batch_norm(net.convolution(x, 4, Window{}))));
    SCOPED_TRACE(testing::Message() << c.batch << " in sets of " << c.samples << " on " << c.text);
    EXPECT_EQ(problem_with(network, everywhere(network, Decomposition::parse(c.text))), "");
  }
}

TEST(Lower, WhichSetsARankSumsAndWithWhom) {
  struct Rank {
    std::int64_t first_set, sets;
    std::vector<int> group;  // of the all-reduce; empty if the rank needs none
  };
  struct Case {
    std::int64_t batch, samples;
    const char* grid;
    std::vector<Rank> ranks;
  };
  const std::vector<Case> cases{
      // batch, samples per set, grid; per rank: first set, sets, group of the all-reduce
      {8, 2, "N2", {{0, 2, {}}, {2, 2, {}}}},
      {8, 4, "N2", {{0, 1, {}}, {1, 1, {}}}},
      {8, 8, "N2", {{0, 1, {0, 1}}, {0, 1, {0, 1}}}},
      {8, 4, "N4", {{0, 1, {0, 1}}, {0, 1, {0, 1}}, {1, 1, {2, 3}}, {1, 1, {2, 3}}}},
      {8, 4, "N3", {{0, 2, {0, 1, 2}}, {0, 2, {0, 1, 2}}, {0, 2, {0, 1, 2}}}},
      {8, 4, "N2 H2", {{0, 1, {0, 1}}, {0, 1, {0, 1}}, {1, 1, {2, 3}}, {1, 1, {2, 3}}}},
      {8, 4, "H2 R2", {{0, 2, {0, 2}}, {0, 2, {1, 3}}, {0, 2, {0, 2}}, {0, 2, {1, 3}}}},
      {8, 4, "C2", {{0, 2, {}}, {0, 2, {}}}},
  };
  for (const Case& c : cases) {
    NetworkBuilder net(c.batch, c.samples);
    const LayerIndex norm = net.batch_norm(net.input({4, 1, 4, 4}));
    const Network network = net.finish_with_loss(norm);
    for (int rank = 0; rank < static_cast<int>(c.ranks.size()); ++rank) {
      SCOPED_TRACE(testing::Message() << c.batch << " in sets of " << c.samples << " on " << c.grid
                                      << ", rank " << rank);
      const Rank& expected = c.ranks[static_cast<std::size_t>(rank)];
      const Program program = lower_fusion(network, {norm}, Decomposition::parse(c.grid), {}, rank);
      std::vector<int> group;
      for (const Op& op : program.ops) {
        const auto* compute = std::get_if<ComputeOp>(&op.body);
        if (compute && compute->kernel.kind == KernelKind::BatchNormStatistics) {
          EXPECT_EQ(compute->kernel.sets().first_set, expected.first_set);
          EXPECT_EQ(compute->kernel.sets().sets, expected.sets);
        }
        const auto* collective = std::get_if<CollectiveOp>(&op.body);
        if (collective && op.phase == Phase::Forward) group = collective->group;
      }
      EXPECT_EQ(group, expected.group);
    }
  }
}

// 8 samples of 4 channels in two groups, 4 x 4 positions.
TEST(Lower, NormalizationsInSetsOfOneSampleAndInSetsOfTheirOwn) {
  struct Row {
    LayerKind kind;
    bool local;  ///< batch normalization in one set per rank
    const char* grid;
    std::int64_t sets;  ///< of rank 0
    double terms;       ///< per set
    std::vector<int> group;
  };
  const Row table[] = {
      {LayerKind::InstanceNorm, false, "N2", 4, 16, {}},
      {LayerKind::InstanceNorm, false, "H2 W2", 8, 16, {0, 1, 2, 3}},
      {LayerKind::InstanceNorm, false, "C2 W2", 8, 16, {0, 1}},
      {LayerKind::GroupNorm, false, "N2 H2", 4, 32, {0, 1}},
      {LayerKind::GroupNorm, false, "C2", 8, 32, {}},
      {LayerKind::GroupNorm, false, "H2 R2", 8, 32, {0, 2}},
      {LayerKind::BatchNorm, true, "N2 H2", 1, 4 * 8, {}},
      {LayerKind::BatchNorm, true, "C2", 1, 8 * 16, {}},
      {LayerKind::BatchNorm, false, "N2 H2", 1, 8 * 16, {0, 1, 2, 3}},
  };
  for (const Row& row : table) {
    SCOPED_TRACE(testing::Message()
                 << name_of(row.kind) << " on " << row.grid << (row.local ? ", local" : ""));
    test::LayerCase one = test::single_layer(row.kind, 8, {4, 1, 4, 4});
    one.network.local_statistics = row.local;
    const Program program =
        lower_fusion(one.network, {one.index}, Decomposition::parse(row.grid), {}, 0);
    int collectives = 0;
    for (const Op& op : program.ops) {
      const auto* compute = std::get_if<ComputeOp>(&op.body);
      if (compute && compute->kernel.kind == KernelKind::BatchNormForward) {
        EXPECT_EQ(compute->kernel.sets().sets, row.sets);
        EXPECT_EQ(compute->kernel.sets().terms(0), row.terms);
      }
      const auto* collective = std::get_if<CollectiveOp>(&op.body);
      if (!collective || op.stream == Stream::Gradient) continue;
      EXPECT_EQ(collective->group, row.group);
      ++collectives;
    }
    EXPECT_EQ(collectives, row.group.empty() ? 0 : 1)
        << "the layer reads data: one all-reduce forward, none backward";
  }
}

// ---------------------------------------------------------------- properties

/// Returns a legal decomposition of this layer over so many ranks: any grid made legal, or
/// repetition.
Decomposition any_decomposition(const Layer& layer, const Topology& topology) {
  const ProcessGrid grid = test::any_grid(topology, {all_dims.begin(), all_dims.end()});
  return nearest_legal(layer, {grid, test::any_int(0, 1) == 1 ? OutputLayout::AllReduce
                                                              : OutputLayout::ReduceScatter})
      .decomposition;
}

RC_GTEST_PROP(Lower, AnyLayersUnderAnyDecompositions, ()) {
  using test::any_int;
  const std::int64_t batch = any_int(1, 4);
  NetworkBuilder net(batch, any_int(1, static_cast<int>(batch)));
  std::vector<LayerIndex> made{net.input(
      {any_int(1, 5), any_int(0, 3) == 0 ? any_int(2, 4) : 1, any_int(2, 7), any_int(2, 7)})};
  for (int i = any_int(1, 5); i > 0; --i) {
    const LayerIndex from = any_int(0, 3) > 0 ? made.back() : test::any_of(made);
    const Shape shape = net.finish().layer(from).output;
    // The last kinds would grow the network without end.
    const int which = any_int(0, shape.elements() < 1000 ? 15 : 12);
    std::array<Window, 3> windows;
    for (const Axis axis : spatial_axes)
      windows[static_cast<std::size_t>(spatial_index(axis))] =
          which == 3 ? test::any_pooling_window(shape[axis]) : test::any_window(shape[axis]);
    switch (which) {
      case 0:
      case 1:
      case 2:
        made.push_back(net.convolution(from, any_int(1, 5), windows, any_int(0, 1) == 1));
        break;
      case 3:
        made.push_back(net.pool(any_int(0, 1) == 0 ? LayerKind::MaxPool : LayerKind::AveragePool,
                                from, windows));
        break;
      case 4: made.push_back(net.batch_norm(from)); break;
      case 5: made.push_back(net.relu(from)); break;
      case 6: made.push_back(net.add({from, net.sigmoid(from)})); break;
      case 7: made.push_back(net.global_average_pool(from)); break;
      case 8: made.push_back(net.prelu(net.tanh(from))); break;
      case 9: made.push_back(net.clip(net.instance_norm(from), -1, 1)); break;
      case 10:
        made.push_back(net.elu(net.group_norm(from, shape[Axis::C] % 2 == 0 ? 2 : 1)));
        break;
      case 11:
        made.push_back(net.layer_norm(net.local_response_norm(net.softmax(from), {})));
        break;
      case 13:
        made.push_back(net.concat({from, net.convolution(from, any_int(1, 4), Window{}), from}));
        break;
      case 14: {
        const auto mode = static_cast<PaddingMode>(any_int(0, 3));
        std::array<Window, 3> around;
        for (std::size_t along = 0; along < around.size(); ++along) {
          const int most = static_cast<int>(shape.extent[2 + along]) - (mode != PaddingMode::Wrap);
          around[along] = {.pad_before = any_int(0, most), .pad_after = any_int(0, most)};
        }
        made.push_back(mode == PaddingMode::Constant ? net.pad(from, windows, mode, any_int(0, 2))
                                                     : net.pad(from, around, mode));
        break;
      }
      case 15:
        made.push_back(
            net.resize(from, {.scale = {{{any_int(1, 2), 1}, {any_int(1, 3), 2}, {0, 1}}},
                              .size = {0, shape[Axis::H] < 2 ? 1 : 0, any_int(1, 6)},
                              .linear = any_int(0, 1) == 1,
                              .coordinates = static_cast<Coordinates>(any_int(0, 5)),
                              .rounding = static_cast<Rounding>(any_int(0, 3))}));
        break;
      case 16:
        made.push_back(any_int(0, 2) == 0 ? net.reduce(Reduction::Max, from, {Axis::C})
                                          : net.reduce(Reduction::Mean, from, {Axis::C, Axis::H}));
        break;
      case 17:
        made.push_back(net.depth_to_space(
            net.space_to_depth(net.upsample(from, {1, 2, 1}, false), {1, 2, 1}), {1, 1, 2}));
        made.back() = net.channel_shuffle(made.back(), 1);
        break;
      default: made.push_back(net.dropout(from));
    }
  }
  // Every tensor must be read: fully connected layers bring all remaining tensors to one shape.
  std::vector<LayerIndex> heads;
  for (const LayerIndex layer : made)
    if (net.finish().consumers(layer).empty()) heads.push_back(net.fully_connected(layer, 3));
  Network network = net.finish_with_loss(heads.size() == 1 ? heads[0] : net.add(heads));
  network.running_momentum = any_int(0, 1) * 0.1;
  const Topology topology = test::any_of<Topology>({{1}, {2}, {3}, {4}, {5}, {6}, {2, 2}, {2, 3}});
  LayerDecompositions decompositions;
  for (const Layer& layer : network.layers)
    decompositions.push_back(layer.kind == LayerKind::Input ? Decomposition{}
                                                            : any_decomposition(layer, topology));
  std::string plan;
  for (int i = 0; i < network.size(); ++i)
    plan += network.layer(i).name + " " + decompositions[static_cast<std::size_t>(i)].text() + "; ";
  RC_LOG(plan);
  Execution execution;
  execution.bucket_bytes = {64 * any_int(1, 8)};
  RC_ASSERT(problem_with(network, decompositions, execution) == "");
}

}  // namespace
}  // namespace stratplan
