// Convolutions with an interior/boundary split give the same numbers as whole ones: bit for bit on
// the reference backend, within rounding on others, however late messages are.
#include <gtest/gtest.h>

#include <cmath>

#include "model/partition/lowering/lower.hpp"
#include "model/partition/lowering/overlapped_halo.hpp"
#include "model/plan/plan.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/exec/trainer.hpp"
#include "runtime/late_communicator.hpp"
#include "runtime/recording_backend.hpp"
#include "runtime/verify/dump.hpp"
#include "runtime/verify/verify.hpp"
#include "support/networks.hpp"
#include "support/training.hpp"

namespace stratplan::overlapped_halo_test {
namespace {

using test::NetworkBuilder;
using test::Trained;

constexpr Window same{.kernel = 3, .pad_before = 1, .pad_after = 1};

/// A network with bias and ReLU fused, an even kernel, a stride, dilation, groups, and asymmetric
/// padding. Nothing is fused behind the last convolution.
Network planes() {
  NetworkBuilder net(4);
  LayerIndex x = net.relu(net.convolution(net.input({3, 1, 17, 9}), 8, same, true));
  x = net.relu(net.convolution(x, 8, Window{.kernel = 4, .pad_before = 1, .pad_after = 2}, true));
  x = net.batch_norm(
      net.convolution(x, 8, Window{.kernel = 3, .dilation = 2, .pad_before = 2, .pad_after = 2}));
  x = net.convolution(x, 8, same);
  net.in_groups(2);
  x = net.leaky_relu(
      net.convolution(x, 12, Window{.kernel = 3, .stride = 2, .pad_before = 1, .pad_after = 1}));
  return net.finish_with_loss(net.fully_connected(net.convolution(x, 4, same, true), 3));
}

Network volumes() {
  NetworkBuilder net(2);
  LayerIndex x = net.relu(net.convolution(net.input({2, 12, 5, 4}), 4, {same, same, same}, true));
  x = net.relu(net.convolution(x, 6, {same, same, same}, true));
  return net.finish_with_loss(
      net.convolution(x, 4, {Window{.kernel = 5, .pad_before = 2, .pad_after = 2}, same, same}));
}

/// Trains with messages that come as late as possible.
Trained train(const Network& network, const LayerDecompositions& decompositions,
              const Execution& execution, const char* backend_name) {
  Trained outcome;
  run_loopback(decompositions.back().grid.ranks(), [&](Communicator& loopback) {
    test::LateCommunicator communicator(loopback);
    Trained mine = test::train_two_steps(network, decompositions, execution, backend_name,
                                         communicator, communicator);
    if (communicator.rank() == 0) outcome = std::move(mine);
  });
  return outcome;
}

/// Returns the largest relative difference of two tensors of one name, in norm.
double difference(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  double worst = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    std::vector<float> off(a[i].values);
    for (std::size_t k = 0; k < off.size(); ++k) off[k] -= b[i].values[k];
    const double relative = norm(off) / std::max(norm(a[i].values), 1e-6);
    worst = std::isnan(relative) ? relative : std::max(worst, relative);
    if (std::isnan(worst)) break;
  }
  return worst;
}

struct Row {
  const char* what;
  Network network;
  const char* grid;
  std::size_t layers;  // that are split
};
std::vector<Row> rows() {
  return {
      {"2-D", planes(), "H2", 5},
      {"2-D, uneven blocks", planes(), "H3", 5},
      {"2-D, several samples on each of two", planes(), "N2 H2", 5},
      {"2-D, sums over channels land", planes(), "H2 C2", 5},
      {"2-D, sums over channels on all", planes(), "C2 H2 all-reduce", 5},
      {"3-D", volumes(), "D2", 2},
      {"3-D, uneven blocks", volumes(), "D3", 2},
  };
}

TEST(InteriorSplit, AreTheSameNumbersBitForBit) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.what);
    const LayerDecompositions decompositions =
        uniform_plan(row.network, Decomposition::parse(row.grid)).layers;
    Execution execution{.bucket_bytes = {512}, .precision = {}};
    const Trained expected = train(row.network, decompositions, execution, "reference");
    execution.overlapped_halos = layers_with_interior(row.network, decompositions);
    EXPECT_EQ(execution.overlapped_halos.size(), row.layers);
    for (const bool concurrent : {false, true}) {
      execution.concurrent_streams = concurrent;
      const Trained found = train(row.network, decompositions, execution, "reference");
      ASSERT_EQ(expected.gradients.size(), found.gradients.size());
      for (std::size_t i = 0; i < expected.gradients.size(); ++i)
        EXPECT_EQ(expected.gradients[i].values, found.gradients[i].values)
            << expected.gradients[i].name;
      for (std::size_t i = 0; i < expected.parameters.size(); ++i)
        EXPECT_EQ(expected.parameters[i].values, found.parameters[i].values)
            << expected.parameters[i].name;
    }
  }
}

