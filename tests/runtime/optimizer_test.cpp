// Optimizers and accumulated gradients: the kernels compared with PyTorch's numbers, and whole
// networks with the undivided run.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/kernel_runner.hpp"
#include "runtime/verify/verify.hpp"
#include "support/temporary_folder.hpp"
#include "support/training.hpp"

namespace stratplan {
namespace {

using Floats = std::vector<float>;

// ---------------------------------------------------------------- kernels

/// Two updates of three weights {1, -2, 0.5} by gradients {2, 0.25, -0.125} and {-1, 0.5, 0.25}.
/// Rate 0.1, momentum 0.9, decay 0.01, PyTorch's defaults otherwise. The numbers are torch.optim's.
/// LARS, which torch.optim lacks, was computed from its definition in double.
struct Update {
  KernelKind kind;
  std::size_t states;
  Floats weights;
};

const std::vector<Update> updates{
    {KernelKind::Sgd, 0, {0.898201048F, -2.07097697F, 0.486488014F}},
    {KernelKind::SgdMomentum, 1, {0.717301011F, -2.09167695F, 0.497288018F}},
    {KernelKind::SgdNesterov, 1, {0.644115627F, -2.15344691F, 0.4840267F}},
    {KernelKind::Adam, 2, {0.872827172F, -2.19607949F, 0.561043322F}},
    {KernelKind::AdamW, 2, {0.871467352F, -2.19242024F, 0.562290132F}},
    {KernelKind::Lars, 1, {0.999765663F, -2.00014314F, 0.499975581F}},
};

test::Values squared_norms(Backend& backend, const Floats& weights, const Floats& gradient) {
  const Kernel kernel{
      .kind = KernelKind::SquaredNorms, .x = {{1, 3, 1, 1, 1}}, .y = {{1, 3, 1, 1, 1}}};
  return test::run(backend, kernel, {weights, gradient})[0];
}

void expect_updates(Backend& backend) {
  const Floats gradients[] = {{2, 0.25F, -0.125F}, {-1, 0.5F, 0.25F}};
  for (const Update& update : updates) {
    const Kernel kernel{.kind = update.kind, .x = {{1, 3, 1, 1, 1}}, .y = {{1, 3, 1, 1, 1}}};
    std::vector<test::Values> state(1 + update.states, Floats(3));
    state[0] = Floats{1, -2, 0.5F};
    for (std::int64_t step = 0; step < 2; ++step) {
      const Floats& gradient = gradients[step];
      std::vector<test::Values> reads{state[0], gradient};
      reads.insert(reads.end(), state.begin() + 1, state.end());
      if (update.kind == KernelKind::Lars)
        reads.push_back(squared_norms(backend, test::floats(state[0]), gradient));
      KernelContext context = test::whole_context(kernel);
      const StepNumbers now = test::numbers_of_step(step);
      context.now = &now;
      state = test::run(backend, kernel, reads, context);
    }
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(test::at(state[0], i), update.weights[i], 3e-7)
          << backend.name() << " " << kernel.key() << ", " << i;
  }
}

TEST(Optimizer, UpdatesAreThoseOfPyTorch) {
  expect_updates(*make_reference_backend());
  if (cpu_part().built) expect_updates(*make_cpu_backend(1));
}

TEST(Optimizer, LarsLeavesAFreshTensorItsRate) {
  const Kernel kernel{.kind = KernelKind::Lars, .x = {{1, 1, 1, 1, 1}}, .y = {{1, 1, 1, 1, 1}}};
  const auto updated = test::run(*make_reference_backend(), kernel,
                                 {Floats{0}, Floats{3}, Floats{0}, std::vector<double>{0, 9}});
  EXPECT_FLOAT_EQ(test::floats(updated[0])[0], -0.3F);
}

// ---------------------------------------------------------------- whole networks

/// Batch 8, normalization over pairs, dropout before the end: the plan must count over the whole
/// batch.
constexpr const char* network_text =
    R"({"schema_version": 1, "name": "paired", "batch": 8, "statistics_samples": 2, "layers": [
  {"name": "data", "kind": "input", "channels": 2, "size": [6, 6]},
  {"name": "conv1", "kind": "convolution", "filters": 4, "kernel": 3, "padding": 1},
  {"name": "bn1", "kind": "batch_norm"},
  {"name": "act1", "kind": "sigmoid"},
  {"name": "drop", "kind": "dropout", "probability": 0.25},
  {"name": "conv2", "kind": "convolution", "filters": 4, "kernel": 3, "padding": 1, "bias": true},
  {"name": "gap", "kind": "global_average_pool"},
  {"name": "fc", "kind": "fully_connected", "filters": 3, "bias": true},
  {"name": "loss", "kind": "softmax_cross_entropy"}]})";

