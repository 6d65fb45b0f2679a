#include "model/cost/sensitivity.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "model/cost/example_machine.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"
#include "support/networks.hpp"

namespace stratplan::sensitivity_test {
namespace {

constexpr double us = 1e-6;

/// Three convolutions with normalizations, whose splits need halos, sums and redistributions.
Network small_net() {
  test::NetworkBuilder net(4);
  const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  LayerIndex x = net.relu(net.batch_norm(net.convolution(net.input({3, 1, 16, 16}), 8, same)));
  x = net.relu(net.convolution(x, 8, same));
  return net.finish_with_loss(net.convolution(x, 4, same));
}

std::vector<Program> programs_for(const char* decomposition, int ranks, bool concurrent) {
  const Network network = small_net();
  Plan plan = uniform_plan(network, Decomposition::parse(decomposition));
  plan.execution.concurrent_streams = concurrent;
  std::vector<Program> programs;
  for (int rank = 0; rank < ranks; ++rank)
    programs.push_back(lower(network, plan.layers, plan.execution, rank));
  return programs;
}

/// The machine with a measured time for each kernel of the programs: its estimate, made longer by
/// a factor of its own, so that no two paths are equally long.
MachineProfile with_kernels(MachineProfile machine, const std::vector<Program>& programs) {
  for (const Program& program : programs)
    for (const Op& op : program.ops)
      if (const auto* compute = std::get_if<ComputeOp>(&op.body)) {
        const std::string key = compute->kernel.key();
        const double factor = 1 + 1e-3 * static_cast<double>(std::hash<std::string>()(key) % 1000);
        machine.kernels.emplace(
            key, measured(estimate_kernel(compute->kernel, machine.device).value * factor));
      }
  return machine;
}

MachineProfile gpu_machine(double op_seconds) {
  MachineProfile machine = round_machine();
  machine.levels.back().name = "gpu";
  machine.software.op = Seconds{op_seconds};
  machine.hidden = 0.5;
  return machine;
}

struct Case {
  const char* name;
  const char* decomposition;
  int ranks;
  MachineProfile machine;
  bool concurrent;
};

std::vector<Case> cases() {
  MachineProfile busy_host = round_machine();
  busy_host.step_overhead = measured(3 * us);
  MachineProfile reading = round_machine();
  reading.input = InputPipeline{.storage = {.bytes_per_s = 1e6}};
  MachineProfile reading_first = round_machine();
  reading_first.input = InputPipeline{.storage = {.bytes_per_s = 1e6}, .prefetch = 0};
  MachineProfile framework = gpu_machine(0);
  framework.software.step = {50 * us};
  return {
      // name, decomposition, ranks, machine, concurrent streams
      {"one rank", "N1", 1, round_machine(), false},
      {"samples", "N4", 4, round_machine(), false},
      {"rows", "H2", 2, round_machine(), false},
      {"channels", "C2", 2, round_machine(), false},
      {"filters and rows", "F2 H2", 4, round_machine(), false},
      {"host takes turns", "N2", 2, busy_host, false},
      {"host takes turns, beside", "H2", 2, busy_host, true},
      {"sums beside kernels", "N4", 4, gpu_machine(0), true},
      {"halos beside kernels", "H4", 4, gpu_machine(0), true},
      {"bound by its host", "N2", 2, gpu_machine(1), true},
      {"partly bound by its host", "N2", 2, gpu_machine(20 * us), true},
      {"time of no op", "N2", 2, framework, true},
      {"waits for samples", "N2", 2, reading, false},
      {"reads, then computes", "H2", 2, reading_first, false},
  };
}

TEST(CriticalPath, ItsPartsAddUpToTheStep) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto programs = programs_for(c.decomposition, c.ranks, c.concurrent);
    CriticalPath path;
    const double step = simulate(programs, c.machine, &path).total.value;
    EXPECT_EQ(step, simulate(programs, c.machine).total.value);
    double sum = 0;
    for (const PathPart& part : path) {
      EXPECT_GT(part.seconds.value, 0);
      sum += part.seconds.value;
    }
    EXPECT_NEAR(sum, step, 1e-12 * step);
  }
}

TEST(CriticalPath, SaysWhatEachPartIs) {
  using enum PathPart::What;
  MachineProfile machine = round_machine();
  const auto programs = programs_of({{compute_op(fill_of(1000)), all_reduce_op({0, 1}, 250)},
                                     {compute_op(fill_of(4000)), all_reduce_op({0, 1}, 250)}});
  CriticalPath path;
  simulate(programs, machine, &path);
  ASSERT_EQ(path.size(), 2u);
  EXPECT_EQ(path[0].what, Collective);
  EXPECT_EQ(path[1].what, Kernel);
  EXPECT_DOUBLE_EQ(path[1].seconds.value, 4 * us);  // of the rank that arrives last
  EXPECT_EQ(path[1].program, &programs[1]);
  EXPECT_EQ(path[1].op, &programs[1].ops[0]);
}

TEST(CriticalPath, TimesThatVaryLeaveAWait) {
  MachineProfile machine = round_machine();
  const Kernel kernel = fill_of(1000);
  machine.kernels[kernel.key()] = measured(100 * us, 10 * us);
  const std::vector<Op> ops{compute_op(kernel), all_reduce_op({0, 1}, 1)};
  const auto programs = programs_of({ops, ops});
  CriticalPath path;
  simulate(programs, machine, &path);
  ASSERT_EQ(path.size(), 3u);
  EXPECT_EQ(path[1].what, PathPart::What::Waiting);
  EXPECT_NEAR(path[1].seconds.value, 10 * us / std::sqrt(M_PI), 1e-12);
}

