// Training with shared, frozen and constant parameters: the numbers, and the ops that are absent.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/partition/lowering/recompute.hpp"
#include "model/partition/shared_parameters.hpp"
#include "runtime/comm/counting.hpp"
#include "runtime/verify/verify.hpp"
#include "support/parameter_network.hpp"
#include "support/priced_traffic.hpp"
#include "support/training.hpp"

namespace stratplan::parameters_test {
namespace {

using test::train_two_steps;

LayerDecompositions uniform(const Network& network, const char* grid) {
  return uniform_plan(network, Decomposition::parse(grid)).layers;
}

void expect_equal(const test::Trained& expected, const test::Trained& found, const Network& network,
                  const std::string& where) {
  const double tolerance = verification_tolerance(network);
  const VerificationResult gradients = compare(expected.gradients, found.gradients, tolerance);
  EXPECT_TRUE(gradients.passed) << where << ": " << gradients.worst_tensor << " "
                                << gradients.gradient_difference;
  for (const auto part : {&test::Trained::parameters, &test::Trained::running})
    for (std::size_t i = 0; i < (expected.*part).size(); ++i) {
      const NamedTensor &a = (expected.*part)[i], &b = (found.*part)[i];
      ASSERT_EQ(a.name, b.name) << where;
      for (std::size_t j = 0; j < a.values.size(); ++j)
        EXPECT_NEAR(a.values[j], b.values[j], 1e-5) << where << ": " << a.name;
    }
}

TEST(ParametersOfAllSorts, AreTheSameOnAnyPlan) {
  const Network network = test::network_of_all_sorts();
  const test::Trained expected = train_two_steps(network, uniform(network, "N1"), {}, "reference");
  for (const char* grid :
       {"N2", "N4", "H2", "H3 W2", "F2", "C2", "R2", "N2 H2", "F2 N2", "C2 H2", "N2 R2", "H2 F2"})
    expect_equal(expected, train_two_steps(network, uniform(network, grid), {}, "reference"),
                 network, grid);
}

/// Layers that share a parameter may repeat work on different ranks.
TEST(ParametersOfAllSorts, MayBeRepeatedByOneLayerAndDividedByAnother) {
  const Network network = test::network_of_all_sorts();
  const test::Trained expected = train_two_steps(network, uniform(network, "N1"), {}, "reference");
  for (const auto& [first, second] : std::vector<std::pair<const char*, const char*>>{
           {"N2 R2", "H4"}, {"N4", "R4"}, {"R4", "H2 W2"}, {"R2 N2", "N2 R2"}}) {
    LayerDecompositions mixed = uniform(network, first);
    for (const char* name : {"c2", "b2", "p"})
      mixed[static_cast<std::size_t>(*network.find(name))] = Decomposition::parse(second);
    ASSERT_FALSE(check_shared(network, mixed));
    for (const int sharding : {0, 2, 3})
      expect_equal(
          expected,
          train_two_steps(network, mixed, {.precision = {}, .sharding = sharding}, "reference"),
          network, fmt::format("{} and {}, sharding {}", first, second, sharding));
  }
}

TEST(ParametersOfAllSorts, AreTheSameWithAnyExecution) {
  for (const std::int64_t micro_batches : {1, 2}) {
    const Network network = test::network_of_all_sorts(
        {.optimizer = OptimizerKind::Adam, .micro_batches = micro_batches});
    const test::Trained expected =
        train_two_steps(network, uniform(network, "N1"), {}, "reference");
    for (const char* grid : {"N2", "H2", "N2 R2"})
      for (const int sharding : {0, 1, 2, 3})
        for (const bool recompute : {false, true}) {
          Execution execution{.bucket_bytes = {700}, .precision = {}, .sharding = sharding};
          if (recompute) execution.recompute = layers_to_recompute(network);
          expect_equal(
              expected, train_two_steps(network, uniform(network, grid), execution, "reference"),
              network, fmt::format("{}, sharding {}, recompute {}", grid, sharding, recompute));
        }
  }
}

/// Heads that read two levels, two branches, and a layer that is repeated three times. All share
/// convolutions with a bias.
const std::vector<std::pair<const char*, const char*>> sharing_networks{{"heads", R"(
      {"name": "l0", "kind": "convolution", "filters": 4, "kernel": 3, "padding": 1},
      {"name": "l1", "kind": "convolution", "filters": 4, "kernel": 3, "padding": 1, "stride": 2},
      {"name": "a0", "kind": "convolution", "filters": 4, "kernel": 3, "padding": 1, "bias": true,
       "input": "l0", "parameters": {"weights": "a", "bias": "ab"}},
      {"name": "p0", "kind": "convolution", "filters": 4, "kernel": 3, "padding": 1, "stride": 2,
       "input": "a0", "parameters": {"weights": "b"}},
      {"name": "a1", "kind": "convolution", "filters": 4, "kernel": 3, "padding": 1, "bias": true,
       "input": "l1", "parameters": {"weights": "a", "bias": "ab"}},
      {"name": "p1", "kind": "convolution", "filters": 4, "kernel": 3, "padding": 1,
       "input": "a1", "parameters": {"weights": "b"}},
      {"name": "all", "kind": "add", "inputs": ["p0", "p1"]})"},
                                                                        {"siamese", R"(
      {"name": "half", "kind": "linear", "factor": 0.5, "input": "x"},
      {"name": "a0", "kind": "convolution", "filters": 4, "kernel": 3, "padding": 1, "bias": true,
       "input": "x", "parameters": {"weights": "a", "bias": "ab"}},
      {"name": "b0", "kind": "convolution", "filters": 4, "kernel": 3, "padding": 1,
       "input": "a0", "parameters": {"weights": "b"}},
      {"name": "a1", "kind": "convolution", "filters": 4, "kernel": 3, "padding": 1, "bias": true,
       "input": "half", "parameters": {"weights": "a", "bias": "ab"}},
      {"name": "b1", "kind": "convolution", "filters": 4, "kernel": 3, "padding": 1,
       "input": "a1", "parameters": {"weights": "b"}},
      {"name": "all", "kind": "concat", "inputs": ["b0", "b1"]})"},
                                                                        {"recursive", R"(
      {"name": "l0", "kind": "convolution", "filters": 4, "kernel": 3, "padding": 1},
      {"name": "a0", "kind": "convolution", "filters": 4, "kernel": 3, "padding": 1, "bias": true,
       "parameters": {"weights": "a", "bias": "ab"}},
      {"name": "a1", "kind": "convolution", "filters": 4, "kernel": 3, "padding": 1, "bias": true,
       "parameters": {"weights": "a", "bias": "ab"}},
      {"name": "a2", "kind": "convolution", "filters": 4, "kernel": 3, "padding": 1, "bias": true,
       "parameters": {"weights": "a", "bias": "ab"}})"}};

TEST(SharedParameters, SendThePricedBytes) {
  for (const auto& [name, layers] : sharing_networks) {
    const Network network = test::network_of(test::document_of(layers));
    const test::Trained expected =
        train_two_steps(network, uniform(network, "N1"), {}, "reference");
    for (const char* grid : {"N2", "H2", "F2", "C2", "F2 C2", "N2 F2", "N2 R2", "F2 R2", "H2 C2"})
      for (const int sharding : {0, 3}) {
        const LayerDecompositions layers_on_grid = uniform(network, grid);
        ASSERT_FALSE(check_shared(network, layers_on_grid));
        const Execution execution{.precision = {}, .sharding = sharding};
        const std::string where = fmt::format("{} on {}, sharding {}", name, grid, sharding);
        test::Trained found;
        run_loopback(layers_on_grid.back().grid.ranks(), [&](Communicator& communicator) {
          CountingCommunicator counting(communicator);
          test::Trained mine = train_two_steps(network, layers_on_grid, execution, "reference",
                                               counting, communicator);
          const CommunicationCounts once =
              test::priced_traffic(lower(network, layers_on_grid, execution, communicator.rank()));
          CommunicationCounts twice = once;
          twice.messages *= 2, twice.message_bytes *= 2;
          twice.received_messages *= 2, twice.received_bytes *= 2;
          twice.collectives.insert(twice.collectives.end(), once.collectives.begin(),
                                   once.collectives.end());
          EXPECT_EQ(counting.counts(), twice) << where;
          if (communicator.rank() == 0) found = std::move(mine);
        });
        expect_equal(expected, found, network, where);
      }
  }
}

TEST(SharedParameters, HaveTheSumOfTheirLayersGradients) {
  const auto document = [](const std::string& of_b) {
    return test::document_of(
        R"({"name": "a", "kind": "convolution", "filters": 3, "kernel": 3, "padding": 1},
           {"name": "t", "kind": "tanh"},
           {"name": "b", "kind": "convolution", "filters": 3, "kernel": 3, "padding": 1)" +
        of_b + "}");
  };
  const Network apart = test::network_of(document("")),
                shared = test::network_of(document(R"(, "parameters": {"weights": "a.weights"})"));
  std::vector<float> sum, found;
  const auto gradient = [](test::Rank& rank, const std::string& name) {
    for (const NamedTensor& tensor : gather_parameters(rank.network, rank.program, rank.executor,
                                                       rank.communicator, ParameterPart::Gradient))
      if (tensor.name == name) return tensor.values;
    return std::vector<float>();
  };
  test::on_ranks(apart, "N1", {}, [&](test::Rank& rank) {
    std::vector<float> values;
    for (const ParameterSlice& slice : rank.program.parameters)
      if (slice.name(apart) == "a.weights")
        values = download_block(rank.program, slice, ParameterPart::Value, rank.executor,
                                rank.communicator);
    for (const ParameterSlice& slice : rank.program.parameters)
      if (slice.name(apart) == "b.weights")
        upload_block(rank.program, slice, ParameterPart::Value, values, rank.executor);
    rank.executor.run(0);
    sum = gradient(rank, "a.weights");
    const std::vector<float> other = gradient(rank, "b.weights");
    ASSERT_EQ(sum.size(), other.size());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
  });
  test::on_ranks(shared, "N1", {}, [&](test::Rank& rank) {
    rank.executor.run(0);
    found = gradient(rank, "a.weights");
  });
  ASSERT_EQ(found.size(), 81U);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], sum[i], 1e-6);
}

TEST(FrozenParameters, HaveNoBackwardWork) {
  const Network network = test::network_of(
      test::document_of(
          R"({"name": "a", "kind": "convolution", "filters": 4, "kernel": 3, "bias": true},
             {"name": "r", "kind": "relu"},
             {"name": "b", "kind": "convolution", "filters": 4, "kernel": 3},
             {"name": "n", "kind": "batch_norm"},
             {"name": "c", "kind": "convolution", "filters": 4, "kernel": 3})"),
      {.freeze = {"a.*", "b.*", "n.*"}});
  for (const char* grid : {"N1", "N2", "H2"}) {
    const Program program = lower(network, uniform(network, grid), {}, 0);
    for (const Op& op : program.ops) {
      if (op.phase != Phase::Backward) continue;
      const std::string& name = network.layer(op.layer).name;
      EXPECT_FALSE(name == "a" || name == "r" || name == "b" || name == "n") << name << grid;
      const auto* compute = std::get_if<ComputeOp>(&op.body);
      EXPECT_FALSE(name == "c" && compute &&
                   compute->kernel.kind == KernelKind::ConvolutionBackwardData);
    }
    for (const ParameterSlice& slice : program.parameters) {
      const bool trained = network.trains(slice.layer, slice.what);
      EXPECT_EQ(slice.gradient >= 0, trained) << slice.name(network);
      EXPECT_EQ(slice.velocity >= 0, trained) << slice.name(network);
    }
  }
}

}  // namespace
}  // namespace stratplan::parameters_test
