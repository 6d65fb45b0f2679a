// The distributions that follow from a decomposition for a layer's tensors, illegal decompositions
// with their reasons, and the decompositions that layers behind inherit.
#include "model/partition/decomposition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "model/partition/transfer.hpp"
#include "support/generators.hpp"
#include "support/networks.hpp"
#include "support/symbolic_values.hpp"

namespace stratplan {
namespace {

using test::any_int;
using test::LayerCase;
using test::single_layer;
using testing::HasSubstr;

// Letters in the tables: B Block, G Gathered, P Partial, R Redundant, x illegal, - no such tensor.
char letter(Role role) { return "BGPR"[static_cast<int>(role)]; }

/// Returns the roles of x, w, the parameters along channels, y as computed, and y after the
/// reduction.
std::string roles(const Layer& layer, const Decomposition& decomposition, Dim dim) {
  if (check(layer, decomposition)) return "xxxxx";
  const LayerDistributions made = distribute(layer, decomposition);
  const auto maybe = [&](const std::optional<Distribution>& tensor) {
    return tensor ? letter(tensor->role(dim)) : '-';
  };
  const char x = letter(made.inputs[0].iteration.role(dim));
  return {x, maybe(made.weights), maybe(made.channels), letter(made.raw.role(dim)),
          letter(made.home.role(dim))};
}

TEST(Decomposition, WhatEachDimensionDoesToEachTensor) {
  struct Case {
    LayerType kind;
    const char* output_layout;
    std::map<char, std::string> roles;  // dimension -> x, w, channels, y as computed, y at home
  };
  const std::string split = "B--BB", repeated = "R--RR", illegal = "xxxxx";
  const std::vector<Case> cases{
      {LayerKind::Convolution,
       "",
       {{'N', "BGGBB"},
        {'F', "GBBBB"},
        {'C', "BBBPB"},
        {'D', "BGGBB"},
        {'H', "BGGBB"},
        {'W', "BGGBB"},
        {'R', "RRRRR"}}},
      {LayerKind::Convolution, " all-reduce", {{'F', "GBBBB"}, {'C', "BBRPR"}, {'H', "BGGBB"}}},
      {LayerKind::TransposedConvolution,
       "",
       {{'N', "BGGBB"},
        {'F', "GBBBB"},
        {'C', "BBBPB"},
        {'D', "BGGBB"},
        {'H', "BGGBB"},
        {'W', "BGGBB"},
        {'R', "RRRRR"}}},
      {LayerKind::TransposedConvolution,
       " all-reduce",
       {{'F', "GBBBB"}, {'C', "BBRPR"}, {'H', "BGGBB"}}},
      {LayerKind::FullyConnected,
       "",
       {{'N', "BGGBB"},
        {'F', "GBBBB"},
        {'C', "BBBPB"},
        {'D', illegal},
        {'H', illegal},
        {'R', "RRRRR"}}},
      {LayerKind::MaxPool,
       "",
       {{'N', split},
        {'F', split},
        {'C', split},
        {'D', split},
        {'H', split},
        {'W', split},
        {'R', repeated}}},
      {LayerKind::AveragePool,
       "",
       {{'N', split},
        {'F', split},
        {'C', split},
        {'D', split},
        {'H', split},
        {'W', split},
        {'R', repeated}}},
      {LayerKind::GlobalAveragePool,
       "",
       {{'N', split},
        {'F', split},
        {'C', split},
        {'D', "B--PR"},
        {'H', "B--PR"},
        {'W', "B--PR"},
        {'R', repeated}}},
      {LayerKind::BatchNorm,
       "",
       {{'N', "B-GBB"},
        {'F', "B-BBB"},
        {'C', "B-BBB"},
        {'D', "B-GBB"},
        {'H', "B-GBB"},
        {'W', "B-GBB"},
        {'R', "R-RRR"}}},
      {PointwiseFunction::Relu,
       "",
       {{'N', split},
        {'F', split},
        {'C', split},
        {'D', split},
        {'H', split},
        {'W', split},
        {'R', repeated}}},
      {PointwiseFunction::LeakyRelu, "", {{'C', split}, {'H', split}, {'R', repeated}}},
      {PointwiseFunction::Sigmoid, "", {{'C', split}, {'H', split}, {'R', repeated}}},
      {LayerKind::Dropout, "", {{'C', split}, {'H', split}, {'R', repeated}}},
      {LayerKind::Add,
       "",
       {{'N', split},
        {'F', split},
        {'C', split},
        {'D', split},
        {'H', split},
        {'W', split},
        {'R', repeated}}},
      {LayerKind::Concat,
       "",
       {{'N', split},
        {'F', split},
        {'C', split},
        {'D', split},
        {'H', split},
        {'W', split},
        {'R', repeated}}},
      {LayerKind::Pad,
       "",
       {{'N', split},
        {'F', split},
        {'C', split},
        {'D', split},
        {'H', split},
        {'W', split},
        {'R', repeated}}},
      {LayerKind::Upsample,
       "",
       {{'N', split},
        {'F', split},
        {'C', split},
        {'D', split},
        {'H', split},
        {'W', split},
        {'R', repeated}}},
      {LayerKind::Reduce,  // over C and W
       "",
       {{'N', split},
        {'F', "B--PR"},
        {'C', "B--PR"},
        {'D', split},
        {'H', split},
        {'W', "B--PR"},
        {'R', repeated}}},
      {LayerKind::ChannelShuffle,
       "",
       {{'N', split}, {'F', illegal}, {'C', illegal}, {'H', split}, {'R', repeated}}},
      {LayerKind::DepthToSpace,
       "",
       {{'N', split}, {'F', illegal}, {'C', illegal}, {'W', split}, {'R', repeated}}},
      {LayerKind::SpaceToDepth,
       "",
       {{'N', split}, {'F', illegal}, {'C', illegal}, {'H', split}, {'R', repeated}}},
      {LayerKind::SoftmaxCrossEntropy,
       "",
       {{'N', split},
        {'F', illegal},
        {'C', illegal},
        {'D', split},
        {'H', split},
        {'W', split},
        {'R', repeated}}},
      {LayerKind::ElementwiseLoss,
       "",
       {{'N', split},
        {'F', split},
        {'C', split},
        {'D', split},
        {'H', split},
        {'W', split},
        {'R', repeated}}},
      {PointwiseFunction::Tanh, "", {{'C', split}, {'H', split}, {'R', repeated}}},
      {PointwiseFunction::Elu, "", {{'C', split}, {'H', split}, {'R', repeated}}},
      {PointwiseFunction::Clip, "", {{'C', split}, {'H', split}, {'R', repeated}}},
      {LayerKind::PReLU,
       "",
       {{'N', "B-GBB"},
        {'F', "B-BBB"},
        {'C', "B-BBB"},
        {'D', "B-GBB"},
        {'H', "B-GBB"},
        {'W', "B-GBB"},
        {'R', "R-RRR"}}},
      {LayerKind::LayerNorm,
       "",
       {{'N', "B-GBB"},
        {'F', illegal},
        {'C', illegal},
        {'D', "B-GBB"},
        {'H', "B-GBB"},
        {'W', "B-GBB"},
        {'R', "R-RRR"}}},
      {LayerKind::Softmax,
       "",
       {{'N', split},
        {'F', illegal},
        {'C', illegal},
        {'D', split},
        {'H', split},
        {'W', split},
        {'R', repeated}}},
      {LayerKind::LocalResponseNorm,
       "",
       {{'N', split},
        {'F', illegal},
        {'C', illegal},
        {'D', split},
        {'H', split},
        {'W', split},
        {'R', repeated}}},
      {LayerKind::InstanceNorm,
       "",
       {{'N', "B-GBB"},
        {'F', "B-BBB"},
        {'C', "B-BBB"},
        {'D', "B-GBB"},
        {'H', "B-GBB"},
        {'W', "B-GBB"},
        {'R', "R-RRR"}}},
      {LayerKind::GroupNorm,
       "",
       {{'N', "B-GBB"},
        {'F', "B-BBB"},
        {'C', "B-BBB"},
        {'D', "B-GBB"},
        {'H', "B-GBB"},
        {'W', "B-GBB"},
        {'R', "R-RRR"}}},
      {LayerKind::DiceLoss,
       "",
       {{'N', split},
        {'F', illegal},
        {'C', illegal},
        {'D', split},
        {'H', split},
        {'W', split},
        {'R', repeated}}},
  };
  for (const Case& c : cases) {
    const LayerCase one = single_layer(c.kind, 4, {4, 6, 6, 6});
    for (const auto& [dim, expected] : c.roles) {
      const Decomposition decomposition =
          Decomposition::parse(std::string(1, dim) + "2" + c.output_layout);
      const Dim which = static_cast<Dim>(std::string("NFCDHWR").find(dim));
      EXPECT_EQ(roles(one.layer(), decomposition, which), expected)
          << one.layer().name << " under " << decomposition.text();
    }
  }
}

std::string channels(const std::vector<Interval>& intervals) {
  std::string text;
  for (const Interval& interval : intervals)
    text += (text.empty() ? "" : " ") + std::to_string(interval.begin) + "-" +
            std::to_string(interval.end);
  return text;
}

TEST(Decomposition, ConvolutionOverTwoPartsOfFiltersAndOfChannels) {  // 4 -> 8 channels
  const LayerCase one = single_layer(LayerKind::Convolution, 2, {4, 1, 6, 6}, 8);
  struct Case {
    const char* text;
    std::string x, w_filters, w_channels, raw, home, bias;  // per rank
  };
  const std::vector<Case> cases{
      {"F2 C2", "0-2 2-4 0-2 2-4", "0-4 0-4 4-8 4-8", "0-2 2-4 0-2 2-4", "0-4 0-4 4-8 4-8",
       "0-2 2-4 4-6 6-8", "0-2 2-4 4-6 6-8"},
      {"C2 F2", "0-2 0-2 2-4 2-4", "0-4 4-8 0-4 4-8", "0-2 0-2 2-4 2-4", "0-4 4-8 0-4 4-8",
       "0-2 4-6 2-4 6-8", "0-2 4-6 2-4 6-8"},
      {"F2 C2 all-reduce", "0-2 2-4 0-2 2-4", "0-4 0-4 4-8 4-8", "0-2 2-4 0-2 2-4",
       "0-4 0-4 4-8 4-8", "0-4 0-4 4-8 4-8", "0-4 0-4 4-8 4-8"},
      {"C4", "0-1 1-2 2-3 3-4", "0-8 0-8 0-8 0-8", "0-1 1-2 2-3 3-4", "0-8 0-8 0-8 0-8",
       "0-2 2-4 4-6 6-8", "0-2 2-4 4-6 6-8"},
      {"F3", "0-4 0-4 0-4", "0-3 3-6 6-8", "0-4 0-4 0-4", "0-3 3-6 6-8", "0-3 3-6 6-8",
       "0-3 3-6 6-8"},
  };
  for (const Case& c : cases) {
    const Decomposition decomposition = Decomposition::parse(c.text);
    ASSERT_FALSE(check(one.layer(), decomposition)) << c.text;
    const LayerDistributions made = distribute(one.layer(), decomposition);
    std::vector<Interval> x, filters, w_channels, raw, home, bias;
    for (int rank = 0; rank < decomposition.grid.ranks(); ++rank) {
      x.push_back(made.inputs[0].region(Axis::C, rank));
      filters.push_back(made.weights->owned(Axis::N, rank));
      w_channels.push_back(made.weights->owned(Axis::C, rank));
      raw.push_back(made.raw.owned(Axis::C, rank));
      home.push_back(made.home.owned(Axis::C, rank));
      bias.push_back(made.channels->owned(Axis::C, rank));
    }
    EXPECT_EQ(channels(x), c.x) << c.text;
    EXPECT_EQ(channels(filters), c.w_filters) << c.text;
    EXPECT_EQ(channels(w_channels), c.w_channels) << c.text;
    EXPECT_EQ(channels(raw), c.raw) << c.text;
    EXPECT_EQ(channels(home), c.home) << c.text;
    EXPECT_EQ(channels(bias), c.bias) << c.text;
  }
}

// Concatenates 3 and 5 channels, then the first 3 again.
TEST(Decomposition, OfEachInputOfAConcatenationWhatOverlapsTheBlock) {
  test::NetworkBuilder net(2);
  const LayerIndex three = net.input({3, 1, 4, 4}), five = net.convolution(three, 5, Window{});
  const LayerIndex joined = net.concat({three, five, three});
  const Layer layer = net.finish().layer(joined);
  struct Case {
    const char* text;
    std::string first, second, third;  // per rank
  };
  const std::vector<Case> cases{
      {"C2", "0-3 0-0", "0-3 3-5", "0-0 0-3"},
      {"F3", "0-3 0-0 0-0", "0-1 1-5 0-0", "0-0 0-0 0-3"},
      {"F2 C2", "0-3 0-0 0-0 0-0", "0-0 0-3 3-5 0-0", "0-0 0-0 0-1 1-3"},
      {"H2", "0-3 0-3", "0-5 0-5", "0-3 0-3"},
  };
  for (const Case& c : cases) {
    const Decomposition decomposition = Decomposition::parse(c.text);
    ASSERT_FALSE(check(layer, decomposition)) << c.text;
    const LayerDistributions made = distribute(layer, decomposition);
    std::array<std::vector<Interval>, 3> needed;
    for (int rank = 0; rank < decomposition.grid.ranks(); ++rank)
      for (std::size_t input = 0; input < 3; ++input)
        needed[input].push_back(made.inputs[input].region(Axis::C, rank));
    EXPECT_EQ(channels(needed[0]), c.first) << c.text;
    EXPECT_EQ(channels(needed[1]), c.second) << c.text;
    EXPECT_EQ(channels(needed[2]), c.third) << c.text;
  }
  EXPECT_EQ(check(layer, Decomposition::parse("C12"))->reason,
            "layer concat2: C12 cannot split 11 channels");
}

TEST(Decomposition, ABlockOfNothingButPaddingIsNoWork) {
  test::NetworkBuilder net(2);
  const LayerIndex padded = net.pad(net.input({3, 1, 4, 4}), {{{}, {.pad_before = 4}, {}}});
  const Layer layer = net.finish().layer(padded);
  EXPECT_EQ(check(layer, Decomposition::parse("H2"))->reason,
            "layer pad1: H2 gives a rank output positions that read nothing but padding");
  EXPECT_FALSE(check(layer, Decomposition::parse("W2")));
}

TEST(Decomposition, ShapesOfAllTensors) {
  const LayerCase conv = single_layer(LayerKind::Convolution, 2, {4, 1, 6, 7}, 8);
  const LayerDistributions made = distribute(conv.layer(), Decomposition::parse("H2"));
  EXPECT_EQ(made.inputs[0].tensor, conv.layer().input);
  EXPECT_EQ(made.inputs[0].region(0).shape(), (Shape{{2, 4, 1, 4, 7}}));  // 3 rows and one halo row
  EXPECT_EQ(made.raw.shape, conv.layer().output);
  EXPECT_EQ(made.home.shape, conv.layer().output);
  EXPECT_EQ(made.weights->shape, (Shape{{8, 4, 1, 3, 3}}));
  EXPECT_EQ(made.channels->shape, (Shape{{1, 8, 1, 1, 1}}));

  const LayerCase fc = single_layer(LayerKind::FullyConnected, 2, {4, 1, 6, 7}, 8);
  EXPECT_EQ(iteration_windows(fc.layer())[1].kernel, 6);
  EXPECT_EQ(iteration_windows(fc.layer())[2].kernel, 7);
  const LayerDistributions full = distribute(fc.layer(), Decomposition::parse("C2"));
  EXPECT_EQ(full.weights->shape, (Shape{{8, 4, 1, 6, 7}}));
  EXPECT_EQ(full.inputs[0].region(1), (Region{{{{0, 2}, {2, 4}, {0, 1}, {0, 6}, {0, 7}}}}));
}

TEST(Decomposition, ParametersThatALayerDoesNotHaveAreNotDistributed) {
  EXPECT_FALSE(distribute(single_layer(PointwiseFunction::Relu, 2, {4, 1, 6, 6}).layer(),
                          Decomposition::parse("N2"))
                   .channels);
  EXPECT_FALSE(distribute(single_layer(LayerKind::BatchNorm, 2, {4, 1, 6, 6}).layer(),
                          Decomposition::parse("N2"))
                   .weights);
  test::NetworkBuilder net(2);
  const LayerIndex y = net.convolution(net.input({4, 1, 6, 6}), 4, Window{}, false);
  EXPECT_FALSE(distribute(net.finish().layer(y), Decomposition::parse("N2")).channels);
}

TEST(Decomposition, RejectionsAndTheirReasons) {
  struct Case {
    LayerType kind;
    std::int64_t batch;
    std::array<std::int64_t, 4> extents;  // C D H W
    std::int64_t filters;
    const char* text;
    std::vector<const char*> words;  // empty: legal
  };
  using enum LayerKind;
  const std::vector<Case> cases{
      // kind, batch, C D H W, filters, text, words of the reason
      {Convolution, 2, {4, 1, 14, 14}, 4, "H32", {"H32", "14"}},
      {Convolution, 2, {4, 1, 14, 14}, 4, "H14", {}},
      {Convolution, 2, {4, 1, 14, 14}, 4, "N3", {"N3", "2"}},
      {Convolution, 2, {4, 1, 14, 14}, 4, "F5", {"F5", "4"}},
      {Convolution, 2, {4, 1, 14, 14}, 8, "C5", {"C5", "4"}},
      {Convolution, 2, {4, 1, 14, 14}, 4, "D2", {"D2", "1"}},
      {Convolution,
       2,
       {6, 1, 14, 14},
       4,
       "F2 C3",
       {"C3"}},  // two filters per block cannot be split over three ranks
      {Convolution, 2, {6, 1, 14, 14}, 4, "F2 C3 all-reduce", {}},
      {Convolution, 2, {6, 1, 14, 14}, 6, "F2 C3", {}},
      {Convolution, 2, {6, 1, 14, 14}, 2, "C3", {"C3", "2"}},
      {Convolution, 2, {6, 1, 14, 14}, 2, "C3 all-reduce", {}},
      {FullyConnected, 2, {4, 1, 6, 6}, 8, "H2", {"H2"}},
      {FullyConnected, 2, {4, 1, 6, 6}, 8, "N2 W3", {"W3"}},
      {FullyConnected, 2, {4, 1, 6, 6}, 8, "F4 C2", {}},
      {MaxPool, 2, {3, 1, 6, 6}, 0, "F2 C2", {"3"}},  // blocks of 2 and 1 channels
      {MaxPool, 2, {4, 1, 6, 6}, 0, "F2 C2", {}},
      {BatchNorm, 2, {4, 1, 6, 6}, 0, "C6", {"C6", "4"}},
      {GlobalAveragePool, 2, {4, 1, 7, 7}, 0, "H7", {}},
      {GlobalAveragePool, 2, {4, 1, 7, 7}, 0, "H8", {"H8", "7"}},
      {SoftmaxCrossEntropy, 2, {10, 1, 1, 1}, 0, "C2", {"C2"}},
      {SoftmaxCrossEntropy, 2, {10, 1, 1, 1}, 0, "F2", {"F2"}},
      {SoftmaxCrossEntropy, 2, {10, 1, 1, 1}, 0, "N2 R3", {}},
      {ElementwiseLoss, 2, {10, 1, 1, 1}, 0, "C5", {}},
      {PointwiseFunction::Relu, 2, {4, 1, 6, 6}, 0, "R12", {}},
      {Add, 2, {4, 1, 6, 6}, 0, "H7", {"H7", "6"}},
  };
  for (const Case& c : cases) {
    const LayerCase one = single_layer(c.kind, c.batch, c.extents, c.filters);
    const std::optional<Rejection> rejection = check(one.layer(), Decomposition::parse(c.text));
    SCOPED_TRACE(one.layer().name + " under " + c.text);
    ASSERT_EQ(rejection.has_value(), !c.words.empty())
        << (rejection ? rejection->reason : "accepted");
    if (!rejection) continue;
    EXPECT_THAT(rejection->reason, HasSubstr(one.layer().name));
    for (const char* word : c.words) EXPECT_THAT(rejection->reason, HasSubstr(word));
    EXPECT_EQ(rejection->reason.find('\n'), std::string::npos);
  }
}

TEST(Decomposition, TextAndItsInverse) {
  for (const char* text : {"C2 F2", "C2 F2 all-reduce", "N1", "N4 | H2 W2", "N2 | C2 all-reduce"})
    EXPECT_EQ(Decomposition::parse(text).text(), text);
  EXPECT_EQ(Decomposition::parse("C2 all-reduce").output_layout, OutputLayout::AllReduce);
  EXPECT_EQ(Decomposition::parse("C2").output_layout, OutputLayout::ReduceScatter);
  for (const char* text :
       {"", "all-reduce", "C2 sideways", "C2 all-reduce all-reduce", "all-reduce C2"})
    EXPECT_THROW(Decomposition::parse(text), std::invalid_argument) << text;
}

TEST(Decomposition, InheritedTable) {
  struct Case {
    LayerType kind;
    const char* text;
    const char* inherited;  // grid
  };
  using enum LayerKind;
  const std::vector<Case> cases{
      {Convolution, "N2 H2", "N2 H2"},
      {Convolution, "F2 C2", "F2 C2"},
      {Convolution, "F2 C2 all-reduce", "F2 R2"},
      {Convolution, "C2 H2 all-reduce", "R2 H2"},
      {Convolution, "C2 | C2 all-reduce", "R2 | R2"},
      {MaxPool, "H2 W2", "H2 W2"},
      {MaxPool, "C2 all-reduce", "C2"},
      {GlobalAveragePool, "N2 H2", "N2 R2"},
      {GlobalAveragePool, "H2 C2 W2", "R2 C2 R2"},
      {FullyConnected, "C2 all-reduce", "R2"},
      {PointwiseFunction::Relu, "N2 R2", "N2 R2"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(inherited(single_layer(c.kind, 4, {4, 1, 6, 6}).layer(), Decomposition::parse(c.text))
                  .grid.text(),
              c.inherited)
        << c.text;
}

TEST(Decomposition, NearestLegalTable) {
  struct Case {
    LayerType kind;
    const char* wanted;
    const char* nearest;
  };
  using enum LayerKind;
  const std::vector<Case> cases{
      // on batch 4, 4 channels, 6 x 6 positions, 4 filters
      {Convolution, "H2", "H2"},
      {Convolution, "H8", "R8"},
      {Convolution, "N2 D2", "N2 R2"},
      {FullyConnected, "H4", "R4"},
      {FullyConnected, "N2 H2", "N2 R2"},
      {FullyConnected, "H2 N2", "R2 N2"},
      {FullyConnected, "N2 | H2 W2", "N2 | R4"},
      {SoftmaxCrossEntropy, "C2 N2", "R2 N2"},
      {SoftmaxCrossEntropy, "F4", "R4"},
      {PointwiseFunction::Relu, "R4", "R4"},
  };
  for (const Case& c : cases) {
    const LayerCase one = single_layer(c.kind, 4, {4, 1, 6, 6});
    const Nearest nearest = nearest_legal(one.layer(), Decomposition::parse(c.wanted));
    EXPECT_EQ(nearest.decomposition.text(), c.nearest) << one.layer().name << " " << c.wanted;
    EXPECT_EQ(nearest.reason.empty(), std::string(c.wanted) == c.nearest) << nearest.reason;
    EXPECT_EQ(nearest.reason.find('\n'), std::string::npos);
  }
}

TEST(Decomposition, NearestLegalEndsWhereEvenTheUndividedLayerReadsOnlyPadding) {
  test::NetworkBuilder net(2);
  const Window beside{.kernel = 1,
                      .stride = 3,
                      .dilation = 1,
                      .pad_before = 1,
                      .pad_after = 0};  // reads position -1 of a single row
  const LayerIndex y = net.convolution(net.input({4, 1, 1, 6}), 4, {Window{}, beside, Window{}});
  const Network network = net.finish();
  EXPECT_FALSE(check(network.layer(y), Decomposition::parse("N2")));
  EXPECT_EQ(nearest_legal(network.layer(y), Decomposition::parse("H2")).decomposition.text(), "R2");
}

// The first of 3 positions with stride 2 reads position -2.
TEST(Decomposition, ABlockThatReadsOnlyPaddingIsRejected) {
  test::NetworkBuilder net(2);
  const Window beside{.kernel = 1, .stride = 2, .dilation = 1, .pad_before = 2, .pad_after = 0};
  const LayerIndex y = net.convolution(net.input({4, 1, 4, 4}), 4, {Window{}, beside, Window{}});
  const Network network = net.finish();
  EXPECT_FALSE(check(network.layer(y), Decomposition::parse("N2")));
  ASSERT_TRUE(check(network.layer(y), Decomposition::parse("H3")));
  EXPECT_THAT(check(network.layer(y), Decomposition::parse("H3"))->reason, HasSubstr("padding"));
}

TEST(Decomposition, GroupsAreNotCut) {  // 12 channels
  struct Row {
    std::int64_t groups;
    const char* decomposition;
    const char* reason;  // empty: legal
  };
  const Row table[] = {
      {4, "C2", ""},
      {4, "C4", ""},
      {4, "F2 C2", ""},
      {4, "N2 C2 H2", ""},
      {4, "C3", "C3 cuts groups of 3 channels"},  // 4 + 4 + 4
      {4, "F3 C2", "cuts groups of 3"},
      {12, "C5", ""},
      {1, "H4", ""},
      {1, "F2", "F2 cuts groups of 12 channels"},
  };
  for (const Row& row : table) {
    test::NetworkBuilder net(4);
    const LayerIndex y = net.group_norm(net.input({12, 1, 6, 6}), row.groups);
    const auto rejection = check(net.finish().layer(y), Decomposition::parse(row.decomposition));
    EXPECT_EQ(rejection.has_value(), *row.reason != 0)
        << row.groups << " groups under " << row.decomposition;
    EXPECT_THAT(rejection.value_or(Rejection{}).reason, HasSubstr(row.reason));
  }
}

// ---------------------------------------------------------------- properties over all kinds

struct Drawn {
  LayerCase one;
  Decomposition decomposition;
  const Layer& layer() const { return one.layer(); }
};

Drawn any_layer_and_decomposition() {
  const LayerType type = test::computing_types[static_cast<std::size_t>(
      any_int(0, static_cast<int>(test::computing_types.size()) - 1))];
  const std::array<std::int64_t, 4> extents{any_int(2, 9), any_int(0, 1) == 1 ? any_int(2, 4) : 1,
                                            any_int(2, 9), any_int(2, 9)};
  std::vector<Dim> dims;
  while (dims.size() < 3) dims.push_back(static_cast<Dim>(any_int(0, dim_count - 1)));
  const ProcessGrid grid = test::any_grid(test::any_topology(), dims);
  return {single_layer(type, any_int(1, 6), extents, any_int(2, 9)),
          {grid, any_int(0, 1) == 1 ? OutputLayout::AllReduce : OutputLayout::ReduceScatter}};
}

/// Returns how often each element of a tensor is held.
std::vector<int> copies(const Distribution& tensor) {
  std::vector<int> held(static_cast<std::size_t>(tensor.shape.elements()), 0);
  for (int rank = 0; rank < tensor.grid.ranks(); ++rank)
    test::for_each_element(tensor.owned(rank), [&](const test::Element& element) {
      ++held[test::position_in(whole(tensor.shape), element)];
    });
  return held;
}
int product_of(const Distribution& tensor, std::vector<Role> roles) {
  int product = 1;
  for (const Role role : roles)
    for (const Dim dim : tensor.dims_with(role)) product *= tensor.grid.parts(dim);
  return product;
}

RC_GTEST_PROP(Decomposition, LegalOnesGiveEveryRankItsShareOfEveryTensor, ()) {
  const Drawn drawn = any_layer_and_decomposition();
  RC_PRE(!check(drawn.layer(), drawn.decomposition));
  const LayerDistributions made = distribute(drawn.layer(), drawn.decomposition);
  RC_ASSERT(made.home.dims_with(Role::Partial).empty());
  RC_ASSERT(made.home.dims_with(Role::Gathered).empty());
  std::vector<const Distribution*> tensors{&made.raw, &made.home};
  if (made.weights) tensors.push_back(&*made.weights);
  if (made.channels) tensors.push_back(&*made.channels);
  for (const Distribution* tensor : tensors) {
    RC_ASSERT(tensor->grid.ranks() == drawn.decomposition.grid.ranks());
    for (int rank = 0; rank < tensor->grid.ranks(); ++rank) RC_ASSERT(!tensor->owned(rank).empty());
    const int expected = product_of(*tensor, {Role::Gathered, Role::Partial, Role::Redundant});
    for (const int held : copies(*tensor)) RC_ASSERT(held == expected);
  }
  RC_ASSERT(made.inputs.size() == drawn.layer().inputs.size());
}

// Each rejection has a cause that follows from the definitions.
RC_GTEST_PROP(Decomposition, IllegalOnesLeaveSomeRankWithoutWork, ()) {
  const Drawn drawn = any_layer_and_decomposition();
  const Layer& layer = drawn.layer();
  const ProcessGrid& grid = drawn.decomposition.grid;
  const auto too_many = [&](std::int64_t extent, Dim dim) { return grid.parts(dim) > extent; };
  const bool contraction = is_contraction(layer.kind),
             spatial = layer.kind != LayerKind::FullyConnected;
  const auto split_extent = [&](Axis axis) {
    return (layer.reduces(axis) ? layer.input : layer.output)[axis];
  };
  bool cause = too_many(layer.output[Axis::N], Dim::N);
  for (const auto& [axis, dim] : {std::pair{Axis::D, Dim::D}, {Axis::H, Dim::H}, {Axis::W, Dim::W}})
    cause = cause || (spatial ? too_many(split_extent(axis), dim) : grid.parts(dim) > 1);
  if (contraction) cause = cause || too_many(layer.input[Axis::C], Dim::C);
  if (joins_channels(layer.kind)) cause = cause || grid.parts(Dim::C) * grid.parts(Dim::F) > 1;
  const bool blocks_of_blocks =
      !contraction || drawn.decomposition.output_layout == OutputLayout::ReduceScatter;
  const std::int64_t outputs = split_extent(Axis::C), smallest_block = outputs / grid.parts(Dim::F);
  cause = cause || smallest_block < 1 || (blocks_of_blocks && smallest_block < grid.parts(Dim::C));
  if (layer.kind == LayerKind::GroupNorm && !cause)
    for (int rank = 0; rank < grid.ranks(); ++rank)
      cause = cause || distribute(layer, drawn.decomposition).home.owned(Axis::C, rank).size() %
                               (layer.input[Axis::C] / layer.groups()) !=
                           0;
  if (spatial && !cause)
    for (const auto& [axis, dim] :
         {std::pair{Axis::D, Dim::D}, {Axis::H, Dim::H}, {Axis::W, Dim::W}})
      for (int rank = 0; rank < grid.ranks(); ++rank)  // positions that read only padding
        cause = cause ||
                (grid.parts(dim) > 1 &&
                 distribute(layer, drawn.decomposition).inputs.front().region(axis, rank).empty());
  RC_ASSERT(check(layer, drawn.decomposition).has_value() == cause);
}

RC_GTEST_PROP(Decomposition, NearestLegalIsLegalAndKeepsEveryRanksOtherIndices, ()) {
  const Drawn drawn = any_layer_and_decomposition();
  const Nearest nearest = nearest_legal(drawn.layer(), drawn.decomposition);
  const bool legal = !check(drawn.layer(), drawn.decomposition);
  RC_ASSERT(!check(drawn.layer(), nearest.decomposition));
  RC_ASSERT(nearest.reason.empty() == legal);
  if (legal) RC_ASSERT(nearest.decomposition == drawn.decomposition);
  RC_ASSERT(nearest.decomposition.grid.ranks() == drawn.decomposition.grid.ranks());
  for (const Dim dim : all_dims) {
    if (dim == Dim::R || nearest.decomposition.grid.parts(dim) == 1) continue;
    for (int rank = 0; rank < drawn.decomposition.grid.ranks(); ++rank)
      RC_ASSERT(nearest.decomposition.grid.index(dim, rank) ==
                drawn.decomposition.grid.index(dim, rank));
  }
}

RC_GTEST_PROP(Decomposition, WhatIsInheritedFindsItsTensorInPlace, ()) {
  const Drawn drawn = any_layer_and_decomposition();
  RC_PRE(!check(drawn.layer(), drawn.decomposition));
  RC_PRE(!is_loss(drawn.layer().kind));
  const Shape& shape = drawn.layer().output;
  const Layer behind{.name = "behind",
                     .kind = LayerKind::Pointwise,
                     .inputs = {drawn.one.index},
                     .input = shape,
                     .output = shape};
  const Decomposition handed_on = inherited(drawn.layer(), drawn.decomposition);
  RC_ASSERT(!check(behind, handed_on));
  const Distribution home = distribute(drawn.layer(), drawn.decomposition).home;
  const Needed needed = distribute(behind, handed_on).inputs[0];
  for (int rank = 0; rank < home.grid.ranks(); ++rank)
    RC_ASSERT(needed.region(rank) == home.owned(rank));
  RC_ASSERT(summarize(home, needed).total_messages == 0);
  RC_ASSERT(summarize_adjoint(home, needed).total_messages == 0);
}

}  // namespace
}  // namespace stratplan
