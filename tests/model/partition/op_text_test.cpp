#include "model/partition/program/op_text.hpp"

#include <gtest/gtest.h>

#include "support/networks.hpp"

namespace stratplan {
namespace {

TEST(OpText, NamesWhatIsDoneForWhichLayerWithWhom) {
  test::NetworkBuilder builder(2);
  const LayerIndex conv = builder.convolution(
      builder.input({3, 1, 8, 8}), 4, test::planar({.kernel = 3, .pad_before = 1, .pad_after = 1}));
  const Network network = builder.finish_with_loss(conv);
  const std::string name = network.layer(conv).name;

  const auto text = [&](LayerIndex layer, Phase phase, const decltype(Op::body)& body) {
    Op op;
    op.layer = layer;
    op.phase = phase;
    op.body = body;
    return to_text(op, network, 1);
  };
  const ComputeOp compute{
      .kernel = {.kind = KernelKind::ConvolutionBackwardData}, .region = {}, .global = {}};
  LoadOp load;
  load.what = LoadOp::What::Labels;
  ExchangeOp exchange;
  exchange.sends.push_back({2, -1, {}});
  exchange.receives = {{0, -1, {}}, {2, -1, {}}};
  CollectiveOp collective;
  collective.group = {0, 1};

  EXPECT_EQ(text(conv, Phase::Backward, compute), "conv_backward_data of " + name + " (backward)");
  EXPECT_EQ(text(0, Phase::Forward, load), "loading labels for " + network.layer(0).name);
  EXPECT_EQ(text(conv, Phase::Forward, exchange),
            "exchange with ranks 0, 2 for " + name + " (forward)");
  EXPECT_EQ(text(-1, Phase::Update, collective), "all_reduce with rank 0 for all layers (update)");
}

}  // namespace
}  // namespace stratplan
