#include "model/machine/machine_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/cost/example_machine.hpp"
#include "support/message_of.hpp"

namespace stratplan {
namespace {

TEST(SizeTable, InterpolatesBetweenItsPointsAndExtrapolatesTheLastSlope) {
  SizeTable table;
  EXPECT_FALSE(table.at({4}));
  table.points = {{{4}, measured(1)}, {{8}, measured(2)}, {{16}, measured(6)}};
  struct Case {
    std::int64_t bytes;
    double seconds;
  };
  for (const auto& [bytes, seconds] :
       {Case{0, 1}, Case{4, 1}, Case{6, 1.5}, Case{8, 2}, Case{12, 4}, Case{16, 6}, Case{24, 10}})
    EXPECT_DOUBLE_EQ(table.at({bytes})->value, seconds) << bytes;
  EXPECT_EQ(table.find({8}), &table.points[1].second);
  EXPECT_EQ(table.find({9}), nullptr);
}

TEST(SizeTable, MoreBytesBeyondTheTableAreNeverFaster) {
  SizeTable table;
  table.points = {{{4}, measured(2)}, {{8}, measured(1)}};
  EXPECT_DOUBLE_EQ(table.at({1000})->value, 1);
  table.points.pop_back();
  EXPECT_DOUBLE_EQ(table.at({8})->value, 4);
}

TEST(MachineProfile, TopologyFillsNodesEvenly) {
  MachineProfile machine = round_machine();
  machine.levels[0].ranks = 4;
  struct Case {
    int ranks;
    Topology topology, placement;
  };
  const std::vector<Case> cases{{1, {1}, {1, 1}},    {2, {2}, {1, 2}},     {3, {3}, {1, 3}},
                                {4, {4}, {1, 4}},    {6, {2, 3}, {2, 3}},  {7, {7}, {7, 1}},
                                {8, {2, 4}, {2, 4}}, {12, {3, 4}, {3, 4}}, {16, {4, 4}, {4, 4}}};
  for (const Case& row : cases) {
    EXPECT_EQ(machine.topology(row.ranks), row.topology) << row.ranks;
    EXPECT_EQ(machine.placement(row.ranks), row.placement) << row.ranks;
  }
}

TEST(MachineProfile, CoresMayBeOversubscribedDevicesNot) {
  MachineProfile machine = round_machine();
  machine.levels = {{"core", 2, {1e-6}, 1e9}};
  EXPECT_EQ(machine.topology(6), Topology{6});
  machine.levels.back().name = "gpu";
  EXPECT_EQ(machine.topology(2), Topology{2});
  EXPECT_THROW(machine.topology(3), InfeasibleError);
}

TEST(MachineProfile, RanksMeetAtTheInnermostCommonLevel) {
  const MachineProfile machine = round_machine();
  struct Case {
    int ranks;
    std::vector<int> members;
    std::size_t level;
  };
  for (const Case& row : {Case{8, {0, 3}, 1}, Case{8, {3, 4}, 0}, Case{8, {4, 7}, 1},
                          Case{8, {0, 4}, 0}, Case{6, {2, 3}, 0}, Case{2, {0, 1}, 1}})
    EXPECT_EQ(machine.meeting_level(row.members, row.ranks), row.level)
        << row.ranks << " ranks, member " << row.members[0];
}

MachineProfile full_machine() {
  MachineProfile machine = round_machine();
  machine.measured_ranks = 2;
  machine.threads_per_rank = 3;
  machine.kernels["fill bytes8"] = measured(0.1, 0.01);
  machine.collectives["all_reduce f32 2"].points = {{{4}, measured(1e-6)},
                                                    {{4096}, measured(3e-6)}};
  machine.one_way.points = {{{4}, measured(1.0 / 3)}};
  machine.both_ways.points = {{{4}, measured(2.0 / 3)}};
  machine.step_overhead = measured(1e-7);
  machine.device.host_bytes_per_s = 2.5e10;
  machine.provenance.set("host", "here");
  return machine;
}

TEST(MachineJson, RoundTripsAndSatisfiesItsSchema) {
  MachineProfile machine = full_machine();
  machine.drift = Drift{.ratio = 1.25, .least = 1.125, .most = 1.5, .kernels = 8, .even = false};
  machine.kernels.at("fill bytes8").drift = 1.5;
  machine.storage = {{"nvme", 1e9, 2e9, 3e9, {1e-4}, 5000, {1 << 30}}};
  const Json document = to_json(machine);
  validate_json(document, "machine", "test");
  const MachineProfile again = machine_from_json(Json::parse(document.dump()), "test");
  EXPECT_EQ(to_json(again), document);
  EXPECT_EQ(again.kernels.at("fill bytes8").implementation, "test");
  EXPECT_EQ(again.one_way.points[0].second.median.value, 1.0 / 3);
  EXPECT_EQ(again.drift, machine.drift);
  EXPECT_EQ(document.at("storage").at("nvme").size(), 6u);
  EXPECT_EQ(again.kernels.at("fill bytes8").drift, 1.5);
}

TEST(MachineJson, FingerprintSeesNumbersButNotProvenance) {
  const MachineProfile machine = full_machine();
  MachineProfile other = machine;
  other.provenance.set("host", "there");
  EXPECT_EQ(other.fingerprint(), machine.fingerprint());
  other.kernels["fill bytes8"].median.value *= 1.001;
  EXPECT_NE(other.fingerprint(), machine.fingerprint());
}

TEST(MachineJson, SizesThatDoNotAscendAreReportedWithTheirPlace) {
  Json document = to_json(full_machine());
  document["collectives"]["all_reduce f32 2"][1]["bytes"] = 4;
  EXPECT_EQ(test::message_of<InputError>([&] { machine_from_json(document, "m.json"); }),
            "m.json: at /collectives/all_reduce f32 2/1/bytes: expected sizes in ascending order, "
            "each once");
}

TEST(ReadMachine, UnknownNameListsTheShippedOnes) {
  EXPECT_THAT(
      test::message_of<InputError>([] { read_machine("no-such-machine"); }),
      testing::HasSubstr("no-such-machine: unknown machine; expected a file or one of local"));
}

TEST(ReadMachine, LocalIsTheCacheOrAnEstimate) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "stratplan-machine-test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  ::setenv("STRATPLAN_CACHE_DIR", folder.c_str(), 1);
  const MachineProfile estimate = read_machine("local");
  EXPECT_TRUE(estimate.assumed);
  EXPECT_EQ(estimate.measured_ranks, 0);
  EXPECT_GE(estimate.levels.back().ranks, 1);
  EXPECT_EQ(estimate.topology(12), Topology{12});
  write_document(local_machine_path(2, 3), "machine", to_json(full_machine()));
  EXPECT_EQ(to_json(read_machine("local", 2, 3)), to_json(full_machine()));
  EXPECT_TRUE(read_machine("local", 2, 1).assumed);
  EXPECT_TRUE(read_machine("local", 3, 3).assumed);
  ::unsetenv("STRATPLAN_CACHE_DIR");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace stratplan
