// Concatenation and padding op by op: which regions are copied or filled, and that an input that a
// block does not hold is not transferred.
#include <gtest/gtest.h>

#include "model/partition/lowering/lower.hpp"
#include "model/partition/transfer.hpp"
#include "support/networks.hpp"

namespace stratplan {
namespace {

using test::NetworkBuilder;

/// Returns "fill", and copies with the channels of source and destination: "0+3>0" puts channels 0
/// to 2 of the input at channel 0 of the output.
std::vector<std::string> own_ops(const Program& program, Phase phase) {
  std::vector<std::string> found;
  for (const Op& op : program.ops) {
    const auto* compute = std::get_if<ComputeOp>(&op.body);
    if (!compute || op.phase != phase) continue;
    const Kernel& kernel = compute->kernel;
    const auto c = static_cast<std::size_t>(Axis::C);
    const auto* copy = std::get_if<CopyAttributes>(&kernel.attributes);
    found.push_back(!copy ? "fill"
                          : std::to_string(copy->from[c]) + "+" +
                                std::to_string(copy->region[Axis::C]) + ">" +
                                std::to_string(copy->to[c]));
  }
  return found;
}

// 3, 5 and 3 channels: the table in the README.
TEST(Placement, AConcatenationCopiesOfEachInputWhatItsBlockHolds) {
  NetworkBuilder net(2);
  const LayerIndex x = net.input({4, 1, 4, 4});
  const LayerIndex joined =
      net.concat({net.convolution(x, 3, Window{}), net.convolution(x, 5, Window{}),
                  net.convolution(x, 3, Window{})});
  const Network network = net.finish_with_loss(joined);
  struct Case {
    const char* grid;
    int rank;
    std::vector<std::string> forward, backward;
  };
  const std::vector<Case> cases{
      {"N2", 0, {"0+3>0", "0+5>3", "0+3>8"}, {"0+3>0", "3+5>0", "8+3>0"}},
      {"C2", 0, {"0+3>0", "0+3>3"}, {"0+3>0", "3+3>0"}},
      {"C2", 1, {"0+2>0", "0+3>2"}, {"0+2>0", "2+3>0"}},
      {"F3", 1, {"0+4>0"}, {"0+4>0"}},
      {"F3", 2, {"0+3>0"}, {"0+3>0"}},
  };
  for (const Case& c : cases) {
    const Program program =
        lower_fusion(network, {joined}, Decomposition::parse(c.grid), {}, c.rank);
    EXPECT_EQ(own_ops(program, Phase::Forward), c.forward) << c.grid << ", rank " << c.rank;
    EXPECT_EQ(own_ops(program, Phase::Backward), c.backward) << c.grid << ", rank " << c.rank;
  }
}

TEST(Placement, NothingMovesForAnInputOfWhichTheBlockHoldsNothing) {
  NetworkBuilder net(2);
  const LayerIndex x = net.input({4, 1, 4, 4});
  const LayerIndex first = net.convolution(x, 4, Window{}),
                   second = net.convolution(x, 4, Window{});
  const LayerIndex joined = net.concat({first, second});
  const Network network = net.finish_with_loss(joined);
  const Decomposition blocks = Decomposition::parse("C2");
  const Distribution home = distribute(network.layer(first), Decomposition::parse("F2")).home;
  const LayerDistributions made = distribute(network.layer(joined), blocks);
  // Rank 0 needs all of the first input, half of which rank 1 owns, and none of the second.
  EXPECT_EQ(enumerate(home, made.inputs[0], 0).receives.size(), 2U);
  EXPECT_TRUE(enumerate(home, made.inputs[0], 1).receives.empty());
  EXPECT_TRUE(enumerate(home, made.inputs[1], 0).receives.empty());
  const std::int64_t half = 2 * 2 * 4 * 4;
  for (const Traffic& traffic : {summarize(home, made.inputs[0]), summarize(home, made.inputs[1]),
                                 summarize_adjoint(home, made.inputs[1])}) {
    EXPECT_EQ(traffic.total_messages, 1);
    EXPECT_EQ(traffic.total_elements, half);
  }
  for (const Op& op :
       lower_edge(network, second, Decomposition::parse("R2"), joined, 1, blocks, {}, 0).ops)
    EXPECT_EQ(op.phase, Phase::Backward)
        << "rank 0 reads nothing, but holds a copy of a tensor that gets a gradient";
}

// 6 rows and two of padding on each side: 10 rows on 5 ranks.
TEST(Placement, PaddingIsFilledWhereABlockHasSome) {
  NetworkBuilder net(1);
  const LayerIndex from = net.convolution(net.input({2, 1, 6, 4}), 2, Window{});
  const LayerIndex padded = net.pad(from, {{{}, {.pad_before = 2, .pad_after = 2}, {}}});
  const Network network = net.finish_with_loss(padded);
  EXPECT_TRUE(check(network.layer(padded), Decomposition::parse("H5")));
  for (int rank = 0; rank < 3; ++rank) {  // blocks of 4, 3 and 3 rows
    const Program program = lower_fusion(network, {padded}, Decomposition::parse("H3"), {}, rank);
    const std::vector<std::string> copied{"0+2>0"}, filled{"fill", "0+2>0"};
    EXPECT_EQ(own_ops(program, Phase::Forward), rank == 1 ? copied : filled) << rank;
    EXPECT_EQ(own_ops(program, Phase::Backward), copied) << rank;
  }
}

}  // namespace
}  // namespace stratplan
