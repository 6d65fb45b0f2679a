// Networks on a globe: padding wraps around along the longitude, and repeats or reflects rows at
// the poles. Numbers are those of the undivided run, and ranks send what is priced.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/partition/lowering/recompute.hpp"
#include "runtime/comm/counting.hpp"
#include "runtime/verify/verify.hpp"
#include "support/parameter_network.hpp"
#include "support/priced_traffic.hpp"
#include "support/training.hpp"

namespace stratplan::circular_test {
namespace {

/// Two circular convolutions, of 3x3 and of 5x3 filters. The first reads the data.
constexpr const char* circular = R"(
    {"name": "p0", "kind": "pad", "padding": 1, "padding_mode": "wrap"},
    {"name": "c0", "kind": "convolution", "filters": 4, "kernel": 3},
    {"name": "r0", "kind": "tanh"},
    {"name": "p1", "kind": "pad", "padding": [2, 1], "padding_mode": "wrap"},
    {"name": "c1", "kind": "convolution", "filters": 5, "kernel": [5, 3], "stride": [1, 2]},
    {"name": "b1", "kind": "batch_norm"})";
/// Longitude is circular, and the poles are reflected; then rows are repeated.
constexpr const char* globe = R"(
    {"name": "c", "kind": "convolution", "filters": 4, "kernel": 1},
    {"name": "p0", "kind": "pad", "padding": [0, 2], "padding_mode": "wrap"},
    {"name": "p1", "kind": "pad", "padding": [[2, 1], 0], "padding_mode": "reflect"},
    {"name": "c0", "kind": "convolution", "filters": 4, "kernel": [4, 5]},
    {"name": "p2", "kind": "pad", "padding": [[0, 3], [1, 0]], "padding_mode": "edge"},
    {"name": "c1", "kind": "convolution", "filters": 3, "kernel": [4, 2]},
    {"name": "p3", "kind": "pad", "padding": [[1, -1], 1], "value": 0.5},
    {"name": "c2", "kind": "convolution", "filters": 3, "kernel": 3})";

LayerDecompositions uniform(const Network& network, const char* grid) {
  return uniform_plan(network, Decomposition::parse(grid)).layers;
}

void expect_undivided_numbers_and_priced_traffic(const char* layers, const char* backend,
                                                 const std::vector<const char*>& grids) {
  const Network network = test::network_of(test::document_of(layers));
  const test::Trained expected =
      test::train_two_steps(network, uniform(network, "N1"), {}, backend);
  for (const char* grid : grids)
    for (const bool recompute : {false, true}) {
      const LayerDecompositions plan = uniform(network, grid);
      Execution execution;
      if (recompute) execution.recompute = layers_to_recompute(network);
      const std::string where = fmt::format("{}, recompute {}", grid, recompute);
      test::Trained found;
      run_loopback(plan.back().grid.ranks(), [&](Communicator& communicator) {
        CountingCommunicator counting(communicator);
        test::Trained mine =
            test::train_two_steps(network, plan, execution, backend, counting, communicator);
        const CommunicationCounts once =
            test::priced_traffic(lower(network, plan, execution, communicator.rank()));
        CommunicationCounts twice = once;
        twice.messages *= 2, twice.message_bytes *= 2;
        twice.received_messages *= 2, twice.received_bytes *= 2;
        twice.collectives.insert(twice.collectives.end(), once.collectives.begin(),
                                 once.collectives.end());
        EXPECT_EQ(counting.counts(), twice) << where;
        EXPECT_GT(once.message_bytes, 0) << where;
        if (communicator.rank() == 0) found = std::move(mine);
      });
      const VerificationResult gradients =
          compare(expected.gradients, found.gradients, verification_tolerance(network));
      EXPECT_TRUE(gradients.passed)
          << where << ": " << gradients.worst_tensor << " " << gradients.gradient_difference;
      for (std::size_t i = 0; i < expected.parameters.size(); ++i)
        for (std::size_t j = 0; j < expected.parameters[i].values.size(); ++j)
          EXPECT_NEAR(expected.parameters[i].values[j], found.parameters[i].values[j], 1e-5)
              << where << ": " << expected.parameters[i].name;
    }
}

TEST(CircularNetwork, EqualsTheUndividedRunAndSendsThePricedBytes) {
  expect_undivided_numbers_and_priced_traffic(
      circular, "reference", {"H2", "W2", "H3", "W3", "H4", "W4", "H2 W2", "N2 W2"});
  expect_undivided_numbers_and_priced_traffic(circular, "cpu", {"W2", "H3", "W4"});
}

TEST(NetworkOnAGlobe, EqualsTheUndividedRunAndSendsThePricedBytes) {
  expect_undivided_numbers_and_priced_traffic(
      globe, "reference", {"H2", "W2", "H3", "W3", "H4", "W4", "H2 W2", "F2 W2"});
  expect_undivided_numbers_and_priced_traffic(globe, "cpu", {"W2", "H3", "W4"});
}

}  // namespace
}  // namespace stratplan::circular_test
