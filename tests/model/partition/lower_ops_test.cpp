// Programs op by op: which ops they have and lack, and that layers and edges add up to the whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/partition/lowering/lower.hpp"
#include "model/partition/lowering/recompute.hpp"
#include "model/partition/transfer.hpp"
#include "support/networks.hpp"
#include "support/program_run.hpp"

namespace stratplan::lower_steps_test {
namespace {

using test::everywhere;
using test::NetworkBuilder;
using test::problem_with;
using test::residual_network;
using test::small_network;

Window same(std::int64_t kernel) {
  return {.kernel = kernel,
          .stride = 1,
          .dilation = 1,
          .pad_before = kernel / 2,
          .pad_after = (kernel - 1) / 2};
}

template <class Body>
std::vector<std::pair<Op, Body>> ops_with(const Program& program) {
  std::vector<std::pair<Op, Body>> found;
  for (const Op& op : program.ops)
    if (const auto* body = std::get_if<Body>(&op.body)) found.emplace_back(op, *body);
  return found;
}

/// Returns the name of an op, empty for copies.
std::string name_of_op(const Op& op) {
  if (const auto* compute = std::get_if<ComputeOp>(&op.body)) {
    const KernelKind kind = compute->kernel.kind;
    return kind == KernelKind::CopyRegion || kind == KernelKind::Fill ? ""
                                                                      : std::string(name_of(kind));
  }
  if (const auto* collective = std::get_if<CollectiveOp>(&op.body))
    return std::string(name_of(collective->op));
  return std::holds_alternative<ExchangeOp>(op.body) ? "exchange" : "load";
}

// The list of ops in the README, without copies.
TEST(LoweredOps, AConvolutionOverChannelsBetweenLayersOverRows) {
  NetworkBuilder net(1);
  const LayerIndex first = net.convolution(net.input({4, 1, 8, 8}), 4, same(3)),
                   second = net.convolution(first, 8, same(3), true);
  const Network network = net.finish_with_loss(second);
  const LayerDecompositions decompositions{
      {}, Decomposition::parse("H2"), Decomposition::parse("C2"), Decomposition::parse("H2")};
  using enum KernelKind;
  const auto name = [](KernelKind kind) { return std::string(name_of(kind)); };
  const std::string scatter(name_of(Collective::ReduceScatter)),
      gather(name_of(Collective::AllGather));
  const std::vector<std::string> expected{"exchange",
                                          name(ConvolutionForward),
                                          scatter,
                                          name(BiasAdd),
                                          name(BiasGradient),
                                          gather,
                                          name(ConvolutionBackwardData),
                                          "exchange",
                                          name(ConvolutionBackwardFilter)};
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<std::string> found;
    for (const Op& op : lower(network, decompositions, {}, rank).ops)
      if (op.layer == second && op.phase != Phase::Update && !name_of_op(op).empty())
        found.push_back(name_of_op(op));
    EXPECT_EQ(found, expected) << "rank " << rank;
  }
}

TEST(LoweredOps, BucketsAreReducedAsSoonAsTheyAreComplete) {
  const Network network = small_network(6, 6);
  for (const std::int64_t bytes : {64, 300, 1000}) {
    Execution execution;
    execution.bucket_bytes = {bytes};
    for (const char* text : {"N3", "N2 H2", "F2 N2", "C2 R2 N2"}) {
      SCOPED_TRACE(std::string(text) + " in pieces of " + std::to_string(bytes));
      const LayerDecompositions decompositions = everywhere(network, Decomposition::parse(text));
      EXPECT_EQ(problem_with(network, decompositions, execution), "");
      const Program program = lower(network, decompositions, execution, 0);
      bool before_the_end = false, reduced = false;
      for (const Op& op : program.ops) {
        const auto* collective = std::get_if<CollectiveOp>(&op.body);
        if (collective &&
            program.buffer(op.writes[0]).tensor_class == TensorClass::ParameterGradient) {
          EXPECT_LE(collective->bytes().value, bytes) << name_of(collective->op);
          reduced = true;
        }
        const auto* compute = std::get_if<ComputeOp>(&op.body);
        if (compute && compute->kernel.kind == KernelKind::ConvolutionBackwardFilter &&
            op.layer == 1)
          before_the_end = reduced;
      }
      EXPECT_TRUE(before_the_end);
    }
  }
}

TEST(LoweredOps, ATensorThatLiesWhereItIsNeededIsNotTouched) {
  NetworkBuilder net(4);
  const LayerIndex conv = net.convolution(net.input({4, 1, 8, 8}), 4, same(3));
  const LayerIndex activated = net.relu(conv);
  const Network network = net.finish_with_loss(activated);
  for (const char* text : {"N2", "H2", "F2 C2", "N2 H2", "R3", "C2 R2", "W2 | N2"}) {
    const Decomposition decomposition = Decomposition::parse(text);
    const Decomposition behind = inherited(network.layer(conv), decomposition);
    for (int rank = 0; rank < decomposition.grid.ranks(); ++rank)
      EXPECT_TRUE(
          lower_edge(network, conv, decomposition, activated, 0, behind, {}, rank).ops.empty())
          << text;
  }
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_TRUE(ops_with<ExchangeOp>(
                    lower(network, everywhere(network, Decomposition::parse("H2")), {}, rank))
                    .empty());  // the load brings the halo along
}

TEST(LoweredOps, TheFirstLayerHasNoBackwardData) {
  NetworkBuilder net(2, 1);
  const LayerIndex x = net.input({4, 1, 8, 8});
  const LayerIndex left = net.convolution(x, 4, same(3)), right = net.relu(net.batch_norm(x));
  const LayerIndex pooled = net.max_pool(x, same(3)), mean = net.leaky_relu(x);
  const Network network =
      net.finish_with_loss(net.convolution(net.add({left, right, pooled, mean}), 4, same(3)));
  for (const char* text : {"N1", "H2", "C2"}) {
    const LayerDecompositions decompositions = everywhere(network, Decomposition::parse(text));
    EXPECT_EQ(problem_with(network, decompositions), "") << text;
    for (const auto& [op, compute] : ops_with<ComputeOp>(lower(network, decompositions, {}, 0))) {
      const LayerIndex producer = op.layer < 0 || network.layer(op.layer).inputs.empty()
                                      ? -1
                                      : network.layer(op.layer).inputs[0];
      if (producer != x) continue;
      using enum KernelKind;
      for (const KernelKind kind :
           {ConvolutionBackwardData, BatchNormBackward, MaxPoolBackward, PointwiseBackward})
        EXPECT_NE(compute.kernel.kind, kind) << text;
    }
  }
}

TEST(LoweredOps, TagsAreDistinctPerEdgeAndDirection) {
  const Network network = small_network(6, 6);
  const LayerDecompositions decompositions = everywhere(network, Decomposition::parse("H3"));
  std::map<int, std::tuple<LayerIndex, LayerIndex, Phase>> edges;
  for (int rank = 0; rank < 3; ++rank) {
    for (const auto& [op, exchange] :
         ops_with<ExchangeOp>(lower(network, decompositions, {}, rank))) {
      ASSERT_GE(op.producer, 0);
      const auto& inputs = network.layer(op.layer).inputs;
      EXPECT_EQ(std::count(inputs.begin(), inputs.end(), op.producer), 1);
      const std::tuple edge{op.producer, op.layer, op.phase};
      EXPECT_EQ(edges.try_emplace(exchange.tag, edge).first->second, edge)
          << "tag " << exchange.tag;
    }
  }
  EXPECT_GE(edges.size(), 4U);
}

/// All that costs time: kernels, bytes per message, elements per collective over each group. Sums
/// of several consumers' gradients and updates are left out, since their extents depend on which
/// parameters share a group.
struct Work {
  std::multiset<Kernel> kernels;
  std::multiset<std::tuple<bool, int, std::int64_t>> messages;  // sent?, peer, bytes
  std::map<std::tuple<Collective, std::vector<int>, DataType>, std::int64_t> collectives;
  friend bool operator==(const Work&, const Work&) = default;