TEST(InteriorSplit, AreTheSameNumbersOnTheCpuBackend) {
  if (!cpu_part().built) GTEST_SKIP() << "built without oneDNN";
  for (const Row& row : rows()) {
    const LayerDecompositions decompositions =
        uniform_plan(row.network, Decomposition::parse(row.grid)).layers;
    Execution execution{.concurrent_streams = true, .precision = {}};
    const Trained expected = train(row.network, decompositions, execution, "cpu");
    execution.overlapped_halos = layers_with_interior(row.network, decompositions);
    const Trained found = train(row.network, decompositions, execution, "cpu");
    EXPECT_LE(difference(expected.parameters, found.parameters),
              verification_tolerance(row.network))
        << row.what;
  }
}

/// Nothing moves messages before somebody waits, so the interior must be computed without them.
TEST(InteriorSplit, TheInteriorIsDoneBeforeTheMessageIsWaitedFor) {
  const Network network = planes();
  const LayerDecompositions decompositions =
      uniform_plan(network, Decomposition::parse("N2 H2")).layers;
  const Execution execution{.concurrent_streams = true,
                            .precision = {},
                            .overlapped_halos = layers_with_interior(network, decompositions)};
  run_loopback(4, [&](Communicator& loopback) {
    test::LateCommunicator communicator(loopback);
    const Program program = lower(network, decompositions, execution, communicator.rank());
    const auto reference = make_reference_backend();
    test::RecordingBackend backend(*reference, program);
    int before = 0, after = 0;
    backend.before_kernel = [&](const Op& op) {
      if (op.phase == Phase::Forward &&
          execution.overlapped_halos.contains(network.layer(op.layer).name) &&
          std::get<ComputeOp>(op.body).kernel.kind == KernelKind::ConvolutionForward)
        ++(communicator.waiting() > 0 ? before : after);
    };
    SyntheticData data(1);
    Executor executor(network, program, backend, communicator, data, {});
    initialize_parameters(network, program, 1, executor);
    executor.run(0);
    EXPECT_GE(before, 8) << "rank " << communicator.rank();
    EXPECT_GE(communicator.polls(), before)
        << "rank " << communicator.rank() << ": once behind each kernel";
    EXPECT_GE(after, 8) << "rank " << communicator.rank();
  });
}

/// A verified step looks at a layer's decisions behind the last piece of its split.
TEST(InteriorSplit, AreVerified) {
  const Network network = planes();
  const LayerDecompositions decompositions =
      uniform_plan(network, Decomposition::parse("H2")).layers;
  const Execution execution{.concurrent_streams = true,
                            .precision = {},
                            .overlapped_halos = layers_with_interior(network, decompositions)};
  const TrainingSettings settings{.seed = 5};
  const auto judge = make_reference_backend();
  SyntheticData judged(5);
  const std::vector<NamedTensor> expected =
      undivided_iteration(network, execution, *judge, settings, judged);
  run_loopback(2, [&](Communicator& communicator) {
    const Program program = lower(network, decompositions, execution, communicator.rank());
    const auto backend = make_reference_backend();
    SyntheticData data(5);
    Executor executor(network, program, *backend, communicator, data, settings);
    initialize_parameters(network, program, settings.seed, executor);
    executor.run(0);
    std::vector<NamedTensor> actual = gather_iteration(network, program, executor, communicator);
    if (communicator.rank() == 0)
      actual.at(1).values.at(0) *= 2;  // so that verification looks at decisions
    const VerificationResult found =
        verify_first_step(network, program, execution, settings, *backend, data, executor,
                          communicator, expected, actual);
    if (communicator.rank() > 0) return;
    EXPECT_FALSE(found.passed);
    EXPECT_EQ(found.turned, 0);
    EXPECT_EQ(found.worst_tensor, expected.at(1).name);
  });
}

}  // namespace
}  // namespace stratplan::overlapped_halo_test
