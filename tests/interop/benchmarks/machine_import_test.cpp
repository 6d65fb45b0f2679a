// Imported tables: plans use them, and they give back the law that the times followed.
#include "interop/benchmarks/machine_import.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interop/benchmarks/outputs.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/cost/collective_cost.hpp"
#include "model/cost/op_cost.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan::benchmark_test {
namespace {

using interop::BenchmarkRequest;
using interop::BenchmarkResults;
using interop::import_benchmarks;
using interop::ImportedTable;
using interop::MachineImport;
using interop::Ranks;
using test::linear_law;
using test::message_of;
using test::nccl_output;
using test::osu_output;
using test::osu_rates;
using test::results_of;
using testing::HasSubstr;

/// The machine after an import, as its file has it.
MachineProfile written(const std::vector<BenchmarkResults>& results, const std::string& base) {
  const Json document = read_machine_document(base);
  const MachineImport imported = import_benchmarks(results, machine_from_json(document, base));
  Provenance provenance;
  provenance.set("date", "2026-11-26T00:00:00Z");
  const Json changed = with_import(document, results, imported, provenance);
  const test::TemporaryFolder folder;
  write_document(folder / "machine.json", "machine", changed);
  return read_machine(folder / "machine.json");
}

MachineProfile written(const std::string& text, const std::string& base,
                       const BenchmarkRequest& request = {}) {
  return written(std::vector{results_of(text, request)}, base);
}

OpCost all_reduce(std::int64_t bytes, DataType type, std::vector<int> group, int ranks,
                  const MachineProfile& machine) {
  CollectiveOp op;
  op.group = std::move(group);
  op.type = type;
  op.count = bytes / size_of(type);
  return collective_cost(op, ranks, machine);
}

std::vector<int> up_to(int ranks) {
  std::vector<int> group;
  for (int rank = 0; rank < ranks; ++rank) group.push_back(rank);
  return group;
}

TEST(MachineImport, GivesBackTheLawOfTheTimes) {
  const MachineProfile machine = written(nccl_output({}, linear_law), "dgx-h100");
  struct Row {
    std::int64_t bytes;
    Tier tier;
  };
  for (const auto& [bytes, tier] :
       {Row{1 << 10, Tier::Measured}, Row{1 << 20, Tier::Measured}, Row{1 << 28, Tier::Measured},
        Row{3 << 20, Tier::Interpolated}, Row{1 << 26, Tier::Interpolated},
        Row{1 << 30, Tier::Interpolated}}) {
    const OpCost cost = all_reduce(bytes, DataType::F32, up_to(8), 8, machine);
    EXPECT_EQ(cost.tier, tier) << bytes;
    EXPECT_NEAR(cost.seconds.value * 1e6, linear_law(bytes), 0.01 + 1e-3 * linear_law(bytes))
        << bytes;
  }
  // Nothing is known of other types and groups.
  EXPECT_GE(all_reduce(1 << 20, DataType::F16, up_to(8), 8, machine).tier, Tier::Calibrated);
  EXPECT_GE(all_reduce(1 << 20, DataType::F32, up_to(4), 8, machine).tier, Tier::Calibrated);
  EXPECT_EQ(all_reduce(1 << 20, DataType::F32, up_to(8), 16, machine).tier, Tier::Measured);
}

TEST(MachineImport, NamesTablesByTheMembersAtEachLevel) {
  struct Row {
    int nodes, per_node;
    const char *base, *type;
    int bytes;
    const char* key;
  };
  for (const Row& row : {Row{1, 8, "dgx-h100", "float", 4, "all_reduce f32 8"},
                         {4, 8, "dgx-h100", "bfloat16", 2, "all_reduce bf16 4x8"},
                         {4, 1, "dgx-h100", "half", 2, "all_reduce f16 4x1"},
                         {34, 4, "abci", "double", 8, "all_reduce f64 2x17x4"},
                         {2, 1, "piz-daint", "float", 4, "all_reduce f32 2"}}) {
    const int ranks = row.nodes * row.per_node;
    const MachineProfile machine = written(nccl_output({.nodes = row.nodes,
                                                        .per_node = row.per_node,
                                                        .type = row.type,
                                                        .type_bytes = row.bytes,
                                                        .bus_factor = 2.0 * (ranks - 1) / ranks},
                                                       linear_law),
                                           row.base);
    ASSERT_EQ(machine.collectives.size(), 1U) << row.key;
    EXPECT_EQ(machine.collectives.begin()->first, row.key);
  }
  // One rank on each of four nodes of a job that fills eight.
  const MachineProfile machine =
      written(nccl_output({.nodes = 4, .per_node = 1, .bus_factor = 1.5}, linear_law), "dgx-h100");
  EXPECT_EQ(all_reduce(1 << 20, DataType::F32, {0, 8, 16, 24}, 64, machine).tier, Tier::Measured);
}

TEST(MachineImport, ReadsGathersForAllTypesOfActivations) {
  const MachineProfile machine =
      written(osu_output({"MPI Allgather Latency Test v6.2"}, linear_law), "dgx-h100",
              {.ranks = Ranks{1, 8}});
  ASSERT_EQ(machine.collectives.size(), 3U);
  for (const char* key : {"all_gather f32 8", "all_gather f16 8", "all_gather bf16 8"}) {
    const SizeTable& table = machine.collectives.at(key);
    // Each rank contributes 1 MiB; the gathered buffer has 8.
    ASSERT_NE(table.find({8 << 20}), nullptr) << key;
    EXPECT_NEAR(table.find({8 << 20})->median.value * 1e6, linear_law(1 << 20), 0.01);
  }
}

TEST(MachineImport, PricesMessages) {
  const BenchmarkRequest inside{.traffic = {}, .ranks = Ranks{1, 2}};
  const std::vector<std::int64_t> sizes{1 << 10, 1 << 20};
  const BenchmarkResults latency =
                             results_of(osu_output({"MPI Latency Test v5.0"}, linear_law), inside),
                         both = results_of(
                             osu_rates("MPI Bi-Directional Bandwidth Test v5.0", 2, sizes,
                                       [](std::int64_t bytes) {
                                         return static_cast<double>(bytes) / 5e4;
                                       }),
                             inside);
  const MachineProfile machine = written({latency, both}, "dgx-h100");
  const OpCost one = exchange_cost(0, 1, {1 << 20}, {0}, 8, machine);
  EXPECT_EQ(one.tier, Tier::Measured);
  EXPECT_NEAR(one.seconds.value * 1e6, linear_law(1 << 20), 0.01);
  // A stream's time lacks the latency: 20 us and 50 GB/s.
  const OpCost two = exchange_cost(0, 1, {1 << 20}, {1 << 20}, 8, machine);
  EXPECT_EQ(two.tier, Tier::Measured);
  EXPECT_NEAR(two.seconds.value * 1e6, 20 + (1 << 20) / 5e4, 0.01);
}

TEST(MachineImport, PricesMessagesBetweenNodesByTheRatesOfTheLevel) {
  const BenchmarkRequest across{.traffic = {}, .ranks = Ranks{2, 1}};
  MachineProfile machine =
      written(osu_output({"MPI Latency Test v5.0"}, linear_law), "dgx-h100", across);
  EXPECT_NEAR(machine.levels[0].latency.value, 20e-6, 1e-8);
  EXPECT_NEAR(machine.levels[0].bandwidth_bytes_per_s, 100e9, 1e8);
  EXPECT_EQ(machine.levels[1].latency, read_machine("dgx-h100").levels[1].latency);
  machine = written(osu_rates("MPI Bandwidth Test v5.0", 1, {1 << 10, 1 << 20}, linear_law),
                    "dgx-h100", across);
  EXPECT_NEAR(machine.levels[0].bandwidth_bytes_per_s, (1 << 20) / linear_law(1 << 20) * 1e6, 1e6);
  machine =
      written(nccl_output({.program = "sendrecv_perf", .nodes = 2, .per_node = 1, .bus_factor = 1},
                          linear_law),
              "dgx-h100");
  EXPECT_EQ(machine.exchanges.at("1 pair per node across").points.size(), 5U);
  machine = written(nccl_output({.program = "alltoall_perf", .bus_factor = 0.875}, linear_law),
                    "dgx-h100");
  EXPECT_NE(machine.exchanges.at("7 peers").find({1 << 17}), nullptr);
}

TEST(MachineImport, TakesRowsOfOneSizeAsSamples) {
  std::vector<BenchmarkResults> results;
  for (const double factor : {1.0, 1.1, 1.5})
    results.push_back(results_of(
        nccl_output({}, [&](std::int64_t bytes) { return factor * linear_law(bytes); })));
  const SizeTable table = written(results, "dgx-h100").collectives.at("all_reduce f32 8");
  ASSERT_EQ(table.points.size(), 5U);
  const Measurement& largest = table.points.back().second;
  EXPECT_EQ(largest.samples, 3);
  EXPECT_NEAR(largest.median / largest.p10, 1.1 / 1.02, 1e-3);
  EXPECT_NEAR(largest.p90 / largest.median, 1.42 / 1.1, 1e-3);
}

TEST(MachineImport, KeepsAllElseWithItsSources) {
  const Json document = read_machine_document("dgx-h100");
  const std::vector<BenchmarkResults> results{results_of(nccl_output({}, linear_law))};
  const MachineImport imported =
      import_benchmarks(results, machine_from_json(document, "dgx-h100"));
  Provenance provenance;
  provenance.set("date", "2026-11-26T00:00:00Z");
  Json changed = with_import(document, results, imported, provenance);
  const Json& entry = changed.at("provenance").at("imports").at(0);
  EXPECT_EQ(entry.at("tool"), "nccl-tests");
  EXPECT_EQ(entry.at("version"), "2.17.6");
  EXPECT_EQ(entry.at("library"), "NCCL 22807");
  EXPECT_EQ(entry.at("fingerprint"), results.front().fingerprint);
  EXPECT_EQ(entry.at("date"), "2026-11-26T00:00:00Z");
  // A second import is a second entry, and replaces the table.
  const Json twice = with_import(changed, results, imported, provenance);
  EXPECT_EQ(twice.at("provenance").at("imports").size(), 2U);
  EXPECT_EQ(twice.at("collectives"), changed.at("collectives"));
  changed.erase("collectives");
  changed.erase("provenance");
  EXPECT_EQ(changed, document);
}

TEST(MachineImport, PutsKernelsUnderTheirKeys) {
  const BenchmarkResults results = results_of(
      R"({"context": {}, "benchmarks": [{"run_name": "relu_forward e1024", "real_time": 3}]})");
  const MachineProfile machine = written(std::vector{results}, "dgx-h100");
  EXPECT_DOUBLE_EQ(machine.kernels.at("relu_forward e1024").median.value, 3e-9);
  EXPECT_THAT(message_of<InputError>([&] {
                written({results, results}, "dgx-h100");
              }),
              HasSubstr("relu_forward e1024 stands in another file, too"));
}

TEST(MachineImport, RefusesRanksThatTheMachineLacks) {
  struct Row {
    int nodes, per_node;
    const char *base, *expected;
  };
  for (const Row& row : {Row{1, 9, "dgx-h100", ":20: ran on 9 ranks of a node, but dgx-h100 has 8"},
                         {129, 1, "dgx-h100", "ran on 129 nodes, but dgx-h100 has 128"},
                         {2, 1, "epyc-2core", "ran on 2 nodes, but epyc-2core has 1"}}) {
    const int ranks = row.nodes * row.per_node;
    const std::string text = nccl_output(
        {.nodes = row.nodes, .per_node = row.per_node, .bus_factor = 2.0 * (ranks - 1) / ranks},
        linear_law);
    EXPECT_THAT(message_of<InputError>([&] { written(text, row.base); }), HasSubstr(row.expected));
  }
  // A latency of two seconds is no latency of a level.
  const std::string slow = osu_output({"MPI Latency Test v5.0"}, [](std::int64_t) { return 2e6; });
  EXPECT_THAT(message_of<InputError>([&] {
                written(slow, "dgx-h100", {.traffic = {}, .ranks = Ranks{2, 1}});
              }),
              HasSubstr("the imported machine: at /levels/0/latency_seconds"));
  const std::string ring = nccl_output(
      {.program = "sendrecv_perf", .nodes = 2, .per_node = 8, .bus_factor = 1}, linear_law);
  EXPECT_THAT(message_of<InputError>([&] { written(ring, "dgx-h100"); }),
              HasSubstr("one rank on each of two nodes, found 8 on each of 2 nodes"));
}

}  // namespace
}  // namespace stratplan::benchmark_test
