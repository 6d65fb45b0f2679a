// Grouped and transposed convolutions: each rank's part of their tensors, and illegal splits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/partition/block.hpp"
#include "support/networks.hpp"

namespace stratplan {
namespace {

using test::LayerCase;
using test::NetworkBuilder;
using testing::HasSubstr;
using enum LayerKind;

/// A layer with 6 input channels in `groups` groups, `filters` filters and a bias.
LayerCase grouped(LayerKind kind, std::int64_t groups, std::int64_t filters) {
  NetworkBuilder net(4);
  const LayerIndex x = net.input({6, 1, 6, 6});
  const LayerIndex y = kind == Convolution ? net.convolution(x, filters, Window{}, true)
                                           : net.transposed_convolution(x, filters, {}, {}, true);
  net.in_groups(groups);
  return {net.finish_with_loss(y), y};
}

TEST(Groups, AreSplitByFiltersAndByChannelsAlike) {
  for (const LayerKind kind : {Convolution, TransposedConvolution})
    for (const char* text : {"F2", "C2", "C2 all-reduce"}) {
      const Layer layer = grouped(kind, 2, 8).layer();
      const Decomposition decomposition = Decomposition::parse(text);
      const LayerDistributions made = distribute(layer, decomposition);
      for (const Distribution& tensor :
           {made.inputs[0].iteration, *made.weights, *made.channels, made.raw, made.home})
        EXPECT_EQ(tensor.dims_with(Role::Block).size(), 1u) << layer.name << " under " << text;
      EXPECT_EQ(inherited(layer, decomposition).grid, decomposition.grid);
    }
}

TEST(Groups, StayWholeOnEachRank) {
  struct Case {
    LayerKind kind;
    std::int64_t groups, filters;
    const char* decomposition;
    Interval x, weights_outer, weights_inner, y;  // on the last rank
  };
  const std::vector<Case> cases{
      // kind               groups filters           x       weights         y
      {Convolution, 2, 8, "F2", {3, 6}, {4, 8}, {0, 3}, {4, 8}},
      {Convolution, 2, 8, "C2", {3, 6}, {4, 8}, {0, 3}, {4, 8}},
      {Convolution, 6, 6, "F2 C3", {5, 6}, {5, 6}, {0, 1}, {5, 6}},
      {Convolution, 6, 6, "F4", {5, 6}, {5, 6}, {0, 1}, {5, 6}},  // blocks of 2, 2, 1 and 1 groups
      {Convolution,
       3,
       3,
       "F2",
       {4, 6},
       {2, 3},
       {0, 2},
       {2, 3}},  // blocks of 2 and 1 groups of two channels
      {Convolution, 6, 12, "F3", {4, 6}, {8, 12}, {0, 1}, {8, 12}},
      {TransposedConvolution, 2, 8, "F2", {3, 6}, {3, 6}, {0, 4}, {4, 8}},
      {TransposedConvolution, 3, 3, "C2", {4, 6}, {4, 6}, {0, 1}, {2, 3}},
  };
  for (const Case& c : cases) {
    const LayerCase one = grouped(c.kind, c.groups, c.filters);
    const Decomposition decomposition = Decomposition::parse(c.decomposition);
    SCOPED_TRACE(one.layer().name + " of " + std::to_string(c.groups) + " groups under " +
                 c.decomposition);
    ASSERT_FALSE(check(one.layer(), decomposition));
    const LayerDistributions made = distribute(one.layer(), decomposition);
    const int last = decomposition.grid.ranks() - 1;
    EXPECT_EQ(made.inputs[0].region(Axis::C, last), c.x);
    EXPECT_EQ(made.weights->owned(Axis::N, last), c.weights_outer);
    EXPECT_EQ(made.weights->owned(Axis::C, last), c.weights_inner);
    EXPECT_EQ(made.home.owned(Axis::C, last), c.y);
    EXPECT_EQ(made.channels->owned(Axis::C, last), c.y);
  }
}

TEST(Groups, AreNeverCut) {
  struct Case {
    LayerKind kind;
    std::int64_t groups, filters;
    const char* decomposition;
    const char* reason;
    const char* nearest;
  };
  const std::vector<Case> cases{
      {Convolution, 2, 8, "F4", "F4 cannot split 2 groups", "R4"},
      {Convolution, 2, 8, "F2 C2", "C2 cannot split 2 groups", "F2 R2"},
      {Convolution, 3, 6, "F2", "F2 cuts 3 groups of 2 filters", "R2"},
      {TransposedConvolution, 3, 6, "C2 N2", "C2 cuts 3 groups of 2 filters", "R2 N2"},
  };
  for (const Case& c : cases) {
    const LayerCase one = grouped(c.kind, c.groups, c.filters);
    const auto rejection = check(one.layer(), Decomposition::parse(c.decomposition));
    ASSERT_TRUE(rejection) << c.decomposition;
    EXPECT_THAT(rejection->reason, HasSubstr(c.reason));
    EXPECT_EQ(nearest_legal(one.layer(), Decomposition::parse(c.decomposition)).decomposition,
              Decomposition::parse(c.nearest));
  }
}

TEST(Groups, HaveNoSumToLand) {  // so no decomposition is a candidate twice
  const LayerCase one = grouped(Convolution, 6, 6);
  for (const Decomposition& candidate :
       candidates(one.network, fold(one.network).front(), {4}).legal)
    EXPECT_EQ(candidate.output_layout, OutputLayout::ReduceScatter);
}

TEST(TransposedConvolution, WeightsHaveInputChannelsOutside) {  // "F2 C2", 6 channels to 8
  const LayerCase one = grouped(TransposedConvolution, 1, 8);
  const LayerDistributions made = distribute(one.layer(), Decomposition::parse("F2 C2"));
  EXPECT_EQ(made.inputs[0].region(Axis::C, 1), (Interval{3, 6}));
  EXPECT_EQ(made.weights->owned(Axis::N, 1), (Interval{3, 6}));
  EXPECT_EQ(made.weights->owned(Axis::C, 1), (Interval{0, 4}));
  EXPECT_EQ(made.raw.owned(Axis::C, 1), (Interval{0, 4}));
  EXPECT_EQ(made.home.owned(Axis::C, 1), (Interval{2, 4}));
}

TEST(TransposedConvolution, ABlockOfOutputPaddingAloneIsRejected) {
  NetworkBuilder net(1);
  const Window window{.kernel = 3, .stride = 2};
  const LayerIndex y =
      net.transposed_convolution(net.input({1, 1, 2, 2}), 1, test::planar(window),
                                 {0, 1, 1});  // y is 6 wide; its last position reads nothing
  const Network network = net.finish_with_loss(y);
  EXPECT_FALSE(check(network.layer(y), Decomposition::parse("H3")));
  EXPECT_THAT(check(network.layer(y), Decomposition::parse("H6"))->reason, HasSubstr("padding"));
}

}  // namespace
}  // namespace stratplan
