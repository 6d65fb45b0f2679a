#include "model/cost/op_cost.hpp"

#include <gtest/gtest.h>

#include "model/cost/collective_cost.hpp"
#include "model/cost/example_machine.hpp"

namespace stratplan {
namespace {

Kernel convolution() {
  Kernel kernel{.kind = KernelKind::ConvolutionForward};
  kernel.x[Axis::C] = kernel.y[Axis::C] = 100;
  kernel.x[Axis::H] = kernel.y[Axis::H] = 1000;
  return kernel;
}

TEST(KernelCost, IsMeasuredOrElseARoofline) {
  MachineProfile machine = round_machine();
  const Kernel kernel = convolution();
  // 2 * 100 * 100 * 1000 = 2e7 flops at 1e9/s. Moving 8.4e5 bytes takes less time.
  EXPECT_DOUBLE_EQ(cost_of(kernel, machine).seconds.value, 0.02);
  EXPECT_EQ(cost_of(kernel, machine).tier, Tier::DataSheet);
  machine.device.bytes_per_s = 1e6;
  machine.device.launch = {0.5};
  EXPECT_DOUBLE_EQ(cost_of(kernel, machine).seconds.value, 0.5 + 0.84);
  machine.kernels[kernel.key()] = measured(0.03, 0.001);
  EXPECT_DOUBLE_EQ(cost_of(kernel, machine).seconds.value, 0.03);
  EXPECT_NEAR(cost_of(kernel, machine).deviation.value, 0.001, 1e-6);
  EXPECT_EQ(cost_of(kernel, machine).tier, Tier::Measured);
}

TEST(KernelCost, FollowsTheDriftOfTheMachineIfItSpeaksForAllKernels) {
  struct Row {
    const char* what;
    std::optional<Drift> drift;
    double then;  ///< the drift while the kernel was measured
    double measured, estimated;
  };
  const Row rows[] = {
      {"no drift", {}, 1, 0.03, 0.02},
      {"measured later, at another pace", {}, 1.5, 0.02, 0.02},
      {"slower", Drift{.ratio = 1.5}, 1, 0.045, 0.03},
      {"slower, as when it was measured", Drift{.ratio = 1.5}, 1.5, 0.03, 0.03},
      {"uneven", Drift{.ratio = 1.5, .even = false}, 1, 0.03, 0.02},
  };
  const Kernel kernel = convolution();
  for (const Row& row : rows) {
    MachineProfile machine = round_machine();
    machine.drift = row.drift;
    EXPECT_DOUBLE_EQ(cost_of(kernel, machine).seconds.value, row.estimated) << row.what;
    Measurement& known = machine.kernels[kernel.key()] = measured(0.03, 0.003);
    known.drift = row.then;
    EXPECT_DOUBLE_EQ(cost_of(kernel, machine).seconds.value, row.measured) << row.what;
    EXPECT_NEAR(cost_of(kernel, machine).deviation.value, row.measured / 10, 1e-9) << row.what;
  }
}

TEST(KernelCost, LoadingIsACopy) {
  LoadOp load;
  load.region = whole({{2, 3, 1, 5, 7}});
  EXPECT_EQ(load_kernel(load).bytes().value, 2 * 2 * 3 * 5 * 7 * 4);
  load.what = LoadOp::What::Labels;
  EXPECT_EQ(load_kernel(load).type, DataType::I32);
  EXPECT_EQ(load_kernel(load).bytes().value, 2 * 2 * 5 * 7 * 4);
}

TEST(LoadCost, IsACopyUnlessTheDeviceHasMemoryOfItsOwn) {
  LoadOp load;
  load.region = whole({{2, 3, 1, 5, 7}});
  MachineProfile machine = round_machine();
  EXPECT_EQ(cost_of(load, machine).seconds, cost_of(load_kernel(load), machine).seconds);
  machine.device.host_bytes_per_s = 1e6;
  machine.device.launch = {1e-3};
  EXPECT_DOUBLE_EQ(cost_of(load, machine).seconds.value, 1e-3 + 2 * 3 * 5 * 7 * 4 / 1e6);
  machine.software.name = "pytorch-ddp";  // uploads a batch while it computes the one before
  EXPECT_EQ(cost_of(load, machine).seconds, cost_of(load_kernel(load), machine).seconds);
}

TEST(ExchangeCost, TakesTheSymmetricPartFromBothWaysAndTheRestFromOneWay) {
  MachineProfile machine = round_machine();
  machine.one_way.points = {{{100}, measured(1)}, {{200}, measured(2)}};
  machine.both_ways.points = {{{100}, measured(1.5)}, {{200}, measured(3.5)}};
  struct Case {
    std::int64_t out, in;
    double seconds;
    Tier tier;
  };
  for (const Case& row :
       {Case{100, 100, 1.5, Tier::Measured}, Case{150, 150, 2.5, Tier::Interpolated},
        Case{200, 0, 2, Tier::Measured}, Case{0, 150, 1.5, Tier::Interpolated},
        Case{100, 200, 1.5 + 1, Tier::Interpolated}}) {
    const OpCost cost = exchange_cost(0, 1, {row.out}, {row.in}, 2, machine);
    EXPECT_DOUBLE_EQ(cost.seconds.value, row.seconds) << row.out << " out, " << row.in << " in";
    EXPECT_EQ(cost.tier, row.tier) << row.out << " out, " << row.in << " in";
  }
}

TEST(ExchangeCost, AcrossNodesTheTablesOfANodeDoNotApply) {
  MachineProfile machine = round_machine();
  machine.one_way.points = machine.both_ways.points = {{{100}, measured(1)}};
  const OpCost cost = exchange_cost(3, 4, {1000}, {500}, 8, machine);
  EXPECT_DOUBLE_EQ(cost.seconds.value, 10e-6 + 1000 / 1e8);
  EXPECT_EQ(cost.tier, Tier::DataSheet);
}

TEST(ExchangeCost, PartnersAreServedOneAfterTheOther) {
  const MachineProfile machine = round_machine();
  const Op op = exchange_op(0, {{1, -1, {1000}}, {2, -1, {1000}}}, {{1, -1, {1000}}});
  const Program program = programs_of({{op}, {}, {}})[0];
  EXPECT_DOUBLE_EQ(cost_of(op, program, machine).seconds.value, 2 * (1e-6 + 1e-6));
}

TEST(CollectiveCost, ComesFromTheTableOfItsOperationTypeAndGroup) {
  MachineProfile machine = round_machine();
  machine.collectives["all_reduce f32 2"].points = {{{400}, measured(1)}, {{800}, measured(2)}};
  CollectiveOp op{Collective::AllReduce, {0, 1}, DataType::F32, 0, 100, {}};
  EXPECT_EQ(collective_cost(op, 2, machine).tier, Tier::Measured);
  EXPECT_DOUBLE_EQ(collective_cost(op, 2, machine).seconds.value, 1);
  op.count = 150;
  EXPECT_EQ(collective_cost(op, 2, machine).tier, Tier::Interpolated);
  EXPECT_DOUBLE_EQ(collective_cost(op, 2, machine).seconds.value, 1.5);
  op.group = {0, 1, 2};
  EXPECT_EQ(collective_cost(op, 4, machine).tier, Tier::DataSheet);
}

TEST(CollectiveCost, FormulasByHand) {
  // a = 1, n b = 8, n c = 4
  const Level level{"core", 4, {1}, 1.0 / 8};
  DeviceRates device;
  device.bytes_per_s = 1.0 / 4;
  struct Case {
    Collective op;
    int members;
    double latency, seconds;
    const char* algorithm;
  };
  const std::vector<Case> cases{
      {Collective::AllReduce, 1, 1, 0, "nobody to talk to"},
      {Collective::AllReduce, 2, 1, 2 + 8 + 2, "Rabenseifner: 2 a + n b + n c / 2"},
      {Collective::AllReduce, 2, 100, 100 + 8 + 4, "recursive doubling: a + n b + n c"},
      {Collective::AllReduce, 4, 1, 4 + 12 + 3, "Rabenseifner: 4 a + 3/2 n b + 3/4 n c"},
      {Collective::ReduceScatter, 4, 1, 2 + 6 + 3, "recursive halving"},
      {Collective::ReduceScatter, 3, 1, 2 + (16 + 8) / 3.0, "pairwise exchange"},
      {Collective::AllGather, 8, 1, 3 + 7, "Bruck"},
  };
  for (const Case& row : cases) {
    Level slow = level;
    slow.latency = {row.latency};
    EXPECT_DOUBLE_EQ(estimate_collective(row.op, {1}, row.members, slow, device).value, row.seconds)
        << row.algorithm;
  }
}

}  // namespace
}  // namespace stratplan
