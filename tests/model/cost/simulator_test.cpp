#include "model/cost/simulator.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/cost/collective_cost.hpp"
#include "model/cost/example_machine.hpp"

namespace stratplan {
namespace {

constexpr double us = 1e-6;

double total(const std::vector<Program>& programs, const MachineProfile& machine) {
  return simulate(programs, machine).total.value;
}

TEST(Simulator, ARankAloneTakesTheSumOfItsOps) {
  MachineProfile machine = round_machine();
  const auto programs = programs_of(
      {{compute_op(fill_of(1000)), compute_op(fill_of(2000)), compute_op(fill_of(4000))}});
  EXPECT_DOUBLE_EQ(total(programs, machine), 7 * us);
  machine.step_overhead = measured(1 * us);
  const Timeline timeline = simulate(programs, machine);
  EXPECT_DOUBLE_EQ(timeline.total.value, 10 * us);
  ASSERT_EQ(timeline.ranks.at(0).size(), 3u);
  EXPECT_DOUBLE_EQ(timeline.ranks[0][1].start.value, 3 * us);
  EXPECT_DOUBLE_EQ(timeline.ranks[0][1].end.value, 5 * us);
}

TEST(Simulator, AnExchangeWaitsForTheSlower) {
  const MachineProfile machine = round_machine();
  const Message message{-1, -1, {3000}};
  const auto swap = [&](int peer) {
    return exchange_op(7, {{peer, -1, message.bytes}}, {{peer, -1, message.bytes}});
  };
  const auto programs =
      programs_of({{compute_op(fill_of(1000)), swap(1), compute_op(fill_of(2000))},
                   {compute_op(fill_of(5000)), swap(0)}});
  // Rank 1 arrives at 5 us. Latency takes 1 us and the transfer 3 us. Rank 0 then computes for 2
  // us.
  const Timeline timeline = simulate(programs, machine);
  EXPECT_DOUBLE_EQ(timeline.total.value, 11 * us);
  EXPECT_DOUBLE_EQ(timeline.ranks[0][1].start.value, 1 * us);
  EXPECT_DOUBLE_EQ(timeline.ranks[0][1].end.value, 9 * us);
  EXPECT_DOUBLE_EQ(timeline.ranks[1][1].end.value, 9 * us);
}

TEST(Simulator, AnExchangeEndsWithItsOwnPartnersOnly) {
  const MachineProfile machine = round_machine();
  const Bytes kilobyte{1000};
  const auto talk = [&](std::vector<int> peers) {
    std::vector<Message> messages;
    for (const int peer : peers) messages.push_back({peer, -1, kilobyte});
    return exchange_op(0, messages, messages);
  };
  // In the row 0 - 1 - 2 rank 2 is late. Rank 0 does not wait for it.
  const auto programs =
      programs_of({{talk({1})}, {talk({0, 2})}, {compute_op(fill_of(10000)), talk({1})}});
  const Timeline timeline = simulate(programs, machine);
  EXPECT_DOUBLE_EQ(timeline.ranks[0][0].end.value, 2 * us);
  EXPECT_DOUBLE_EQ(timeline.ranks[1][0].end.value, 14 * us);
  EXPECT_DOUBLE_EQ(timeline.ranks[2][1].end.value, 12 * us);
}

TEST(Simulator, ACollectiveStartsWithItsLastMember) {
  const MachineProfile machine = round_machine();
  const auto programs = programs_of({{compute_op(fill_of(1000)), all_reduce_op({0, 1}, 250)},
                                     {compute_op(fill_of(4000)), all_reduce_op({0, 1}, 250)},
                                     {compute_op(fill_of(2000))}});
  const double reduction =
      estimate_collective(Collective::AllReduce, {1000}, 2, machine.levels[1], machine.device)
          .value;
  const Timeline timeline = simulate(programs, machine);
  EXPECT_DOUBLE_EQ(timeline.ranks[0][1].end.value, 4 * us + reduction);
  EXPECT_DOUBLE_EQ(timeline.ranks[1][1].end.value, 4 * us + reduction);
  EXPECT_DOUBLE_EQ(timeline.ranks[2][0].end.value, 2 * us);
}

TEST(Simulator, ConcurrentStreamsHideCommunication) {
  const MachineProfile machine = round_machine();
  std::vector<Program> programs;
  for (int rank = 0; rank < 2; ++rank) {
    Program& program = programs.emplace_back();
    program.rank = rank;
    program.ranks = 2;
    const auto flat = [&](std::int64_t bytes) {
      Buffer buffer;
      buffer.region[Axis::C] = {0, bytes / 4};
      for (const Axis axis : {Axis::N, Axis::D, Axis::H, Axis::W}) buffer.region[axis] = {0, 1};
      buffer.persistent = true;
      program.buffers.push_back(buffer);
    };
    flat(1000);
    flat(4000);
    program.ops = {compute_op(fill_of(1000)), all_reduce_op({0, 1}, 250), compute_op(fill_of(4000)),
                   compute_op(fill_of(1000))};
    program.ops[0].writes = program.ops[1].reads = program.ops[1].writes =
        program.ops[3].writes = {0};
    program.ops[2].writes = {1};
    plan_buffers(program);
  }
  const double reduction =
      estimate_collective(Collective::AllReduce, {1000}, 2, machine.levels[1], machine.device)
          .value;
  ASSERT_LT(reduction, 4 * us);
  EXPECT_DOUBLE_EQ(total(programs, machine), 6 * us + reduction);
  for (Program& program : programs) program.concurrent_streams = true;
  EXPECT_DOUBLE_EQ(total(programs, machine), 6 * us);
  MachineProfile busy = machine;
  busy.hidden = 0.75;  // kernels hide only 75 % of the sum
  EXPECT_DOUBLE_EQ(total(programs, busy), 6 * us + reduction / 4);
}

TEST(Simulator, BetweenHostsOnlyGradientSumsRunBesideKernels) {
  const auto step_of = [](Collective collective, Stream stream, const MachineProfile& machine) {
    std::vector<Op> ops{all_reduce_op({0, 1}, 250), compute_op(fill_of(10000))};
    std::get<CollectiveOp>(ops[0].body).op = collective;
    ops[0].stream = stream;
    auto programs = programs_of({ops, ops});
    for (Program& program : programs) program.concurrent_streams = true;
    return total(programs, machine);
  };
  MachineProfile hosts = round_machine();
  hosts.hidden = 0.75;
  MachineProfile gpus = hosts;
  gpus.levels.back().name = "gpu";
  using enum Collective;
  for (const Collective op : {AllReduce, ReduceScatter, AllGather})
    for (const Stream stream : {Stream::Halo, Stream::Gradient}) {
      SCOPED_TRACE(fmt::format("{} on {}", name_of(op), name_of(stream)));
      const bool sum = op == AllReduce && stream == Stream::Gradient;
      const double seconds =
          estimate_collective(op, {1000}, 2, hosts.levels[1], hosts.device).value;
      const double beside = stream == Stream::Gradient ? seconds / 4 : 0;
      EXPECT_DOUBLE_EQ(step_of(op, stream, gpus), 10 * us + beside);
      EXPECT_DOUBLE_EQ(step_of(op, stream, hosts), 10 * us + (sum ? beside : seconds));
    }
}

TEST(Simulator, DoublingAllCostsDoublesTheTotal) {
  rc::check([](const std::vector<std::uint16_t>& work) {
    MachineProfile machine = round_machine(), slower = machine;
    slower.device = {5e8, 5e8, {0}, {1}};
    for (Level& level : slower.levels)
      level = {level.name, level.ranks, level.latency * 2, level.bandwidth_bytes_per_s / 2};
    std::vector<std::vector<Op>> ops(3);
    for (std::size_t i = 0; i < work.size(); ++i) {
      const int rank = static_cast<int>(i % 3);
      ops[static_cast<std::size_t>(rank)].push_back(compute_op(fill_of(4 * work[i])));
      if (i % 5 == 4)
        for (auto& of_rank : ops) of_rank.push_back(all_reduce_op({0, 1, 2}, 1 + work[i]));
    }
    const auto programs = programs_of(ops);
    const double once = total(programs, machine), twice = total(programs, slower);
    RC_ASSERT(std::abs(twice - 2 * once) <= 1e-12 * twice);
  });
}

TEST(Simulator, EqualRanksThatVaryWaitForEachOther) {
  MachineProfile machine = round_machine();
  const Kernel kernel = fill_of(1000);
  machine.kernels[kernel.key()] = measured(100 * us, 10 * us);
  const std::vector<Op> ops{compute_op(kernel), all_reduce_op({0, 1}, 1)};
  const double reduction =
      estimate_collective(Collective::AllReduce, {4}, 2, machine.levels[1], machine.device).value;
  // The maximum of two equal normal variables is on average deviation / sqrt(pi) above their mean.
  EXPECT_NEAR(total(programs_of({ops, ops}), machine),
              100 * us + 10 * us / std::sqrt(M_PI) + reduction, 1e-9);
}

TEST(Simulator, ProgramsThatWaitForEachOtherAreABug) {
  const auto programs =
      programs_of({{all_reduce_op({0, 1}, 1), exchange_op(3, {{1, -1, {4}}}, {})},
                   {exchange_op(3, {}, {{0, -1, {4}}}), all_reduce_op({0, 1}, 1)}});
  EXPECT_DEATH(total(programs, round_machine()),
               "deadlock; rank 0 waits at op 0 .*a collective.*; rank 1 waits at op 0 "
               ".*exchange with tag 3");
}

TEST(GreaterOf, AgreesWithSampling) {
  // Clark's formula is compared with the mean of max(a, b) over a fine grid of normal quantiles.
  for (const auto& [a, b] :
       {std::pair{Uncertain{0, 1}, Uncertain{0, 1}}, std::pair{Uncertain{1, 4}, Uncertain{0, 1}},
        std::pair{Uncertain{-3, 1}, Uncertain{0, 0.25}}}) {
    double weight = 0, first = 0, second = 0;
    for (double u = -6; u <= 6; u += 0.02)
      for (double v = -6; v <= 6; v += 0.02) {
        const double w = std::exp(-(u * u + v * v) / 2);
        const double greater =
            std::max(a.mean + u * std::sqrt(a.variance), b.mean + v * std::sqrt(b.variance));
        weight += w;
        first += w * greater;
        second += w * greater * greater;
      }
    const Uncertain formula = greater_of(a, b);
    EXPECT_NEAR(formula.mean, first / weight, 1e-4);
    EXPECT_NEAR(formula.variance, second / weight - first / weight * first / weight, 1e-3);
  }
}

TEST(GreaterOf, WithoutVarianceIsTheMaximum) {
  EXPECT_EQ(greater_of({1, 0}, {2, 0}).mean, 2);
  EXPECT_EQ(greater_of({2, 0}, {1, 0}).mean, 2);
}

}  // namespace
}  // namespace stratplan
