// Overlap of communication with kernels: chosen where the costs say that it pays, and simulated.
#include "planner/overlap.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/cost/op_cost.hpp"
#include "model/partition/lowering/overlapped_halo.hpp"
#include "planner/prediction.hpp"
#include "planner/small_cases.hpp"

namespace stratplan {
namespace {

using test::small_machine;
using test::small_mesh;

/// A machine on which kernels can hide all communication.
MachineProfile hiding_machine(double bandwidth_bytes_per_s, double latency_seconds = 1e-6) {
  MachineProfile machine = small_machine(bandwidth_bytes_per_s, latency_seconds);
  machine.hidden = 1;
  return machine;
}

/// Two convolutions, the second of which has a halo.
Network mesh() { return small_mesh(1, {3, 1, 64, 64}); }

Plan in_halves(const Network& network) {
  Plan plan = uniform_plan(network, Decomposition::parse("H2"));
  plan.execution.concurrent_streams = true;
  return plan;
}

/// Times of the second convolution on the last rank: its halo exchange, and the kernel of its
/// interior.
struct Prices {
  Seconds exchange{}, interior{};
};
Prices prices_of(const Plan& plan, const Network& network, const MachineProfile& machine) {
  const Program program = programs_of(plan, network).back();
  Prices prices;
  for (const Op& op : program.ops) {
    if (op.phase != Phase::Forward || op.layer < 0 ||
        !plan.execution.overlapped_halos.contains(network.layer(op.layer).name))
      continue;
    const auto* compute = std::get_if<ComputeOp>(&op.body);
    if (communicates(op)) prices.exchange = cost_of(op, program, machine).seconds;
    if (compute && compute->kernel.kind == KernelKind::ConvolutionForward &&
        prices.interior.value == 0)
      prices.interior = cost_of(compute->kernel, machine).seconds;
  }
  return prices;
}

TEST(InteriorSplit, TheStepGetsShorterByWhatTheyHide) {
  const Network network = mesh();
  for (const double bandwidth : {1e6, 1e7, 2e7}) {
    const MachineProfile machine = hiding_machine(bandwidth);
    Plan plan = in_halves(network);
    const Prediction at_once = predict(plan, network, machine);
    plan.execution.overlapped_halos = layers_with_interior(network, plan.layers);
    ASSERT_EQ(plan.execution.overlapped_halos.size(), 1u);
    const Prediction is_split = predict(plan, network, machine);
    const Prices prices = prices_of(plan, network, machine);
    const double hidden = std::min(prices.exchange, prices.interior).value;
    EXPECT_NEAR((at_once.step - is_split.step).value, hidden, 0.15 * hidden) << bandwidth;
  }
}

TEST(InteriorSplit, AreChosenWhereTheyPay) {
  const Network network = mesh();
  const std::string& second = network.layer(3).name;
  Plan cut = in_halves(network);
  cut.execution.overlapped_halos = {second};
  MachineProfile measured = hiding_machine(1e7);  // on which the pieces were measured, and are slow
  for (const Program& program : programs_of(cut, network))
    for (const Op& op : program.ops)
      if (const auto* compute = std::get_if<ComputeOp>(&op.body);
          compute && op.layer == 3 && compute->kernel.kind == KernelKind::ConvolutionForward)
        measured.kernels[compute->kernel.key()] = {{1e-2}, {1e-2}, {1e-2}, 9, "test", ""};
  struct Row {
    const char* what;
    MachineProfile machine;
    bool beside, split;
  };
  for (const Row& row : {Row{"slow link", hiding_machine(1e7), true, true},
                         Row{"a link that costs nothing", hiding_machine(1e15, 0), false, false},
                         Row{"slow pieces", measured, true, false},
                         Row{"nothing is hidden", small_machine(1e7), false, false}}) {
    Plan plan = uniform_plan(network, Decomposition::parse("H2"));
    const Prediction prediction = choose_execution(plan, network, row.machine);
    EXPECT_EQ(prediction, predict(plan, network, row.machine)) << row.what;
    EXPECT_EQ(plan.execution.overlapped_halos,
              row.split ? std::set{second} : std::set<std::string>{})
        << row.what;
    EXPECT_TRUE(!row.beside || plan.execution.concurrent_streams) << row.what;
  }
}

/// The pieces' kernels are in a plan's programs, so a profile request asks for them.
TEST(InteriorSplit, TheirKernelsAreThoseThatAreMeasured) {
  const Network network = mesh();
  Plan plan = uniform_plan(network, Decomposition::parse("H2"));
  choose_execution(plan, network, hiding_machine(1e7));
  std::vector<std::int64_t> rows;
  for (const Program& program : programs_of(plan, network))
    for (const Op& op : program.ops)
      if (const auto* compute = std::get_if<ComputeOp>(&op.body);
          compute && op.layer == 3 && compute->kernel.kind == KernelKind::ConvolutionForward)
        rows.push_back(compute->kernel.y[Axis::H]);
  EXPECT_THAT(rows, testing::ElementsAre(31, 1, 31, 1));
}

TEST(InteriorSplit, KeepWithinTheMemoryThatPlansHave) {
  const Network network = mesh();
  const MachineProfile machine = hiding_machine(1e7);
  Plan free = uniform_plan(network, Decomposition::parse("H2")), bounded = free, in_turn = free;
  const Bytes more = choose_execution(free, network, machine).memory;
  const Bytes least = predict(in_turn, network, machine).memory;
  const Prediction prediction = choose_execution(bounded, network, machine, least);
  EXPECT_LE(prediction.memory, least);
  EXPECT_GE(more, least);
}

TEST(ConcurrentStreams, KeepWithinTheMemoryThatPlansHaveOverManyRanks) {
  const Network network = small_mesh(1, {3, 1, 64, 64});
  const MachineProfile machine = hiding_machine(1e7);
  const Plan plan = uniform_plan(network, Decomposition::parse("C4 H8"));
  Plan in_turn = plan, free = plan, bounded = plan;
  const Bytes least = predict(in_turn, network, machine).memory;
  ASSERT_GT(choose_execution(free, network, machine).memory, least) << "this test shows nothing";
  EXPECT_TRUE(free.execution.concurrent_streams);
  EXPECT_LE(choose_execution(bounded, network, machine, least).memory, least);
  EXPECT_FALSE(bounded.execution.concurrent_streams);
}

}  // namespace
}  // namespace stratplan
