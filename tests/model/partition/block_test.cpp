// Which layers fold into a block, what they inherit, and which decompositions are candidates.
#include "model/partition/block.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model/partition/transfer.hpp"
#include "support/networks.hpp"

namespace stratplan {
namespace {

using test::NetworkBuilder;
using Layers = std::vector<std::vector<LayerIndex>>;

Layers folded(const Network& network) {
  Layers layers;
  for (const Block& block : fold(network)) layers.push_back(block.layers);
  return layers;
}

TEST(Fold, ChainOfConvolutionNormalizationActivation) {
  NetworkBuilder net(2);
  const LayerIndex x = net.input({3, 1, 8, 8});                                    // 0
  const LayerIndex y = net.relu(net.batch_norm(net.convolution(x, 4, Window{})));  // 1 2 3
  const LayerIndex z =
      net.dropout(net.fully_connected(net.max_pool(y, {.kernel = 2, .stride = 2}), 5));  // 4 5 6
  net.cross_entropy(z);                                                                  // 7
  EXPECT_EQ(folded(net.finish()), (Layers{{1, 2, 3}, {4}, {5, 6}, {7}}));
}

TEST(Fold, ResidualAdditionJoinsItsLatestProducer) {
  NetworkBuilder net(2);
  const LayerIndex x = net.input({4, 1, 8, 8});                                 // 0
  const LayerIndex stem = net.relu(net.convolution(x, 4, Window{}));            // 1 2
  const LayerIndex left = net.batch_norm(net.convolution(stem, 4, Window{}));   // 3 4
  const LayerIndex right = net.batch_norm(net.convolution(stem, 4, Window{}));  // 5 6
  const LayerIndex sum = net.relu(net.add({left, right}));                      // 7 8
  net.squared_error(net.add({sum, stem}));                                      // 9 10
  EXPECT_EQ(folded(net.finish()), (Layers{{1, 2}, {3, 4}, {5, 6, 7, 8, 9, 10}}));
}

TEST(Fold, AnOutputWithTwoConsumersEndsItsBlock) {
  NetworkBuilder net(2);
  const LayerIndex x = net.input({4, 1, 8, 8});                      // 0
  const LayerIndex conv = net.convolution(x, 4, Window{});           // 1
  const LayerIndex one = net.relu(conv), other = net.sigmoid(conv);  // 2 3
  net.squared_error(net.add({one, other}));                          // 4 5
  EXPECT_EQ(folded(net.finish()), (Layers{{1}, {2}, {3, 4, 5}}));
}

TEST(Fold, AnAdditionOfATensorToItselfDoesNotJoin) {  // its two inputs are two readers
  NetworkBuilder net(2);
  const LayerIndex conv = net.convolution(net.input({4, 1, 8, 8}), 4, Window{});
  net.squared_error(net.add({conv, conv}));
  EXPECT_EQ(folded(net.finish()), (Layers{{1}, {2, 3}}));
}

TEST(Fold, APointWiseLayerOnAnInputIsARoot) {
  NetworkBuilder net(2);
  net.squared_error(net.convolution(net.relu(net.input({4, 1, 8, 8})), 4, Window{}));
  EXPECT_EQ(folded(net.finish()), (Layers{{1}, {2, 3}}));
}

TEST(Fold, PoolsCarryWhatFollowsThem) {
  NetworkBuilder net(2);
  const LayerIndex pooled = net.relu(net.max_pool(
      net.convolution(net.input({4, 1, 8, 8}), 4, Window{}), {.kernel = 2, .stride = 2}));
  net.squared_error(net.global_average_pool(pooled));
  EXPECT_EQ(folded(net.finish()), (Layers{{1}, {2, 3}, {4, 5}}));
}

TEST(Fold, ShippedNetworks) {
  struct Case {
    const char* name;
    int blocks;
  };
  const std::vector<Case> cases{
      // Every convolution, pool, fully connected layer and cross-entropy is a root. All other
      // layers fold.
      {"resnet50", 53 + 2 + 1 + 1},
      {"resnet18", 20 + 2 + 1 + 1},
      {"alexnet", 5 + 3 + 3 + 1},
      {"vgg16", 13 + 5 + 3 + 1},
  };
  for (const Case& c : cases) {
    const Network network = read_network(c.name);
    const std::vector<Block> blocks = fold(network);
    EXPECT_EQ(static_cast<int>(blocks.size()), c.blocks) << c.name;
  }
}

TEST(Fold, EveryLayerOfAShippedNetworkIsInOneBlockInOrder) {
  for (const char* name : {"tiny", "resnet50", "resnet18", "alexnet", "vgg16", "mesh1k", "mesh128",
                           "conv1024", "cosmoflow128", "hepcnn"}) {
    SCOPED_TRACE(name);
    const Network network = read_network(name);
    std::vector<int> times(static_cast<std::size_t>(network.size()), 0);
    LayerIndex previous_root = -1;
    for (const Block& block : fold(network)) {
      EXPECT_GT(block.root(), previous_root);
      previous_root = block.root();
      EXPECT_TRUE(std::is_sorted(block.layers.begin(), block.layers.end()));
      for (std::size_t i = 0; i < block.layers.size(); ++i) {
        const Layer& layer = network.layer(block.layers[i]);
        ++times[static_cast<std::size_t>(block.layers[i])];
        if (i == 0) continue;
        const LayerIndex latest = *std::max_element(layer.inputs.begin(), layer.inputs.end());
        EXPECT_TRUE(is_point_wise(layer.kind)) << layer.name;
        EXPECT_EQ(latest, block.layers[i - 1]) << layer.name;
        EXPECT_EQ(network.consumers(latest).size(), 1U) << layer.name;
      }
    }
    for (int i = 0; i < network.size(); ++i)
      EXPECT_EQ(times[static_cast<std::size_t>(i)],
                network.layer(i).kind == LayerKind::Input ? 0 : 1)
          << network.layer(i).name;
  }
}

// ---------------------------------------------------------------- inheritance

Network convolution_block(std::int64_t batch, std::int64_t channels, std::int64_t filters,
                          std::int64_t width) {
  NetworkBuilder net(batch);
  const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  net.squared_error(net.relu(
      net.batch_norm(net.convolution(net.input({channels, 1, width, width}), filters, same))));
  return net.finish();
}

TEST(Spread, FoldedLayersFindTheirInputInPlace) {
  const Network network = convolution_block(4, 4, 4, 6);
  const Block block = fold(network).front();
  ASSERT_EQ(block.layers, (std::vector<LayerIndex>{1, 2, 3, 4}));
  for (const char* text :
       {"N2", "C2 F2", "C2 F2 all-reduce", "H2 C2 all-reduce", "R2 W2", "N2 | C2 all-reduce"}) {
    SCOPED_TRACE(text);
    const std::vector<Decomposition> all = spread(network, block, Decomposition::parse(text));
    ASSERT_EQ(all.size(), 4U);
    EXPECT_EQ(all[0], Decomposition::parse(text));
    const int ranks = all[0].grid.ranks();
    for (std::size_t i = 1; i < all.size(); ++i) {
      ASSERT_FALSE(check(network.layer(block.layers[i]), all[i]));
      const Distribution home = distribute(network.layer(block.layers[i - 1]), all[i - 1]).home;
      const Needed needed = distribute(network.layer(block.layers[i]), all[i]).inputs[0];
      EXPECT_EQ(summarize(home, needed).total_messages, 0);
      for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(needed.region(rank), home.owned(rank));
    }
  }
}

TEST(Spread, AllLayersOfANetwork) {
  NetworkBuilder net(2);
  const LayerIndex y =
      net.global_average_pool(net.relu(net.convolution(net.input({4, 1, 6, 6}), 4, Window{})));
  net.cross_entropy(net.fully_connected(y, 4));
  const Network network = net.finish();
  const std::vector<Block> blocks = fold(network);
  ASSERT_EQ(blocks.size(), 4U);
  std::vector<Decomposition> roots;
  for (const char* text : {"C2 all-reduce", "H2", "F2", "N2"})
    roots.push_back(Decomposition::parse(text));
  const LayerDecompositions all = spread_all(network, blocks, roots);
  const std::vector<const char*> expected{"N1", "C2 all-reduce", "R2", "H2", "F2", "N2"};
  for (std::size_t i = 1; i < expected.size(); ++i)
    EXPECT_EQ(all[i].text(), expected[i]) << network.layers[i].name;
}

TEST(CheckBlock, IsTheFirstRejectionAmongItsLayers) {
  const Network network = convolution_block(4, 4, 4, 6);
  const Block block = fold(network).front();
  EXPECT_FALSE(check(network, block, Decomposition::parse("H6")));
  const std::optional<Rejection> rejection = check(network, block, Decomposition::parse("H8"));
  ASSERT_TRUE(rejection);
  EXPECT_EQ(rejection->reason, check(network.layer(1), Decomposition::parse("H8"))->reason);
}

// ---------------------------------------------------------------- candidates

/// Returns whether two decompositions give the same regions and roles on every rank.
bool same_effect(const Layer& layer, const Decomposition& a, const Decomposition& b) {
  const LayerDistributions one = distribute(layer, a), other = distribute(layer, b);
  for (int rank = 0; rank < a.grid.ranks(); ++rank) {
    if (one.home.owned(rank) != other.home.owned(rank) ||
        one.raw.owned(rank) != other.raw.owned(rank))
      return false;
    if (one.inputs[0].region(rank) != other.inputs[0].region(rank)) return false;
    if (one.weights && one.weights->owned(rank) != other.weights->owned(rank)) return false;
  }
  return true;
}

TEST(Candidates, AreLegalDistinctAndContainEveryUniformGrid) {
  NetworkBuilder net(4);
  const LayerIndex conv =
      net.convolution(net.input({6, 1, 7, 7}), 8,
                      {.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1});
  const LayerIndex pooled = net.max_pool(
      net.relu(conv), {.kernel = 2, .stride = 2, .dilation = 1, .pad_before = 0, .pad_after = 1});
  net.cross_entropy(net.fully_connected(net.global_average_pool(pooled), 5));
  const Network network = net.finish();
  for (int ranks = 1; ranks <= 12; ++ranks) {
    for (const Block& block : fold(network)) {
      const Layer& root = network.layer(block.root());
      SCOPED_TRACE(root.name + " on " + std::to_string(ranks) + " ranks");
      const Candidates found = candidates(network, block, {ranks});
      const std::set<Decomposition> distinct(found.legal.begin(), found.legal.end());
      EXPECT_EQ(distinct.size(), found.legal.size());
      for (const Decomposition& candidate : found.legal) {
        EXPECT_EQ(candidate.grid.ranks(), ranks);
        EXPECT_FALSE(check(network, block, candidate)) << candidate.text();
      }
      for (const Rejection& rejection : found.rejected) EXPECT_FALSE(rejection.reason.empty());
      for (const Dim dim : all_dims) {
        const Decomposition uniform{ProcessGrid::uniform(ranks, dim), OutputLayout::ReduceScatter};
        if (check(network, block, uniform)) continue;
        const auto same = [&](const Decomposition& candidate) {
          return same_effect(root, candidate, uniform);
        };
        EXPECT_TRUE(std::any_of(found.legal.begin(), found.legal.end(), same)) << uniform.text();
      }
    }
  }
}

TEST(Candidates, BothOutputLayoutsWhereTheyDiffer) {
  const Network network = convolution_block(2, 4, 4, 4);
  const Candidates found = candidates(network, fold(network).front(), {2});
  std::set<std::string> texts;
  for (const Decomposition& candidate : found.legal) texts.insert(candidate.text());
  EXPECT_EQ(texts, (std::set<std::string>{"N2", "F2", "C2", "C2 all-reduce", "H2", "W2", "R2"}));
}

TEST(Candidates, OverTwoLevels) {
  const Network network = convolution_block(4, 4, 4, 4);
  const Candidates found = candidates(network, fold(network).front(), {2, 2});
  std::set<std::string> texts;
  for (const Decomposition& candidate : found.legal) texts.insert(candidate.text());
  for (const char* text :
       {"N2 | N2", "H2 | W2", "W2 | H2", "C2 | F2", "C2 | F2 all-reduce", "R2 | N2", "H2 | H2"})
    EXPECT_TRUE(texts.contains(text)) << text;
  // Each level goes to one of N F C H W R (D has one row). All are legal here. Those with C have
  // two output layouts: 36 + 11.
  EXPECT_EQ(found.legal.size(), 47U);
}

TEST(Candidates, RanksThatNoSplitAllowsAreLeftWithRepetition) {
  NetworkBuilder net(1);
  net.cross_entropy(net.fully_connected(net.input({3, 1, 1, 1}), 3));
  const Network network = net.finish();
  const Candidates found = candidates(network, fold(network).front(), {5});
  ASSERT_EQ(found.legal.size(), 1U);
  EXPECT_EQ(found.legal[0].text(), "R5");
  EXPECT_FALSE(found.rejected.empty());
}

}  // namespace
}  // namespace stratplan