/// The share of each kernel is compared with how the simulated step answers to a small change of
/// that kernel's time.
TEST(Sensitivity, SharesAreHowTheStepAnswersToAKernel) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto programs = programs_for(c.decomposition, c.ranks, c.concurrent);
    const MachineProfile machine = with_kernels(c.machine, programs);
    CriticalPath path;
    const double step = simulate(programs, machine, &path).total.value;
    const Sensitivity errors = sensitivity_of(path, machine);
    for (const auto& [key, measurement] : machine.kernels) {
      constexpr double more = 1e-7;
      MachineProfile slower = machine;
      slower.kernels[key] = measured(measurement.median.value * (1 + more));
      const double answer = (simulate(programs, slower).total.value / step - 1) / more;
      const auto found = errors.find({ErrorKind::Kernel, key});
      EXPECT_NEAR(found == errors.end() ? 0 : found->second.share, answer, 1e-5) << key;
    }
  }
}

/// Draws the errors, and takes the percentiles of the step that follows.
TEST(Sensitivity, ARangeHoldsEightyPercentOfDrawnErrors) {
  constexpr int draws = 2000;
  const auto programs = programs_for("F2 H2", 4, false);
  MachineProfile machine = round_machine();
  CriticalPath path;
  const double step = simulate(programs, machine, &path).total.value;
  const Sensitivity errors = sensitivity_of(path, machine);
  const Range range = range_of(step, deviation_of(errors));
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  int within = 0;
  for (int draw = 0; draw < draws; ++draw) {
    // Each part of the path is multiplied by the errors of its own sources.
    std::map<ErrorSource, double> drawn;
    for (const auto& [source, error] : errors) drawn[source] = normal(random) * error.deviation;
    double time = 0;
    for (const PathPart& part : path) {
      double logarithm = 0;
      for (const auto& [source, error] : sensitivity_of({part}, machine))
        logarithm += drawn.at(source);
      time += part.seconds.value * std::exp(logarithm);
    }
    within += is_within(time, range);
  }
  EXPECT_NEAR(within / double(draws), 0.8, 0.03);
}

TEST(Sensitivity, SourcesFollowFromWhatIsKnown) {
  struct Row {
    const char* name;
    MachineProfile machine;
    std::vector<ErrorKind> kinds;  ///< of a step of one kernel and one sum over two ranks
    Tier tier;
  };
  const Kernel kernel = fill_of(4000);
  const auto programs = programs_of({{compute_op(kernel), all_reduce_op({0, 1}, 250)},
                                     {compute_op(kernel), all_reduce_op({0, 1}, 250)}});
  MachineProfile known = round_machine(), table = round_machine(), between = round_machine(),
                 framework;
  known.kernels[kernel.key()] = measured(4 * us);
  table = known;
  table.collectives["all_reduce f32 2"] = {{{Bytes{1000}, measured(2 * us)}}};
  between = known;
  between.collectives["all_reduce f32 2"] = {
      {{Bytes{500}, measured(1 * us)}, {Bytes{2000}, measured(4 * us)}}};
  framework = table;
  framework.software.name = "another";
  using enum ErrorKind;
  const Row rows[] = {
      // name, machine, kinds of errors, tier
      {"rates", round_machine(), {Device, Family, Kernel, Link, Transfer}, Tier::DataSheet},
      {"kernels", known, {Drift, Kernel, Link, Transfer}, Tier::DataSheet},
      {"between sizes", between, {Drift, Kernel, Transfer}, Tier::Interpolated},
      {"all", table, {Drift, Kernel, Transfer}, Tier::Measured},
      {"all, for another software", framework, {Drift, Device, Kernel, Transfer}, Tier::Measured},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    CriticalPath path;
    simulate(programs, row.machine, &path);
    std::vector<ErrorKind> kinds;
    for (const auto& [source, error] : sensitivity_of(path, row.machine))
      kinds.push_back(source.kind);
    EXPECT_EQ(kinds, row.kinds);
    EXPECT_EQ(tier_of(path, row.machine), row.tier);
  }
}

TEST(Sensitivity, AMeasuredKernelBringsItsOwnSpread) {
  MachineProfile machine = round_machine();
  const Kernel kernel = fill_of(1000);
  machine.kernels[kernel.key()] = measured(100 * us, 10 * us);
  const auto programs = programs_of({{compute_op(kernel), compute_op(kernel)}});
  CriticalPath path;
  simulate(programs, machine, &path);
  const Sensitivity errors = sensitivity_of(path, machine);
  EXPECT_NEAR(errors.at({ErrorKind::Kernel, kernel.key()}).deviation, 0.1, 1e-9);
  EXPECT_NEAR(deviation_of(errors), std::hypot(0.1, error_model().drift), 1e-9);
}

TEST(Sensitivity, LittleOfATierDoesNotCount) {
  MachineProfile machine = round_machine();
  const Kernel large = fill_of(100000), small = fill_of(1000);
  machine.kernels[large.key()] = measured(100 * us);
  const auto tier = [&](const Kernel& other) {
    const auto programs = programs_of({{compute_op(large), compute_op(other)}});
    CriticalPath path;
    simulate(programs, machine, &path);
    return tier_of(path, machine);
  };
  EXPECT_EQ(tier(small), Tier::Measured);
  EXPECT_EQ(tier(fill_of(8000)), Tier::DataSheet);
}

}  // namespace
}  // namespace stratplan::sensitivity_test
