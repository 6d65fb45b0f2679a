// Whole networks on some of a job's ranks: the numbers equal an undivided run's, and other ranks do
// nothing.
#include <gtest/gtest.h>

#include "model/network/network.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"
#include "runtime/comm/counting.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/exec/executor.hpp"
#include "runtime/exec/trainer.hpp"
#include "runtime/verify/dump.hpp"
#include "runtime/verify/verify.hpp"
#include "support/networks.hpp"

namespace stratplan::placed_test {
namespace {

const Ranks others(std::vector<int>{3, 1, 4});
constexpr int job = 6;

LayerDecompositions on_others(const Network& network, const char* grid) {
  LayerDecompositions decompositions = uniform_plan(network, Decomposition::parse(grid)).layers;
  for (Decomposition& decomposition : decompositions) decomposition.ranks = others;
  return decompositions;
}

struct Row {
  const char* network;
  std::int64_t batch;
  std::vector<std::int64_t> size;
  const char* grid;
};

void expect_verified(const Row& row) {
  const auto& [name, batch, size, grid] = row;
  const Network network = read_network(name, {.batch = batch, .input_size = size, .training = {}});
  const LayerDecompositions decompositions = on_others(network, grid);
  const Execution execution;
  const TrainingSettings settings{.seed = 5};
  const auto judge = make_reference_backend();
  SyntheticData judged(5);
  const std::vector<NamedTensor> expected =
      undivided_iteration(network, execution, *judge, settings, judged);
  std::array<std::size_t, job> steps{};
  run_loopback(job, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    const Program program = lower(network, decompositions, execution, rank, job);
    steps[static_cast<std::size_t>(rank)] = program.ops.size();
    const auto backend = make_reference_backend();
    SyntheticData data(5);
    Executor executor(network, program, *backend, communicator, data, settings);
    initialize_parameters(network, program, settings.seed, executor);
    executor.run(0);
    EXPECT_EQ(std::isnan(executor.loss()), others.of_grid(rank, 3) < 0);
    const std::vector<NamedTensor> actual =
        gather_iteration(network, program, executor, communicator);
    const VerificationResult found =
        verify_first_step(network, program, execution, settings, *backend, data, executor,
                          communicator, expected, actual);
    EXPECT_TRUE(found.passed) << found.worst_tensor << " " << found.gradient_difference;
  });
  for (int rank = 0; rank < job; ++rank)
    EXPECT_EQ(steps[static_cast<std::size_t>(rank)] > 0, others.of_grid(rank, 3) >= 0) << rank;
}

class PlacedNetworks : public testing::TestWithParam<Row> {};
class PlacedNetworksSweep : public PlacedNetworks {};

TEST_P(PlacedNetworks, Verify) { expect_verified(GetParam()); }
TEST_P(PlacedNetworksSweep, Verify) {
  expect_verified(GetParam());
}  // takes minutes with sanitizers

const Row rows[] = {
    {"resnet50", 3, {32, 32}, "H3"},     {"resnet50", 3, {32, 32}, "N3"},
    {"unet3d", 1, {16, 16, 16}, "W3"},   {"unet3d", 3, {16, 16, 16}, "F3"},
    {"inception_v3", 3, {75, 75}, "C3"}, {"inception_v3", 3, {75, 75}, "H3"},
};
std::string name_of_row(const testing::TestParamInfo<Row>& row) {
  return std::string(row.param.network) + "_" + row.param.grid;
}
INSTANTIATE_TEST_SUITE_P(First, PlacedNetworks, testing::Values(rows[0]), name_of_row);
INSTANTIATE_TEST_SUITE_P(Rows, PlacedNetworksSweep, testing::ValuesIn(rows), name_of_row);

/// The sum of two branches, each on its own ranks, and the layers behind it on a third set of
/// ranks.
TEST(Placed, BranchesOnRanksOfTheirOwn) {
  test::NetworkBuilder net(4);
  const Window same{.kernel = 3, .pad_before = 1, .pad_after = 1};
  const LayerIndex x = net.convolution(net.input({3, 1, 8, 6}), 4, same);
  const LayerIndex left = net.convolution(x, 6, same), right = net.convolution(x, 6, same);
  const Network network =
      net.finish_with_loss(net.fully_connected(net.add({left, net.batch_norm(right)}), 5));
  struct Branches {
    const char *stem, *left, *right, *rest;
  };
  for (const Branches& at : {Branches{"N2 on 0,1", "H2 on 2,3", "W2 on 4,5", "N2 on 1,4"},
                             Branches{"H2 on 5,0", "N2 H2 on 0,1,2,3", "F2 on 4,5", "N1 on 3"},
                             Branches{"N1 on 0", "H3 on 3,1,4", "N2 on 3,0", "R2 N2 on 5,4,3,2"}}) {
    LayerDecompositions decompositions(network.layers.size());
    const std::map<LayerIndex, const char*> heads{{x, at.stem}, {left, at.left}, {right, at.right}};
    const char* wish = at.rest;
    for (LayerIndex i = 1; i < network.size(); ++i) {
      const bool norm = network.layer(i).kind == LayerKind::BatchNorm;
      const auto head = heads.find(norm ? right : i);
      decompositions[static_cast<std::size_t>(i)] =
          nearest_legal(network.layer(i),
                        Decomposition::parse(head == heads.end() ? wish : head->second))
              .decomposition;
    }
    const Execution execution;
    const TrainingSettings settings{.seed = 5};
    const auto judge = make_reference_backend();
    SyntheticData judged(5);
    const std::vector<NamedTensor> expected =
        undivided_iteration(network, execution, *judge, settings, judged);
    run_loopback(job, [&](Communicator& communicator) {
      const Program program = lower(network, decompositions, execution, communicator.rank(), job);
      const auto backend = make_reference_backend();
      SyntheticData data(5);
      Executor executor(network, program, *backend, communicator, data, settings);
      initialize_parameters(network, program, settings.seed, executor);
      executor.run(0);
      const std::vector<NamedTensor> actual =
          gather_iteration(network, program, executor, communicator);
      if (communicator.rank() > 0) return;
      const VerificationResult found = compare(expected, actual, 1e-5);
      EXPECT_TRUE(found.passed) << at.stem << ": " << found.worst_tensor << " "
                                << found.gradient_difference << " " << found.loss_difference;
    });
  }
}

}  // namespace
}  // namespace stratplan::placed_test
