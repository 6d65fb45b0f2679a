// Fused layers give the same numbers as separate layers: bit for bit on the reference backend,
// within the tolerance on others.
#include <gtest/gtest.h>
#include <algorithm>

#include <set>

#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"
#include "runtime/comm/counting.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/exec/trainer.hpp"
#include "runtime/verify/dump.hpp"
#include "runtime/verify/verify.hpp"
#include "support/networks.hpp"
#include "support/training.hpp"

namespace stratplan::fusion_test {
namespace {

using test::NetworkBuilder;

constexpr Window same{.kernel = 3, .pad_before = 1, .pad_after = 1};

/// Networks with other surroundings of fusions: data on either side, micro-batches, running
/// statistics.
std::vector<Network> networks() {
  std::vector<Network> made{test::residual_network(4, 2), test::activated_contractions(4, true),
                            test::activated_contractions(4, false)};
  NetworkBuilder data(4, 3);
  const LayerIndex x = data.input({3, 1, 5, 4});
  made.push_back(data.finish_with_loss(data.leaky_relu(
      data.add({x, data.batch_norm(data.convolution(data.relu(data.batch_norm(x)), 3, same))}))));
  made.push_back(test::residual_network(4, 2));
  for (Layer& layer : made.back().layers) layer.input[Axis::N] = layer.output[Axis::N] = 2;
  made.back().training.micro_batches = 2;
  made.back().running_momentum = 0.1;
  return made;
}

struct Outcome : test::Trained {
  CommunicationCounts counts;  ///< of rank 0
};

Outcome train(const Network& network, const LayerDecompositions& decompositions,
              const Execution& execution, const char* backend_name) {
  Outcome outcome;
  run_loopback(decompositions.back().grid.ranks(), [&](Communicator& inner) {
    CountingCommunicator communicator(inner);
    test::Trained mine = test::train_two_steps(network, decompositions, execution, backend_name,
                                               communicator, inner);
    if (communicator.rank() == 0) outcome = {std::move(mine), communicator.counts()};
  });
  return outcome;
}

void expect_identical(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].values, b[i].values) << a[i].name;
}

/// A fusion changes when its edges' collectives are issued.
CommunicationCounts sorted(CommunicationCounts counts) {
  std::ranges::sort(counts.collectives);
  return counts;
}

/// Returns the distinct plans with one grid for all layers, on up to four ranks, and some on six.
std::vector<LayerDecompositions> plans(const Network& network) {
  std::set<LayerDecompositions> seen;
  std::vector<LayerDecompositions> found;
  int number = 0;
  for (const Topology& topology : std::vector<Topology>{{1}, {2}, {3}, {4}, {6}})
    for (const ProcessGrid& grid : all_grids(topology, {all_dims.begin(), all_dims.end()}))
      for (const OutputLayout output_layout :
           {OutputLayout::ReduceScatter, OutputLayout::AllReduce}) {
        if (topology.front() > 3 && ++number % 5 != 0) continue;
        LayerDecompositions layers = uniform_plan(network, {grid, output_layout}).layers;
        if (seen.insert(layers).second) found.push_back(std::move(layers));
      }
  return found;
}

TEST(Fusions, GiveTheNumbersOfLayersOneByOne) {
  for (const Network& network : networks()) {
    for (const LayerDecompositions& plan : plans(network)) {
      SCOPED_TRACE(plan.back().text() + ", first layer " + plan[1].text());
      const Outcome together = train(network, plan, {}, "reference"),
                    apart = train(network, plan, {.precision = {}, .fuse = false}, "reference");
      expect_identical(together.gradients, apart.gradients);
      expect_identical(together.parameters, apart.parameters);
      EXPECT_EQ(sorted(together.counts), sorted(apart.counts)) << "fusion moves no data";
      if (HasFailure()) return;
    }
  }
}

TEST(Fusions, GiveTheirNumbersOnTheCpuBackendToo) {
  if (!cpu_part().built) GTEST_SKIP() << cpu_part().description;
  for (const Network& network : networks()) {
    for (const char* grid : {"N1", "N2", "H2", "C2"}) {
      const LayerDecompositions plan = uniform_plan(network, Decomposition::parse(grid)).layers;
      const Outcome together = train(network, plan, {}, "cpu"),
                    apart = train(network, plan, {.precision = {}, .fuse = false}, "cpu");
      const VerificationResult verification =
          compare(apart.gradients, together.gradients, verification_tolerance(network));
      EXPECT_TRUE(verification.passed)
          << grid << ": " << verification.worst_tensor << " " << verification.gradient_difference;
    }
  }
}

}  // namespace
}  // namespace stratplan::fusion_test