  void add(const Program& program) {
    for (const Op& op : program.ops) {
      if (const auto* compute = std::get_if<ComputeOp>(&op.body)) {
        const bool sum = compute->kernel.kind == KernelKind::Add && op.phase == Phase::Backward;
        if (!sum && compute->kernel.kind != KernelKind::SgdMomentum)
          kernels.insert(compute->kernel);
      }
      if (const auto* exchange = std::get_if<ExchangeOp>(&op.body)) {
        for (const Message& message : exchange->sends)
          messages.emplace(true, message.peer, message.bytes.value);
        for (const Message& message : exchange->receives)
          messages.emplace(false, message.peer, message.bytes.value);
      }
      if (const auto* collective = std::get_if<CollectiveOp>(&op.body))
        collectives[{collective->op, collective->group, collective->type}] += collective->count;
    }
  }
};

Work work_of_parts(const Network& network, const LayerDecompositions& decompositions,
                   const Execution& execution, int rank) {
  const auto of = [&](LayerIndex layer) { return decompositions[static_cast<std::size_t>(layer)]; };
  Work work;
  for (const Fusion& fusion : fuse_all(network, decompositions, execution)) {
    work.add(lower_fusion(network, fusion, of(fusion.head), execution, rank));
    const std::vector<LayerIndex> layers = fusion.layers();
    for (const LayerIndex layer : layers) {
      for (std::size_t input = 0; input < network.layer(layer).inputs.size(); ++input) {
        const LayerIndex producer = network.layer(layer).inputs[input];
        const bool inside = std::count(layers.begin(), layers.end(), producer) > 0;
        if (inside || network.layer(producer).kind == LayerKind::Input) continue;
        work.add(
            lower_edge(network, producer, of(producer), layer, input, of(layer), execution, rank));
      }
    }
  }
  return work;
}

TEST(LoweredOps, LayersAndEdgesAddUpToTheWhole) {
  const std::set<std::string> nothing;
  for (const Network& network : {small_network(6, 4), residual_network(6, 4)}) {
    std::set<std::string> everything;  // all layers that can be recomputed
    for (LayerIndex layer = 0; layer < network.size(); ++layer)
      if (!check_recompute(network, layer)) everything.insert(network.layer(layer).name);
    for (const char* text :
         {"N1", "N2", "H3", "C2", "F2 C2", "C2 F2 all-reduce", "N2 H2", "H2 R2", "N3 | F2", "N5"}) {
      for (const auto& [fuses, names] :
           {std::pair(true, nothing), {false, nothing}, {true, everything}, {false, everything}}) {
        const Execution execution{.precision = {}, .fuse = fuses, .recompute = names};
        const LayerDecompositions decompositions = everywhere(network, Decomposition::parse(text));
        for (int rank = 0; rank < decompositions.back().grid.ranks(); ++rank) {
          Work whole_iteration;
          whole_iteration.add(lower(network, decompositions, execution, rank));
          const Work parts = work_of_parts(network, decompositions, execution, rank);
          EXPECT_TRUE(parts.kernels == whole_iteration.kernels) << text << " rank " << rank;
          EXPECT_TRUE(parts.messages == whole_iteration.messages) << text << " rank " << rank;
          EXPECT_TRUE(parts.collectives == whole_iteration.collectives) << text << " rank " << rank;
        }
      }
    }
  }
}

TEST(LoweredOps, MessagesAreThoseOfSummarize) {
  NetworkBuilder net(4);
  const LayerIndex first = net.convolution(net.input({4, 1, 9, 8}), 6, same(3));
  const LayerIndex second =
      net.convolution(first, 4, Window{.kernel = 4, .stride = 2, .pad_before = 1});
  const Network network = net.finish_with_loss(second);
  const std::vector<std::pair<const char*, const char*>> pairs{
      {"H3", "H3"}, {"H3", "W3"}, {"N2 H2", "C2 F2"}, {"C4", "H2 W2"},
      {"R4", "H4"}, {"H4", "R4"}, {"F5", "R5"}};
  for (const auto& [from, to] : pairs) {
    const Decomposition one = Decomposition::parse(from), other = Decomposition::parse(to);
    const Distribution home = distribute(network.layer(first), one).home;
    const Needed needed = distribute(network.layer(second), other).inputs[0];
    std::map<Phase, Arrivals> received;
    for (int rank = 0; rank < one.grid.ranks(); ++rank) {
      for (const auto& [op, exchange] :
           ops_with<ExchangeOp>(lower_edge(network, first, one, second, 0, other, {}, rank))) {
        for (const Message& message : exchange.receives) {
          received[op.phase].messages += 1;
          received[op.phase].elements += message.bytes.value / 4;
        }
      }
    }
    SCOPED_TRACE(std::string(from) + " -> " + to);
    EXPECT_EQ(received[Phase::Forward].messages, summarize(home, needed).total_messages);
    EXPECT_EQ(received[Phase::Forward].elements, summarize(home, needed).total_elements);
    EXPECT_EQ(received[Phase::Backward].messages, summarize_adjoint(home, needed).total_messages);
    EXPECT_EQ(received[Phase::Backward].elements, summarize_adjoint(home, needed).total_elements);
  }
}

TEST(LoweredOps, PhasesFollowOneAnother) {
  const Network network = small_network(6, 6);
  const Program program = lower(network, everywhere(network, Decomposition::parse("N2 H2")), {}, 1);
  for (std::size_t i = 1; i < program.ops.size(); ++i)
    EXPECT_LE(program.ops[i - 1].phase, program.ops[i].phase) << i;
  EXPECT_EQ(program.rank, 1);
  EXPECT_EQ(program.ranks, 4);
}

TEST(LoweredOps, BuffersAreAlignedAndSlicesLieInside) {
  const Network network = small_network(6, 4);
  const Program program = lower(network, everywhere(network, Decomposition::parse("F2 C2")), {}, 3);
  for (const Buffer& buffer : program.buffers) {
    if (buffer.inside < 0) {
      EXPECT_EQ(buffer.offset.value % 64, 0) << buffer.name;
      EXPECT_LE(buffer.offset.value + buffer.bytes().value,
                (buffer.persistent ? program.persistent : program.arena).value)
          << buffer.name;
    } else {
      EXPECT_LE(buffer.offset.value + buffer.bytes().value,
                program.buffer(buffer.inside).bytes().value)
          << buffer.name;
    }
  }
}

}  // namespace
}  // namespace stratplan::lower_steps_test
