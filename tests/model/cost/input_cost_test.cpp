#include "model/cost/input_cost.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/cost/example_machine.hpp"
#include "model/cost/simulator.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/plan/plan.hpp"
#include "support/networks.hpp"

namespace stratplan {
namespace {

/// A network of one convolution over samples of 2 x 8 x 8 values, with targets of 4 x 8 x 8: 1,536
/// bytes per sample.
Network small_net(std::int64_t batch) {
  test::NetworkBuilder net(batch);
  const Window same{.kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1};
  return net.finish_with_loss(net.convolution(net.input({2, 1, 8, 8}), 4, {Window{}, same, same}));
}

std::vector<Program> programs_for(const Network& network, const char* decomposition, int ranks) {
  const Plan plan = uniform_plan(network, Decomposition::parse(decomposition));
  std::vector<Program> programs;
  for (int rank = 0; rank < ranks; ++rank)
    programs.push_back(lower(network, plan.layers, plan.execution, rank));
  return programs;
}

constexpr std::int64_t sample_bytes = 4 * (2 + 4) * 8 * 8;

TEST(InputShare, IsTheRegionThatARankReads) {
  struct Row {
    const char* name;
    const char* decomposition;
    int ranks;
    InputPipeline input;
    InputShare share;
  };
  // Each of two ranks that split the height reads half of the targets. Of the samples, it reads
  // half and the halo of one row: 5 of 8 rows.
  constexpr std::int64_t half = 4 * 4 * (2 * 5 * 8 + 4 * 4 * 8);
  const InputPipeline files{.file_per_sample = true}, whole{.by_region = false};
  const Row rows[] = {
      // name, split, ranks, input, {bytes, samples, files}
      {"one rank", "N1", 1, {}, {{4 * sample_bytes}, 4, 0}},
      {"samples", "N2", 2, {}, {{2 * sample_bytes}, 2, 0}},
      {"repeated", "R2", 2, {}, {{4 * sample_bytes}, 4, 0}},
      {"rows", "H2", 2, {}, {{half}, 1.0 * half / sample_bytes, 0}},
      {"rows, whole samples", "H2", 2, whole, {{4 * sample_bytes}, 4, 0}},
      {"rows, files", "H2", 2, files, {{half}, 1.0 * half / sample_bytes, 4}},
      {"samples, files", "N2", 2, files, {{2 * sample_bytes}, 2, 2}},
      {"samples, stored size", "N2", 2, {.sample = {1000}}, {{2000}, 2, 0}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const InputShare share =
        input_shares(programs_for(small_net(4), row.decomposition, row.ranks), row.input)[0];
    EXPECT_EQ(share.bytes, row.share.bytes);
    EXPECT_DOUBLE_EQ(share.samples, row.share.samples);
    EXPECT_EQ(share.files, row.share.files);
  }
}

TEST(InputShare, MicroBatchesReadTheSame) {
  Network network = small_net(2);  // layers have the extents of a micro-batch
  network.batch = 4;
  network.training.micro_batches = 2;
  const InputShare share =
      input_shares(programs_for(network, "N2", 2), {.file_per_sample = true})[0];
  EXPECT_EQ(share.bytes.value, 2 * sample_bytes);
  EXPECT_EQ(share.files, 2);
}

/// Two nodes of four ranks, each of which reads two samples per step.
Seconds reading(const InputPipeline& input) {
  MachineProfile machine = round_machine();
  machine.input = input;
  return longest_reading(programs_for(small_net(16), "N8", 8), machine).seconds;
}

TEST(Reading, TakesTheLongestOfItsOwnAndTheJointTimes) {
  constexpr double per_rank = 2 * sample_bytes;
  struct Row {
    const char* name;
    InputPipeline input;
    double seconds;
  };
  const InputPipeline cached{.storage = {.bytes_per_s = 1e6},
                             .samples = 10,
                             .cache = Storage{.bytes_per_s = 1e8, .capacity = {10 * sample_bytes}}};
  InputPipeline too_large = cached;
  too_large.samples = 11;
  const Row rows[] = {
      {"no limit", {}, 0},
      {"own rate", {.storage = {.bytes_per_s = 1e6}}, per_rank / 1e6},
      {"rate of a node",
       {.storage = {.bytes_per_s = 1e6, .node_bytes_per_s = 2e6}},
       per_rank / 5e5},
      {"joint rate",
       {.storage = {.bytes_per_s = 1e6, .system_bytes_per_s = 1e6}},
       per_rank / 1.25e5},
      {"joint rate of files",
       {.storage = {.system_files_per_s = 100}, .file_per_sample = true},
       16 / 100.0},
      {"files", {.storage = {.file = {1e-3}}, .file_per_sample = true}, 2e-3},
      {"packed", {.storage = {.file = {1e-3}}}, 0},
      {"decoding", {.decode = {1e-2}}, 2e-2},
      {"all three",
       {.storage = {.bytes_per_s = 1e6, .file = {1e-3}}, .file_per_sample = true, .decode = {1e-2}},
       per_rank / 1e6 + 2e-3 + 2e-2},
      {"two workers", {.decode = {1e-2}, .workers = 2, .prefetch = 4}, 1e-2},
      {"no more busy workers than steps ahead",
       {.decode = {1e-2}, .workers = 4, .prefetch = 2},
       1e-2},
      {"no worker without prefetch", {.decode = {1e-2}, .workers = 4, .prefetch = 0}, 2e-2},
      {"workers share the joint rate",
       {.storage = {.system_bytes_per_s = 1e6}, .workers = 8, .prefetch = 8},
       per_rank / 1.25e5},
      {"cached", cached, per_rank / 1e8},
      {"too large for the cache", too_large, per_rank / 1e6},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_DOUBLE_EQ(reading(row.input).value, row.seconds);
  }
}

/// The step of the small network on two ranks, with an input at a rate per rank.
Timeline step(const char* decomposition, std::optional<double> rate, int prefetch = 1) {
  MachineProfile machine = round_machine();
  if (rate) machine.input = InputPipeline{.storage = {.bytes_per_s = *rate}, .prefetch = prefetch};
  return simulate(programs_for(small_net(4), decomposition, 2), machine);
}

TEST(SimulatedInput, TheStepIsTheLongerOfWorkAndReadingAhead) {
  const double alone = step("N2", {}).total.value, bytes = 2 * sample_bytes;
  EXPECT_DOUBLE_EQ(step("N2", bytes / alone * 2).total.value, alone);
  EXPECT_DOUBLE_EQ(step("N2", bytes / alone / 3).total.value, 3 * alone);
}

TEST(SimulatedInput, WithoutPrefetchBothAreAdded) {
  const double alone = step("N2", {}).total.value, bytes = 2 * sample_bytes;
  EXPECT_DOUBLE_EQ(step("N2", bytes / alone, 0).total.value, 2 * alone);
}

TEST(SimulatedInput, TheFirstLoadWaits) {
  const double alone = step("N2", {}).total.value, bytes = 2 * sample_bytes;
  const std::vector<Span> before = step("N2", {}).ranks[0],
                          after = step("N2", bytes / alone / 3).ranks[0];
  ASSERT_EQ(before[0].op, after[0].op);
  EXPECT_DOUBLE_EQ((after[0].end - after[0].start).value,
                   (before[0].end - before[0].start).value + 2 * alone);
  EXPECT_NEAR((after[1].end - after[1].start).value, (before[1].end - before[1].start).value,
              1e-12);
}

RC_GTEST_PROP(SimulatedInput, IsBetweenTheLongerAndTheSum, ()) {
  const char* decomposition = *rc::gen::element("N2", "H2", "W2", "R2");
  MachineProfile machine = round_machine();
  const std::vector<Program> programs = programs_for(small_net(4), decomposition, 2);
  const double alone = simulate(programs, machine).total.value;
  machine.input =
      InputPipeline{.storage = {.bytes_per_s = std::pow(10.0, *rc::gen::inRange(4, 11))},
                    .decode = {1e-6 * *rc::gen::inRange(0, 1000)},
                    .workers = *rc::gen::inRange(1, 4),
                    .prefetch = *rc::gen::inRange(0, 4)};
  const double input = longest_reading(programs, machine).seconds.value,
               step = simulate(programs, machine).total.value, rounding = 1e-12;
  RC_ASSERT(step >= std::max(alone, input) - rounding);
  RC_ASSERT(step <= alone + input + rounding);
  RC_ASSERT(waits_for_input(*machine.input, {{}, {input}}, {step}) == (step > alone + rounding));
}

TEST(FasterInput, HalvesTheReading) {
  MachineProfile machine = round_machine();
  machine.input = InputPipeline{
      .storage = {.bytes_per_s = 1e6, .file = {1e-3}}, .file_per_sample = true, .decode = {1e-2}};
  const std::vector<Program> programs = programs_for(small_net(4), "N2", 2);
  EXPECT_DOUBLE_EQ(longest_reading(programs, faster_input(machine, 2)).seconds.value,
                   longest_reading(programs, machine).seconds.value / 2);
}

TEST(MachineProfile, RanksPerNodeAreThoseInsideTheLevelOfNodes) {
  struct Row {
    const char* name;
    std::vector<Level> levels;
    int ranks, on_node;
  };
  const Row rows[] = {{"no nodes", {{"core", 8}}, 4, 4},
                      {"part of a node", {{"node", 4}, {"gpu", 4}}, 2, 2},
                      {"whole nodes", {{"node", 4}, {"gpu", 4}}, 8, 4},
                      {"racks", {{"rack", 2}, {"node", 4}, {"gpu", 4}}, 32, 4},
                      {"sockets", {{"node", 4}, {"socket", 2}, {"gpu", 2}}, 16, 4},
                      {"nodes alone", {{"node", 16}}, 8, 1}};
  for (const Row& row : rows) {
    MachineProfile machine;
    machine.levels = row.levels;
    EXPECT_EQ(machine.ranks_per_node(row.ranks), row.on_node) << row.name;
  }
}

}  // namespace
}  // namespace stratplan
