#include "model/cost/library_collective.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "model/base/error.hpp"
#include "model/cost/collective_cost.hpp"
#include "support/message_of.hpp"

namespace stratplan {
namespace {

/// Eight nodes of eight devices: 100 bytes per second between devices, 10 for each of a node's
/// eight interfaces. One protocol with hops of 1 s in a node and 10 s between nodes.
MachineProfile described(double share = 1, double tree_share = 0, double in_switch = 0) {
  MachineProfile machine;
  machine.levels = {{"node", 8, {}, 10, 80}, {"gpu", 8, {}, 100}};
  machine.levels[0].use.protocols = {{{10}, share}};
  machine.levels[1].use.protocols = {{{1}, share}};
  machine.levels[1].use.in_switch_share = in_switch;
  machine.library.tree_share = tree_share;
  return machine;
}

GroupShape shape(int nodes, int devices) {
  GroupShape shape;
  shape.members[0] = nodes;
  shape.members[1] = devices;
  return shape;
}

double seconds(Collective op, int bytes, const GroupShape& group, const MachineProfile& machine) {
  return estimate_by_library(op, {bytes}, group, {8, 8}, machine).value;
}

TEST(LibraryCollective, FormulasByHand) {
  using enum Collective;
  struct Case {
    const char* algorithm;
    Collective op;
    GroupShape group;
    MachineProfile machine;
    double seconds;
  };
  const Case cases[] = {
      {"ring in a node: 14 hops, 14/8 n / 100", AllReduce, shape(1, 8), described(), 14 + 14},
      {"half of it: 7 hops, 7/8 n / 100", AllGather, shape(1, 8), described(), 7 + 7},
      {"the same", ReduceScatter, shape(1, 8), described(), 7 + 7},
      {"half of the bandwidth", AllReduce, shape(1, 8), described(0.5), 14 + 28},
      {"ring over 2 nodes: 28 hops in nodes, 2 between, 30/16 n / 80", AllReduce, shape(2, 8),
       described(), 28 + 2 * 10 + 1.875 * 800 / 80},
      {"one device per node: 8 groups share the interfaces", AllReduce, shape(2, 1), described(),
       2 * 10 + 800 / 10.0},
      {"tree over 8 nodes: chain of 14 hops, 6 between nodes, 14/8 n / 80", AllReduce, shape(8, 8),
       described(1, 1), 14 + 60 + 1.75 * 800 / 80},
      {"in the switch: 9/8 n / 100", AllReduce, shape(1, 8), described(1, 0, 1), 9},
      {"no switch sums an all-gather", AllGather, shape(1, 8), described(1, 0, 1), 7 + 7},
  };
  for (const Case& c : cases)
    EXPECT_DOUBLE_EQ(seconds(c.op, 800, c.group, c.machine), c.seconds) << c.algorithm;
}

TEST(LibraryCollective, TheFasterProtocolCounts) {
  MachineProfile machine = described();
  machine.levels[1].use.protocols = {{{0}, 0.1}, {{10}, 1}};
  EXPECT_DOUBLE_EQ(seconds(Collective::AllReduce, 8, shape(1, 8), machine), 1.4);
  EXPECT_DOUBLE_EQ(seconds(Collective::AllReduce, 80000, shape(1, 8), machine), 140 + 1400);
}

TEST(LibraryCollective, BuffersFillOnceAtTheSlowestLevel) {
  MachineProfile machine = described();
  const double before = seconds(Collective::AllReduce, 800, shape(2, 8), machine);
  machine.levels[0].use.protocols[0].start = {3};
  machine.levels[1].use.protocols[0].start = {7};
  EXPECT_DOUBLE_EQ(seconds(Collective::AllReduce, 800, shape(2, 8), machine), before + 7);
  EXPECT_DOUBLE_EQ(seconds(Collective::AllReduce, 800, shape(2, 1), machine), 2 * 10 + 80 + 3);
}

TEST(LibraryCollective, LargeNetworksLoseBandwidth) {
  MachineProfile machine = described();
  const double alone = seconds(Collective::AllReduce, 1 << 20, shape(8, 1), machine);
  machine.library.congestion = 1.0 / 3;
  const double between_hops = 14 * 10;
  EXPECT_NEAR(seconds(Collective::AllReduce, 1 << 20, shape(8, 1), machine) - between_hops,
              2 * (alone - between_hops), 1e-6);
  EXPECT_EQ(seconds(Collective::AllReduce, 800, shape(1, 8), machine), 28);
}

TEST(LibraryCollective, CostsGrowLessAndLessSteeply) {
  const MachineProfile machine = read_machine("dgx-h100");
  const Topology placement = machine.placement(64);
  for (const auto op : {Collective::AllReduce, Collective::AllGather, Collective::ReduceScatter})
    for (const GroupShape& group : {shape(1, 8), shape(8, 8), shape(8, 1), shape(4, 2)}) {
      double before = 0, slope_before = INFINITY;
      for (std::int64_t bytes = 1 << 10; bytes < std::int64_t{1} << 32; bytes *= 2) {
        const double here = estimate_collective(op, {bytes}, group, placement, machine).value;
        if (before > 0) {
          const double slope = (here - before) / (static_cast<double>(bytes) / 2);
          EXPECT_GT(slope, 0);
          EXPECT_LE(slope, slope_before * (1 + 1e-9)) << bytes;
          slope_before = slope;
        }
        before = here;
      }
    }
}

TEST(LibraryCollective, IsOfTheSoftwareOnGpusWithPublishedRates) {
  const MachineProfile nccl = read_machine("abci"),
                       old = read_machine("abci", 1, 1, read_software("chainermn"));
  const auto sum = [](const MachineProfile& machine) {
    return estimate_collective(Collective::AllReduce, {553 << 20}, shape_of({0, 4}, {1, 2, 4}),
                               machine.placement(8), machine);
  };
  EXPECT_GT(sum(old), sum(nccl) * 1.5);
  for (const Level& level : read_machine("cori-knl").levels)
    EXPECT_TRUE(level.use.protocols.empty());
  for (const std::string& name : shipped_machines()) {
    const MachineProfile machine = read_machine(name);
    if (!machine.assumed || !machine.on_gpus()) continue;
    for (const Level& level : machine.levels)
      EXPECT_FALSE(level.use.protocols.empty()) << name << ", " << level.name;
  }
  EXPECT_EQ(test::message_of<InputError>([] { read_library_rates("nccle"); }),
            "nccle: unknown communication library (did you mean \"nccl\"?); expected one of "
            "chainermn, mlsl, nccl, nccl-2.0");
}

TEST(Stragglers, AreTheExpectedMaximum) {
  const ScalingRates rates{.device_spread = 0.03, .step_jitter = 0.04, .beside_sums = 1};
  EXPECT_EQ(straggler_share(1, rates), 0);
  EXPECT_NEAR(straggler_share(2, rates), 0.05 * 0.5642, 0.05 * 0.03);
  EXPECT_NEAR(straggler_share(8, rates), 0.05 * 1.4236, 0.05 * 0.03);
  EXPECT_NEAR(straggler_share(1024, rates), 0.05 * 3.2443, 0.05 * 0.03);
}

}  // namespace
}  // namespace stratplan
