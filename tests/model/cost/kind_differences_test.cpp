// Kinds of ops whose time in training is not that of their profile, and the causes that are named.
#include "model/cost/kind_differences.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "model/cost/collective_cost.hpp"
#include "model/cost/op_cost.hpp"
#include "model/cost/simulator.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"

namespace stratplan::kind_differences_test {
namespace {

constexpr Bytes large_cache{1 << 30};

Measurement around(Seconds median) {
  Measurement measured;
  measured.median = median;
  measured.p10 = median * 0.95;
  measured.p90 = median * 1.05;
  measured.samples = 10;
  return measured;
}

/// The network tiny under one decomposition, on a machine where each of its ops was measured, and a
/// training whose ops take these times, 2 % faster and slower in a tenth of the steps each.
struct Case {
  std::vector<Program> programs;
  MachineProfile machine = estimate_local_machine();
  Timing timing;

  explicit Case(const char* decomposition, const Execution& execution = {}) {
    const Network network = read_network("tiny");
    Plan plan = uniform_plan(network, Decomposition::parse(decomposition));
    plan.execution = execution;
    for (int rank = 0; rank < plan.ranks; ++rank)
      programs.push_back(lower(network, plan.layers, plan.execution, rank));
    machine.measured_ranks = plan.ranks;
    machine.device.flops_per_s = 1e18;  // so that memory bounds all kernels
    MachineProfile measured = machine;
    for (const Program& program : programs)
      for (const Op& op : program.ops) {
        const Seconds cost = cost_of(op, program, machine).seconds;
        if (const auto* compute = std::get_if<ComputeOp>(&op.body))
          measured.kernels[compute->kernel.key()] = around(cost);
        if (const auto* collective = std::get_if<CollectiveOp>(&op.body)) {
          SizeTable& table = measured.collectives[collective_key(
              collective->op, collective->type, static_cast<int>(collective->group.size()))];
          if (!table.find(collective->bytes()))
            table.points.emplace_back(collective->bytes(), around(cost));
          std::ranges::sort(table.points, {}, [](const auto& point) { return point.first; });
        }
      }
    for (SizeTable* table : {&measured.one_way, &measured.both_ways})
      table->points = {{{4}, around({1e-6})}, {{1 << 20}, around({1e-3})}};
    machine = measured;
    train([](const Op&, std::size_t) { return 1.0; });
  }

  /// Sets the times of training to those of the profile times `factor`.
  void train(const std::function<double(const Op& op, std::size_t rank)>& factor) {
    timing = {};
    for (std::size_t rank = 0; rank < programs.size(); ++rank) {
      for (auto* list : {&timing.op_medians, &timing.op_p10, &timing.op_p90}) list->emplace_back();
      for (const Op& op : programs[rank].ops) {
        const Seconds time = cost_of(op, programs[rank], machine).seconds * factor(op, rank);
        timing.op_medians.back().push_back(time);
        timing.op_p10.back().push_back(time * 0.98);
        timing.op_p90.back().push_back(time * 1.02);
      }
    }
  }