Network paired(const Training& training = {}) {
  const test::TemporaryFolder folder;
  return read_network(folder.write("paired.json", network_text),
                      {.batch = {}, .input_size = {}, .training = training});
}

double worst_difference(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t t = 0; t < std::min(a.size(), b.size()); ++t)
    for (std::size_t i = 0; i < a[t].values.size(); ++i)
      worst = std::fmax(worst, std::abs(double{a[t].values[i]} - b[t].values[i]));
  return worst;
}

std::vector<NamedTensor> after_steps(const Network& network, const std::string& grid,
                                     const TrainingSettings& settings, int steps) {
  std::vector<NamedTensor> values;
  test::on_ranks(network, grid, settings, [&](test::Rank& rank) {
    test::train_steps(rank, 0, steps);
    const auto mine = test::parameters(rank);
    if (rank.communicator.rank() == 0) values = mine;
  });
  return values;
}

class EveryOptimizer : public testing::TestWithParam<OptimizerKind> {};

TEST_P(EveryOptimizer, IsTheSameOnEveryGrid) {
  const Network network = paired({.optimizer = GetParam()});
  const TrainingSettings settings{.seed = 3, .weight_decay = 0.01, .trust = 0.1};
  const auto whole = after_steps(network, "N1", settings, 3);
  for (const char* grid :
       {"N2", "H2", "C2", "F2", "C2 all-reduce", "C2 F2", "R2", "H2 R2", "N2 C2", "F2 R2"})
    EXPECT_LT(worst_difference(after_steps(network, grid, settings, 3), whole), 1e-5) << grid;
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryOptimizer,
                         testing::Values(OptimizerKind::Sgd, OptimizerKind::Momentum,
                                         OptimizerKind::Nesterov, OptimizerKind::Adam,
                                         OptimizerKind::AdamW, OptimizerKind::Lars),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

/// In the first step, the gradients do not depend on any group's settings. So each parameter takes
/// the same step as if its group's settings were those of the whole run.
TEST_P(EveryOptimizer, GivesEachGroupItsOwnSettings) {
  Training training{.optimizer = GetParam()};
  const TrainingSettings settings{.seed = 3, .weight_decay = 0.01, .trust = 0.1};
  TrainingSettings of_head = settings, without_decay = settings;
  of_head.learning_rate *= 0.25;
  of_head.weight_decay = 0.5;
  without_decay.weight_decay = 0;
  const auto usual = after_steps(paired(training), "N1", settings, 1),
             head = after_steps(paired(training), "N1", of_head, 1),
             plain = after_steps(paired(training), "N1", without_decay, 1);
  training.groups = {{.parameters = {"fc.*"}, .learning_rate = 0.25, .weight_decay = 0.5},
                     {.parameters = {"norms", "biases"}, .weight_decay = 0}};
  for (const char* grid : {"N1", "N2", "H2", "C2 F2"}) {
    const auto found = after_steps(paired(training), grid, settings, 1);
    ASSERT_EQ(found.size(), usual.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::string& name = found[i].name;
      const auto& wanted = name.starts_with("fc.")     ? head[i]
                           : name.ends_with("weights") ? usual[i]
                                                       : plain[i];
      EXPECT_LT(worst_difference({found[i]}, {wanted}), 1e-6) << name << " " << grid;
    }
  }
}

TEST_P(EveryOptimizer, TrainsGroupsTheSameOnEveryGrid) {
  const Training training{
      .optimizer = GetParam(),
      .groups = {{.parameters = {"conv1.weights"}, .learning_rate = 2, .trust = false},
                 {.parameters = {"norms", "biases"}, .learning_rate = 0.5, .weight_decay = 0}}};
  const TrainingSettings settings{.seed = 3, .weight_decay = 0.01, .trust = 0.1};
  const auto whole = after_steps(paired(training), "N1", settings, 3);
  EXPECT_GT(worst_difference(whole, after_steps(paired({GetParam()}), "N1", settings, 3)), 1e-5);
  for (const char* grid : {"N2", "H2", "C2", "F2 R2", "N2 C2"})
    EXPECT_LT(worst_difference(after_steps(paired(training), grid, settings, 3), whole), 1e-5)
        << grid;
}

TEST(Optimizer, LarsKeepsThePlainRateOfAGroupWithoutTrust) {
  const TrainingSettings settings{.seed = 3, .weight_decay = 0.01, .trust = 0.1};
  const Training momentum{.optimizer = OptimizerKind::Momentum};
  Training lars{.optimizer = OptimizerKind::Lars};
  lars.groups = {{.parameters = {"*"}, .trust = false}};
  EXPECT_EQ(worst_difference(after_steps(paired(lars), "N2", settings, 2),
                             after_steps(paired(momentum), "N2", settings, 2)),
            0);
}

TEST(Optimizer, FollowsTheSchedule) {  // no parameter changes at a rate of zero
  TrainingSettings settings{.seed = 3, .learning_rate = 0.1};
  settings.schedule = {.kind = ScheduleKind::Step, .warmup_steps = 1, .step_size = 2, .gamma = 0};
  const auto before = after_steps(paired(), "N1", settings, 2),
             at_end = after_steps(paired(), "N1", settings, 3),
             after = after_steps(paired(), "N1", settings, 5);
  EXPECT_GT(worst_difference(before, at_end), 0);
  EXPECT_EQ(worst_difference(at_end, after), 0);
}

std::vector<NamedTensor> first_iteration(const Network& network, const std::string& grid) {
  std::vector<NamedTensor> tensors;
  test::on_ranks(network, grid, {}, [&](test::Rank& rank) {
    rank.executor.run(0);
    const auto mine =
        gather_iteration(rank.network, rank.program, rank.executor, rank.communicator);
    if (rank.communicator.rank() == 0) tensors = mine;
  });
  return tensors;
}

TEST(Accumulation, GradientsAreThoseOfTheUndividedBatch) {
  const auto whole = first_iteration(paired(), "N1");
  for (const std::int64_t parts : {1, 2, 4})
    for (const char* grid : {"N1", "N2", "H2", "C2 F2", "W2 R2", "N2 F2"}) {
      const Network network = paired({.micro_batches = parts});
      const VerificationResult verification =
          compare(whole, first_iteration(network, grid), verification_tolerance(network));
      EXPECT_TRUE(verification.passed)
          << parts << " parts on " << grid << ": loss " << verification.loss_difference << ", "
          << verification.worst_tensor << " " << verification.gradient_difference << ", tolerance "
          << verification.tolerance;
    }
}

TEST(Accumulation, TrainsAlike) {
  const TrainingSettings settings{.seed = 3, .learning_rate = 0.05};
  EXPECT_LT(worst_difference(after_steps(paired({.micro_batches = 4}), "N2 H2", settings, 4),
                             after_steps(paired(), "N1", settings, 4)),
            1e-5);
}

TEST(Accumulation, ReusesTheMemoryOfActivations) {
  const auto arena = [](std::int64_t parts) {
    return lower(paired({.micro_batches = parts}), LayerDecompositions(9), Execution{}, 0).arena;
  };
  EXPECT_LT(arena(2), arena(1));
  EXPECT_LT(arena(4), arena(2));
}

}  // namespace
}  // namespace stratplan
