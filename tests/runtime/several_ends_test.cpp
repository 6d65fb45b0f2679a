// Networks with several inputs and losses: any decomposition gives the undivided run's numbers and
// sends what is priced, and training lowers the weighted sum of the losses.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "model/network/micro_batches.hpp"
#include "model/partition/block.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/partition/lowering/recompute.hpp"
#include "model/plan/plan.hpp"
#include "runtime/comm/counting.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/exec/losses.hpp"
#include "runtime/exec/trainer.hpp"
#include "runtime/verify/dump.hpp"
#include "runtime/verify/verify.hpp"
#include "support/networks.hpp"
#include "support/priced_traffic.hpp"

namespace stratplan::several_ends_test {
namespace {

/// One step of all ranks.
struct Step {
  std::vector<NamedTensor> gathered;        ///< loss and gradients
  std::vector<std::vector<double>> losses;  ///< by rank, as step_losses() returns them
  std::vector<double> sums;                 ///< by rank: the loss that the trainer reports
};

Step run_step(const Network& network, const LayerDecompositions& layers, const Execution& execution,
              int ranks) {
  Step step;
  step.losses.resize(static_cast<std::size_t>(ranks));
  step.sums.resize(static_cast<std::size_t>(ranks));
  run_loopback(ranks, [&](Communicator& inner) {
    const auto rank = static_cast<std::size_t>(inner.rank());
    CountingCommunicator communicator(inner);
    const auto backend = make_reference_backend();
    const Program program = lower(network, layers, execution, inner.rank(), ranks);
    SyntheticData data(3);
    Executor executor(network, program, *backend, communicator, data,
                      {.learning_rate = 0, .loss_scale = {.initial = 8}});
    initialize_parameters(network, program, 3, executor);
    executor.poison();
    executor.set_loss_scaling({8, 0});
    executor.run(0);
    EXPECT_EQ(communicator.counts(), test::priced_traffic(program)) << "rank " << rank;
    const std::span<const double> losses = step_losses(executor, inner);
    step.losses[rank].assign(losses.begin(), losses.end());
    step.sums[rank] = train(executor, inner, {.warmup = 0, .steps = 1}).losses.at(0);
    auto gathered = gather_iteration(network, program, executor, inner);
    if (rank == 0) step.gathered = std::move(gathered);
  });
  return step;
}

struct Option {
  const char* name;
  void (*set)(const Network&, Execution&);
  std::int64_t micro_batches = 1;
};
const Option options[] = {
    {"unfused", [](const Network&, Execution& e) { e.fuse = false; }},
    {"recomputed, sharding 2",
     [](const Network& network, Execution& e) {
       e.recompute = layers_to_recompute(network);
       e.sharding = 2;
     }},
    {"tracks", [](const Network&, Execution& e) { e.concurrent_streams = true; }},
    {"fp16", [](const Network&, Execution& e) { e.precision.activations = DataType::F16; }},
    {"micro-batches", [](const Network&, Execution&) {}, 2},
};

/// Gives each layer the nearest legal decomposition, for grids in turn.
LayerDecompositions in_turn(const Network& network, const std::vector<ProcessGrid>& grids,
                            std::size_t first) {
  LayerDecompositions layers(network.layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (!network.layers[i].is_data())
      layers[i] =
          nearest_legal(network.layers[i], {grids[(first + i) % grids.size()]}).decomposition;
  return layers;
}

/// Every grid for all layers, and grids in turn from layer to layer.
std::vector<LayerDecompositions> decompositions_of(const Network& network,
                                                   const Topology& topology) {
  const std::vector<ProcessGrid> grids = all_grids(topology, {all_dims.begin(), all_dims.end()});
  std::vector<LayerDecompositions> all;
  for (std::size_t i = 0; i < grids.size(); ++i) {
    all.push_back(in_turn(network, {grids[i]}, 0));
    all.push_back(in_turn(network, grids, i));
  }
  return all;
}

TEST(SeveralEnds, AnyDecompositionGivesTheUndividedNumbers) {
  const Network network = test::several_ends(4);
  for (const Option& option : options) {
    SCOPED_TRACE(option.name);
    const Network of_option = *with_micro_batches(network, option.micro_batches);
    Execution execution;
    option.set(of_option, execution);
    const Step undivided =
        run_step(of_option, LayerDecompositions(network.layers.size()), execution, 1);
    const double tolerance =
        verification_tolerance(of_option, execution.precision) *
        (execution.precision == Precision{} ? 1 : 4);  // 16 bits lose digits of small gradients
    for (const Topology& topology : std::vector<Topology>{{2}, {3}, {4}, {2, 3}}) {
      const std::vector<LayerDecompositions> all = decompositions_of(of_option, topology);
      const std::size_t every = topology.size() > 1 || topology.front() > 3 ? 5 : 1;
      for (std::size_t i = 0; i < all.size(); i += every) {
        const LayerDecompositions& layers = all[i];
        std::string text;
        for (const Decomposition& each : layers) text += each.text() + "; ";
        SCOPED_TRACE(text);
        const int ranks = layers.back().grid.ranks();
        const Step divided = run_step(of_option, layers, execution, ranks);
        const VerificationResult found = compare(undivided.gathered, divided.gathered, tolerance);
        EXPECT_TRUE(found.passed) << found.worst_tensor << " " << found.gradient_difference
                                  << ", loss " << found.loss_difference;
        if (HasFailure()) return;
      }
    }
  }
}

TEST(SeveralEnds, BranchesMayBeFrozen) {
  for (const std::vector<std::string>& frozen :
       std::vector<std::vector<std::string>>{
           {"fc9.*"},                          // one loss's own layer
           {"conv2.*", "fc4.*", "conv6.*"},    // all that the first loss depends on
           {"fc9.*", "conv2.*"},               // all that the second loss depends on
           {"conv2.*", "conv6.*", "fc12.*"}})  // only one of the inputs matters
  {
    SCOPED_TRACE(frozen.front() + " ...");
    Network network = test::several_ends(4);
    freeze(network, frozen);
    const Step undivided = run_step(network, LayerDecompositions(network.layers.size()), {}, 1);
    for (const char* text : {"N2", "H2", "C2", "F2", "N2 H2"}) {
      const LayerDecompositions layers = uniform_plan(network, Decomposition::parse(text)).layers;
      const Step divided = run_step(network, layers, {}, layers.back().grid.ranks());
      const VerificationResult found =
          compare(undivided.gathered, divided.gathered, verification_tolerance(network, {}));
      EXPECT_TRUE(found.passed) << text << ": " << found.worst_tensor << " "
                                << found.gradient_difference;
    }
  }
}

/// The gradients of one loss alone, by name.
std::map<std::string, std::vector<float>> gradients_of(const Network& network) {
  const auto backend = make_reference_backend();
  SyntheticData data(3);
  std::map<std::string, std::vector<float>> gradients;
  for (const NamedTensor& tensor : undivided_iteration(network, {}, *backend, {.seed = 3}, data))
    gradients[tensor.name] = tensor.values;
  return gradients;
}

TEST(SeveralEnds, TheGradientIsTheWeightedSumOfThoseOfTheLosses) {
  const Network all = test::several_ends(4);
  const auto sum = gradients_of(all);
  std::map<std::string, std::vector<double>> expected;
  for (const LayerIndex kept : all.losses()) {
    Network alone = all;  // the other losses count next to nothing
    for (const LayerIndex loss : all.losses())
      alone.layers[static_cast<std::size_t>(loss)].loss_weight = loss == kept ? 1 : 1e-30;
    for (const auto& [name, values] : gradients_of(alone)) {
      std::vector<double>& total = expected[name];
      total.resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i)
        total[i] += all.layer(kept).loss_weight * values[i];
    }
  }
  for (const auto& [name, values] : sum) {
    double largest = 0;
    for (const double value : expected[name]) largest = std::max(largest, std::abs(value));
    EXPECT_GT(largest, 0) << name;
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(values[i], expected[name][i], 1e-5 * largest) << name << " at " << i;
  }
}

TEST(SeveralEnds, TheLossIsTheWeightedSumOfTheLosses) {
  const Network network = test::several_ends(4);
  const Step step = run_step(network, LayerDecompositions(network.layers.size()), {}, 1);
  ASSERT_EQ(step.losses[0].size(), 3);
  const double sum = 0.4 * step.losses[0][0] + 2 * step.losses[0][1] + step.losses[0][2];
  EXPECT_DOUBLE_EQ(step.sums[0], sum);
  EXPECT_NEAR(step.gathered[0].values[0], sum, 1e-6 * sum);
}

/// The losses of a branch may lie on ranks that no other loss is on.
TEST(SeveralEnds, EveryRankKnowsLossesThatLieApart) {
  const Network network = test::several_ends(4);
  const Step whole = run_step(network, LayerDecompositions(network.layers.size()), {}, 1);
  LayerDecompositions layers = uniform_plan(network, Decomposition::parse("N2")).layers;
  layers[static_cast<std::size_t>(network.losses()[1])] = Decomposition::parse("R1 on 2");
  const Step apart = run_step(network, layers, {}, 4);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    for (std::size_t loss = 0; loss < 3; ++loss)
      EXPECT_NEAR(apart.losses[rank][loss], whole.losses[0][loss], 1e-5) << rank << " " << loss;
    EXPECT_NEAR(apart.sums[rank], whole.sums[0], 1e-5) << rank;
  }
}

/// What happens once per step with a scaled loss happens once, and the scale outlives the step.
TEST(SeveralEnds, TheLossIsScaledOnce) {
  const Network network = test::several_ends(4);
  Execution execution;
  execution.precision.activations = DataType::F16;
  const Program program = lower(network, LayerDecompositions(network.layers.size()), execution, 0);
  int adjustments = 0, kept = 0;
  for (const Op& op : program.ops)
    if (const auto* compute = std::get_if<ComputeOp>(&op.body))
      adjustments += compute->kernel.kind == KernelKind::AdjustLossScale;
  EXPECT_EQ(adjustments, 1);
  EXPECT_TRUE(program.buffer(program.loss_scale).persistent);
  for (const Fusion& fusion :
       fuse_all(network, LayerDecompositions(network.layers.size()), execution)) {
    const Program part = lower_fusion(network, fusion, {}, execution, 0);
    kept += part.buffer(part.loss_scale).persistent;
  }
  EXPECT_EQ(kept, 1) << "the parts of a plan are priced one by one";
}

}  // namespace
}  // namespace stratplan::several_ends_test