  KindDifferences found(Bytes cache = large_cache) const {
    return kind_differences(programs, timing, machine, cache);
  }
};

bool is_kernel(const Op& op, const std::string& name) {
  const auto* compute = std::get_if<ComputeOp>(&op.body);
  return compute && compute->kernel.name() == name;
}

TEST(KindDifferences, AreNoneWithinTheSpreads) {
  Case c("H2");
  EXPECT_TRUE(c.found().kinds.empty());
  EXPECT_GT(c.found().compared, 20);
  EXPECT_EQ(c.found().unprofiled, 4);  // loads of samples and labels on two ranks
  for (const double factor : {0.94, 1.06}) {
    c.train([&](const Op&, std::size_t) { return factor; });
    EXPECT_TRUE(c.found().kinds.empty()) << factor;
  }
}

TEST(KindDifferences, AreSortedByTheirTotal) {
  Case c("H2");
  c.train([](const Op& op, std::size_t) {
    return is_kernel(op, "conv_forward") ? 1.5 : is_kernel(op, "conv_backward_filter") ? 0.8 : 1;
  });
  const KindDifferences differences = c.found();
  ASSERT_EQ(differences.kinds.size(), 2U);
  EXPECT_EQ(differences.kinds[0].kind, "conv_forward");
  EXPECT_NEAR(differences.kinds[0].measured.mean / differences.kinds[0].profiled.mean, 1.5, 1e-9);
  EXPECT_NEAR(differences.kinds[0].profiled.p90 / differences.kinds[0].profiled.mean, 1.05, 1e-9);
  EXPECT_EQ(differences.kinds[1].kind, "conv_backward_filter");
  EXPECT_LT(differences.kinds[1].difference().value, 0);
}

TEST(KindDifferences, NeedAProfile) {
  Case c("H2");
  c.train([](const Op&, std::size_t) { return 2.0; });
  const MachineProfile estimated = estimate_local_machine();
  const KindDifferences differences =
      kind_differences(c.programs, c.timing, estimated, large_cache);
  EXPECT_TRUE(differences.kinds.empty());
  EXPECT_EQ(differences.compared, 0);
}

TEST(KindDifferences, AreWidenedByAnUnevenDrift) {
  Case c("H2");
  c.train([](const Op& op, std::size_t) { return communicates(op) ? 1.0 : 1.3; });
  EXPECT_FALSE(c.found().kinds.empty());
  c.machine.drift = {.ratio = 1.2, .least = 1, .most = 1.3, .kernels = 8, .even = false};
  EXPECT_TRUE(c.found().kinds.empty());
}

TEST(KindDifferences, NameTheCauseThatTheDataTell) {
  using enum DifferenceCause;
  const auto slow_kernels = [](const Op& op, std::size_t) {
    return is_kernel(op, "conv_forward") ? 1.5 : 1.0;
  };
  Case c("H2");
  c.train(slow_kernels);
  const auto cause = [&](Bytes cache) {
    const KindDifferences differences = c.found(cache);
    return differences.kinds.empty() ? Unknown : differences.kinds.front().cause;
  };
  EXPECT_EQ(cause(large_cache), CacheState);
  EXPECT_EQ(cause({0}), Unknown) << "the sizes of caches are not known";
  EXPECT_EQ(cause({1}), Unknown) << "as many ranks at once as in the profile";
  c.machine.measured_ranks = 1;
  EXPECT_EQ(cause({1}), SharedBandwidth);
  c.machine.device.flops_per_s = 1;  // so that arithmetic bounds all kernels
  EXPECT_EQ(cause(large_cache), Unknown);
}

TEST(KindDifferences, NameAnotherImplementation) {
  Case c("H2");
  c.train([](const Op& op, std::size_t) { return is_kernel(op, "conv_forward") ? 1.5 : 1.0; });
  const auto cause = [&] { return c.found().kinds.at(0).cause; };
  for (auto& [key, measured] : c.machine.kernels) measured.choice = "winograd";
  EXPECT_EQ(cause(), DifferenceCause::OtherImplementation) << "the plan names none";
  for (Program& program : c.programs)
    for (const auto& [key, measured] : c.machine.kernels) program.implementations[key] = "direct";
  EXPECT_EQ(cause(), DifferenceCause::OtherImplementation);
  for (Program& program : c.programs)
    for (auto& [key, name] : program.implementations) name = "winograd";
  EXPECT_EQ(cause(), DifferenceCause::CacheState);
}

TEST(KindDifferences, TellAllKernelsFromOne) {
  Case c("H2");
  c.train([](const Op& op, std::size_t) {
    return communicates(op) ? 1.0 : is_kernel(op, "conv_forward") ? 2.5 : 1.5;
  });
  const KindDifferences differences = c.found();
  ASSERT_GT(differences.kinds.size(), 3U);
  for (const KindDifference& one : differences.kinds)
    EXPECT_EQ(one.cause == DifferenceCause::AllKernels, one.kind != "conv_forward") << one.kind;
}

TEST(KindDifferences, NameWaitingIfTheSimulatedRanksWaitAsLong) {
  Case c("H2");
  for (auto& [key, measured] : c.machine.kernels) {
    measured.p10 = measured.median * 0.5;
    measured.p90 = measured.median * 1.5;
  }
  const Timeline timeline = simulate(c.programs, c.machine);
  for (std::size_t rank = 0; rank < c.programs.size(); ++rank)
    for (const Span& span : timeline.ranks[rank])
      for (auto* list : {&c.timing.op_medians, &c.timing.op_p10, &c.timing.op_p90})
        (*list)[rank][static_cast<std::size_t>(span.op)] = span.end - span.start;
  const KindDifferences differences = c.found();
  ASSERT_FALSE(differences.kinds.empty());
  for (const KindDifference& one : differences.kinds)
    EXPECT_EQ(one.cause, DifferenceCause::Waiting) << one.kind;
}

TEST(KindDifferences, NameWaitingIfTheLastRankAgrees) {
  Case c("H2");
  const auto reduces = [](const Op& op) {
    const auto* collective = std::get_if<CollectiveOp>(&op.body);
    return collective && collective->type == DataType::F32;
  };
  c.train([&](const Op& op, std::size_t rank) { return reduces(op) && rank == 0 ? 3.0 : 1.0; });
  ASSERT_EQ(c.found().kinds.size(), 1U);
  EXPECT_EQ(c.found().kinds[0].kind, "all_reduce f32");
  EXPECT_EQ(c.found().kinds[0].cause, DifferenceCause::Waiting);
  c.train([&](const Op& op, std::size_t) { return reduces(op) ? 3.0 : 1.0; });
  ASSERT_EQ(c.found().kinds.size(), 1U);
  EXPECT_EQ(c.found().kinds[0].cause, DifferenceCause::Unknown);
}

TEST(KindDifferences, NameMessagesIfKernelsWithoutThemAgree) {
  Execution execution;
  execution.concurrent_streams = true;
  execution.bucket_bytes = {64};  // so that a sum follows each layer
  Case c("N2", execution);
  c.machine.hidden = 1;
  // The filters' gradients of the last convolution come before the first sum.
  const auto first_sum = [](const Program& program) {
    return std::ranges::find(program.ops, Stream::Gradient, &Op::stream) - program.ops.begin();
  };
  c.train([&](const Op& op, std::size_t rank) {
    const Program& program = c.programs[rank];
    return is_kernel(op, "conv_backward_filter") && &op - program.ops.data() > first_sum(program)
               ? 1.5
               : 1.0;
  });
  const KindDifferences differences = c.found({0});
  ASSERT_EQ(differences.kinds.size(), 1U);
  EXPECT_EQ(differences.kinds[0].kind, "conv_backward_filter");
  EXPECT_EQ(differences.kinds[0].cause, DifferenceCause::MessagesBeside);
}

}  // namespace
}  // namespace stratplan::kind_differences_test
