#include "report/bottleneck.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/base/json/json.hpp"
#include "model/cost/simulator.hpp"
#include "model/machine/kernel_estimate.hpp"
#include "planner/prediction.hpp"
#include "planner/small_cases.hpp"

namespace stratplan {
namespace {

using test::small_machine;
using test::small_resnet;

Plan plan_of(const Network& network, const char* decomposition, bool beside = false) {
  Plan plan = uniform_plan(network, Decomposition::parse(decomposition));
  plan.execution.concurrent_streams = beside;
  return plan;
}

TEST(Bottleneck, SharesAddUpToTheStep) {
  const Network network = small_resnet(4);
  MachineProfile overhead = small_machine();
  overhead.step_overhead = {{1e-5}, {1e-5}, {1e-5}, 1, "", ""};
  MachineProfile hiding = small_machine(1e7, 1e-5);
  hiding.hidden = 0.5;
  struct Row {
    const char* name;
    const char* decomposition;
    bool beside;
    MachineProfile machine;
  };
  const Row rows[] = {
      // name, split, whether communication overlaps kernels, machine
      {"one rank", "N1", false, small_machine()},
      {"samples", "N4", false, small_machine()},
      {"uneven rows", "H3", false, small_machine()},
      {"tiles", "H2 W2", false, small_machine(1e6, 1e-4)},
      {"host's time", "N2", false, overhead},
      {"beside kernels", "N4", true, hiding},
      {"halos beside kernels", "H4", true, hiding},
      {"host's time beside kernels", "H2", true, overhead},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const Bottlenecks found =
        find_bottlenecks(plan_of(network, row.decomposition, row.beside), network, row.machine);
    EXPECT_NEAR(found.whole.total().value, found.prediction.step.value,
                1e-9 * found.prediction.step.value);
    for (const TimeSpent& layer : found.layers)
      for (const Seconds seconds : layer.on) EXPECT_GE(seconds.value, -1e-15);
    EXPECT_GE(found.whole.imbalance.value, -1e-15);
    for (std::size_t i = 1; i < found.remedies.size(); ++i)
      EXPECT_LE(found.remedies[i - 1].whole.step, found.remedies[i].whole.step);
  }
}

TEST(Bottleneck, FindsWhatIsScarce) {
  struct Row {
    const char* name;
    Spent spent;
    const char* remedy;
    void (*starve)(MachineProfile&);
  };
  const Row rows[] = {
      // name, where most time goes, the remedy that helps most, how the machine is made poor
      {"compute", Spent::Compute, "compute twice as fast",
       [](MachineProfile& machine) { machine.device.flops_per_s = 1e5; }},
      {"memory bandwidth", Spent::MemoryBandwidth, "memory bandwidth doubled",
       [](MachineProfile& machine) { machine.device.bytes_per_s = 1e4; }},
      {"launches", Spent::Launches, "launches halved",
       [](MachineProfile& machine) { machine.device.launch = {1}; }},
      {"latency", Spent::Latency, "latency halved",
       [](MachineProfile& machine) { machine.levels.back().latency = {1}; }},
      {"bandwidth", Spent::Bandwidth, "bandwidth doubled",
       [](MachineProfile& machine) { machine.levels.back().bandwidth_bytes_per_s = 1e3; }},
  };
  const Network network = small_resnet(4);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    MachineProfile machine = small_machine();
    machine.hidden = 0;
    row.starve(machine);
    const Bottlenecks found = find_bottlenecks(plan_of(network, "H2"), network, machine);
    const auto most = std::ranges::max_element(found.whole.on);
    EXPECT_EQ(static_cast<Spent>(most - found.whole.on.begin()), row.spent)
        << to_text(bottleneck_table(network, found));
    EXPECT_GT(*most / found.prediction.step, 0.8);
    const auto remedy = std::ranges::find(found.remedies, row.remedy, &Remedy::what);
    ASSERT_NE(remedy, found.remedies.end());
    EXPECT_NEAR(remedy->whole.step / found.prediction.step,
                1 - 0.5 * (*most / found.prediction.step), 0.1)
        << "twice the rate halves the share of time";
  }
}

TEST(Bottleneck, OneRankWaitsForNobody) {
  const Network network = small_resnet(4);
  const Bottlenecks found = find_bottlenecks(plan_of(network, "N1"), network, small_machine());
  for (const Spent spent : {Spent::Latency, Spent::Bandwidth, Spent::Waiting})
    EXPECT_NEAR(found.whole[spent].value, 0, 1e-15) << name_of(spent);
  EXPECT_EQ(found.whole.imbalance.value, 0);
  EXPECT_GT(found.whole[Spent::Input].value, 0);
}

TEST(Bottleneck, UnequalWorkShows) {
  const Network network = small_resnet(4);
  const Bottlenecks even = find_bottlenecks(plan_of(network, "H4"), network, small_machine());
  const Bottlenecks uneven =
      find_bottlenecks(plan_of(network, "N3"), network, small_machine());  // 4 samples: 2, 1, 1
  EXPECT_GT(uneven.whole.imbalance / uneven.prediction.step,
            even.whole.imbalance / even.prediction.step + 0.1);
  EXPECT_GE(uneven.whole[Spent::Waiting] / uneven.whole.imbalance, 0.9)
      << "the other ranks wait for the first";
}

TEST(FasterMachine, TwiceAsMuchIsNeverSlower) {
  const Network network = small_resnet(4);
  const std::vector<Program> programs = modelled_programs(plan_of(network, "H2"), network);
  for (const MachineProfile& machine : {small_machine(), test::pair_with_measured_links()}) {
    const Seconds step = simulate(programs, machine).total;
    for (int i = 0; i < resource_count; ++i) {
      const auto resource = static_cast<Resource>(i);
      EXPECT_DOUBLE_EQ(simulate(programs, faster(machine, resource, 1, programs)).total.value,
                       step.value)
          << name_of(resource);
      EXPECT_LE(simulate(programs, faster(machine, resource, 2, programs)).total, step)
          << name_of(resource);
    }
  }
}

TEST(FasterMachine, MeasuredKernelsGainWhatTheirEstimatesDo) {
  const Network network = small_resnet(4);
  const std::vector<Program> programs = modelled_programs(plan_of(network, "N1"), network);
  MachineProfile machine = small_machine();
  machine.device.launch = {0};
  std::vector<Kernel> kernels;
  for (const Op& op : programs.front().ops)
    if (const auto* compute = std::get_if<ComputeOp>(&op.body)) kernels.push_back(compute->kernel);
  for (const Kernel& kernel : kernels) machine.kernels[kernel.key()] = {{3}, {2}, {5}, 10, "", ""};
  const MachineProfile better = faster(machine, Resource::Compute, 2, programs);
  for (const Kernel& kernel : kernels) {
    const double expected =
        estimate_kernel(kernel, better.device) / estimate_kernel(kernel, machine.device);
    EXPECT_NEAR(better.kernels.at(kernel.key()).median.value, 3 * expected, 1e-12) << kernel.key();
  }
}

TEST(FasterMachine, MeasuredMessagesHaveLatencyAndBandwidth) {
  const MachineProfile machine = test::pair_with_measured_links();  // 2 us at 8 B, 2 ms at 1 MiB
  const auto largest = [](const MachineProfile& of) {
    return of.one_way.points.back().second.median.value;
  };
  EXPECT_NEAR(largest(faster(machine, Resource::Latency, 2, {})), 2e-3 - 1e-6, 1e-15);
  EXPECT_NEAR(largest(faster(machine, Resource::Bandwidth, 2, {})), 2e-6 + (2e-3 - 2e-6) / 2,
              1e-15);
}

TEST(Bottleneck, ASlowInputIsNamed) {
  const Network network = small_resnet(4);
  struct Row {
    const char* name;
    const char* decomposition;
    bool beside;
    std::optional<int> prefetch;  ///< none: no input is described
    double slower;                ///< time of reading, in steps without input
    bool bound;
  };
  const Row rows[] = {
      // name, split, communication beside kernels, prefetch, time of reading, bound by input
      {"not described", "N2", false, {}, 0, false},
      {"hidden", "N2", false, 1, 0.5, false},
      {"slow", "N2", false, 1, 4, true},
      {"slow, beside", "N2", true, 1, 4, true},
      {"slow, rows", "H2", false, 1, 4, true},
      {"not ahead", "N2", false, 0, 4, true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    MachineProfile machine = small_machine();
    const Plan plan = plan_of(network, row.decomposition, row.beside);
    const Seconds alone = find_bottlenecks(plan, network, machine).prediction.step;
    if (row.prefetch) {
      machine.input =
          InputPipeline{.storage = {.name = "disk", .bytes_per_s = 1}, .prefetch = *row.prefetch};
      const Reading of_one = longest_reading(modelled_programs(plan, network), machine);
      machine.input->storage.bytes_per_s = of_one.seconds.value / (row.slower * alone.value);
    }
    const Bottlenecks found = find_bottlenecks(plan, network, machine);
    EXPECT_NEAR(found.whole.total().value, found.prediction.step.value,
                1e-9 * found.prediction.step.value);
    EXPECT_EQ(found.largest() == Spent::Input, row.bound);
    EXPECT_EQ(bound_text(found).starts_with("bound by input"), row.bound);
    EXPECT_EQ(found.input && found.input->waits, row.bound);
    EXPECT_EQ(found.remedies.front().what == "input twice as fast", row.bound);
    const Json document = to_json(network, found);
    EXPECT_EQ(document.at("bound_by") == "input", row.bound);
    EXPECT_EQ(document.contains("input"), row.prefetch.has_value());
    if (row.bound && *row.prefetch > 0) {
      EXPECT_DOUBLE_EQ(found.prediction.step.value, row.slower * alone.value);
      EXPECT_NEAR(found.remedies.front().whole.step.value, row.slower / 2 * alone.value,
                  1e-9 * alone.value);
    }
  }
}

TEST(InputReport, SaysWhatIsReadAndWhetherTheStepWaits) {
  const InputPipeline disk{.storage = {.name = "nvme"}};
  InputPipeline before = disk;
  before.prefetch = 0;
  InputPipeline cached = disk;
  cached.cache = Storage{.name = "memory"};
  const Reading reading{{{3 << 20}, 8, 0}, {0.25}};
  EXPECT_EQ(input_text({}), "not modelled; --input says where the samples are read from");
  EXPECT_EQ(input_text(InputFindings{disk, reading, true}),
            "3.00 MiB per rank and step from nvme, read in 250.0 ms: the step waits for it");
  EXPECT_EQ(input_text(InputFindings{disk, reading, false}),
            "3.00 MiB per rank and step from nvme, read in 250.0 ms while the step computes");
  EXPECT_EQ(input_text(InputFindings{before, reading, true}),
            "3.00 MiB per rank and step from nvme, read in 250.0 ms before the step computes");
  EXPECT_EQ(input_text(InputFindings{cached, {reading.share, reading.seconds, true}, false}),
            "3.00 MiB per rank and step from memory after the first epoch, read in 250.0 ms while "
            "the step computes");
}

}  // namespace
}  // namespace stratplan
