// Training on generated data learns what is in the data, in the same way with every plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/exec/trainer.hpp"
#include "runtime/io/data_set.hpp"
#include "runtime/io/prefetch.hpp"
#include "support/networks.hpp"
#include "support/temporary_folder.hpp"
#include "synthesis/cosmo.hpp"
#include "synthesis/mesh.hpp"

namespace stratplan::learning_test {
namespace {

using test::NetworkBuilder;

std::string mesh_set(const test::TemporaryFolder& folder, std::int64_t samples, std::int64_t size) {
  const auto writer = create_npy(
      folder / "mesh", {samples, {mesh_channels, size, size}, {1, size, size}, DataType::F32});
  for (std::int64_t i = 0; i < samples; ++i) {
    const MeshSample sample = mesh_sample({size, 1}, i);
    writer->add(sample.channels.data(), mesh_targets(sample.tangled, size, 1).data());
  }
  writer->finish();
  return folder / "mesh";
}

std::string cosmo_set(const test::TemporaryFolder& folder, std::int64_t samples,
                      std::int64_t size) {
  const auto writer = create_npy(folder / "cosmo",
                                 {samples, {cosmo_channels, size, size, size}, {4}, DataType::F32});
  for (std::int64_t i = 0; i < samples; ++i) {
    const CosmoSample sample = cosmo_sample({size, 1}, i);
    writer->add(sample.field.data(), sample.cosmology.targets().data());
  }
  writer->finish();
  return folder / "cosmo";
}

const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
const Window half{.kernel = 2, .stride = 2, .dilation = 1, .pad_before = 0, .pad_after = 0};

Network mesh_network(std::int64_t batch, std::int64_t size) {
  NetworkBuilder net(batch);
  const LayerIndex hidden = net.relu(
      net.batch_norm(net.convolution(net.input({mesh_channels, 1, size, size}), 16, same)));
  return net.finish_with_loss(net.sigmoid(
      net.convolution(net.relu(net.convolution(hidden, 16, same, true)), 1, Window{}, true)));
}

Network cosmo_network(std::int64_t batch, std::int64_t size) {
  NetworkBuilder net(batch);
  const std::array<Window, 3> cube{same, same, same}, halves{half, half, half};
  const LayerIndex first = net.pool(
      LayerKind::AveragePool,
      net.leaky_relu(net.convolution(net.input({cosmo_channels, size, size, size}), 8, cube, true)),
      halves);
  const LayerIndex second = net.leaky_relu(net.convolution(first, 16, cube, true));
  return net.finish_with_loss(net.fully_connected(net.global_average_pool(second), 4));
}

std::vector<double> losses(const Network& network, const std::string& set,
                           const char* decomposition, int steps, double learning_rate) {
  const Decomposition uniform = Decomposition::parse(decomposition);
  const LayerDecompositions decompositions = uniform_plan(network, uniform).layers;
  std::vector<double> result;
  run_loopback(uniform.grid.ranks(), [&](Communicator& communicator) {
    const Program program = lower(network, decompositions, {}, communicator.rank());
    const auto backend = make_backend(cpu_part().built ? "cpu" : "reference", 1);
    const std::vector<LoadOp> loads = loads_of(program);
    FileData files(loads, {set, {}, 1, true});
    PrefetchedData data(files, loads);
    Executor executor(network, program, *backend, communicator, data,
                      {.seed = 1, .learning_rate = learning_rate});
    initialize_parameters(network, program, 1, executor);
    const Timing timing =
        train(executor, communicator, {.warmup = 0, .steps = steps, .after_step = {}});
    if (communicator.rank() == 0) result = timing.losses;
  });
  return result;
}

double mean(const std::vector<double>& values, std::size_t begin, std::size_t end) {
  return std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(begin),
                         values.begin() + static_cast<std::ptrdiff_t>(end), 0.0) /
         static_cast<double>(end - begin);
}

TEST(Learning, TangledCellsAreFound) {
  const test::TemporaryFolder folder;
  const auto found = losses(mesh_network(4, 32), mesh_set(folder, 32, 32), "N1", 160, 0.2);
  // A model that knows nothing but the share p of tangled cells has a loss of p (1 - p).
  double tangled = 0;
  for (std::int64_t i = 0; i < 32; ++i)
    for (const std::int32_t cell : mesh_sample({32, 1}, i).tangled)
      tangled += cell / (32.0 * 32 * 32);
  EXPECT_LT(mean(found, 152, 160), 0.5 * tangled * (1 - tangled));
  EXPECT_LT(mean(found, 152, 160), 0.4 * mean(found, 0, 4));
}

TEST(Learning, TheSpectrumIsFound) {
  const test::TemporaryFolder folder;
  const auto found = losses(cosmo_network(8, 16), cosmo_set(folder, 64, 16), "N1", 160, 0.02);
  EXPECT_LT(mean(found, 152, 160), 0.65) << "a model that knows nothing has a loss of 1";
}

TEST(Learning, IsTheSameOnEveryPlan) {
  const test::TemporaryFolder folder;
  const std::string set =
      mesh_set(folder, 7, 16);  // shuffled; an epoch is 3 batches, and leaves out a sample
  const Network network = mesh_network(2, 16);
  const auto expected = losses(network, set, "N1", 8, 0.05);
  for (const char* decomposition : {"N2", "H2", "W3", "C2", "F2", "H2 W2", "R2"}) {
    const auto found = losses(network, set, decomposition, 8, 0.05);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], 1e-4 * expected[i]) << decomposition << ", step " << i;
  }
}

}  // namespace
}  // namespace stratplan::learning_test
