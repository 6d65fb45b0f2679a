#include "model/machine/machine_parts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/machine/machine_profile.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace stratplan {
namespace {

using testing::HasSubstr;

/// The example in the help of `stratplan machines`.
Json cluster_of_ten_lines() {
  return Json::parse(R"({
    "schema_version": 1, "name": "mine", "assumed": true, "device": "a100-40",
    "hidden": 1,
    "levels": [{"name": "node", "ranks": 64, "link": "hdr200", "shared_links": 4},
        {"name": "gpu", "ranks": 4, "link": "nvlink3", "links": 4}]})");
}

TEST(MachineParts, TenLinesAreAMachine) {
  const Json document = cluster_of_ten_lines();
  validate_json(document, "machine", "mine.json");
  const Json complete = with_parts(document, "mine.json");
  validate_json(complete, "machine", "mine.json");
  EXPECT_EQ(with_parts(complete, "mine.json"), complete);
  const MachineProfile machine = machine_from_json(complete, "mine.json");
  const double hdr = 24e9, nvlink = 20e9;
  EXPECT_DOUBLE_EQ(machine.levels[0].bandwidth_bytes_per_s, hdr);
  EXPECT_DOUBLE_EQ(machine.levels[0].shared_bytes_per_s, 4 * hdr);
  EXPECT_DOUBLE_EQ(machine.levels[1].bandwidth_bytes_per_s, 4 * nvlink);
  EXPECT_DOUBLE_EQ(machine.levels[1].shared_bytes_per_s, 0);
  EXPECT_EQ(machine.device.name, "a100-40");
  EXPECT_EQ(machine.topology(256), (Topology{64, 4}));
}

TEST(MachineParts, NumbersBesideALinkCountInsteadOfIts) {
  Json document = cluster_of_ten_lines();
  document["levels"][0]["latency_seconds"] = 1;
  document["levels"][0]["shared_bytes_per_s"] = 23e9;
  const MachineProfile machine = machine_from_json(with_parts(document, "mine.json"), "mine.json");
  EXPECT_DOUBLE_EQ(machine.levels[0].latency.value, 1);
  EXPECT_DOUBLE_EQ(machine.levels[0].shared_bytes_per_s, 23e9);
  EXPECT_DOUBLE_EQ(machine.levels[0].bandwidth_bytes_per_s, 24e9);
}

TEST(MachineParts, WhatIsUnknownOrMissingIsNamed) {
  const auto message = [](auto change) {
    Json document = cluster_of_ten_lines();
    change(document);
    return test::message_of<InputError>([&] { with_parts(document, "mine.json"); });
  };
  EXPECT_THAT(
      message([](Json& document) { document["device"] = "a100-4"; }),
      HasSubstr("mine.json: at /device: unknown device \"a100-4\" (did you mean \"a100-40\"?)"));
  EXPECT_THAT(message([](Json& document) { document["levels"][1]["link"] = "nvlink9"; }),
              HasSubstr("mine.json: at /levels/1/link: unknown link \"nvlink9\""));
  EXPECT_THAT(message([](Json& document) { document["levels"][1].erase("link"); }),
              HasSubstr("mine.json: at /levels/1: expected the key \"latency_seconds\", or "
                        "\"link\" with the name of a link"));
}

TEST(MachineParts, ADeviceLikeAnotherDiffersInWhatItSays) {
  const DeviceRates large = read_device("a100-80"), small = read_device("a100-40");
  EXPECT_GT(large.memory, small.memory);
  EXPECT_GT(large.bytes_per_s, small.bytes_per_s);
  EXPECT_EQ(large.math_flops_per_s, small.math_flops_per_s);
  EXPECT_EQ(large.units, small.units);
}

/// Checks that all numbers of a part share one source, or that each number has its own.
void expect_sources(const Json& part, const std::string& where) {
  ASSERT_TRUE(part.contains("source")) << where;
  if (part["source"].is_string()) return;
  for (const auto& [key, value] : part.items()) {
    const bool told =
        part["source"].contains(key) && !part["source"][key].get<std::string>().empty();
    EXPECT_TRUE(told || !value.is_number()) << where << " " << key;
  }
}

TEST(ShippedMachines, AreAssumedAndEveryNumberHasItsSource) {
  const std::vector<std::string> names = shipped_machines();
  EXPECT_THAT(
      names, testing::IsSupersetOf({"abci", "cori-knl", "dgx-a100", "dgx-h100", "dgx-h200",
                                    "frontier", "fugaku", "juwels-booster", "lassen", "lisa-1080ti",
                                    "lisa-titanrtx", "perlmutter", "piz-daint", "sierra-4gpu",
                                    "sierra-6gpu", "snellius-a100", "snellius-h100", "summit"}));
  for (const std::string& name : names) {
    const Json document = read_machine_document(name);
    EXPECT_EQ(document.at("name"), name);
    if (!document.value("assumed", false)) continue;
    expect_sources(document.at("device"), name + " device");
    for (const Json& level : document.at("levels"))
      expect_sources(level, name + " level " + level.at("name").get<std::string>());
    const Json storage = document.value("storage", Json::object());
    for (const auto& [key, level] : storage.items())
      expect_sources(level, name + " storage " + key);
    EXPECT_EQ(to_json(machine_from_json(to_json(read_machine(name)), name)),
              to_json(read_machine(name)))
        << name;
  }
}

TEST(ShippedStorage, EveryNumberHasItsSource) {
  const std::vector<std::string> names = part_names("storage");
  EXPECT_FALSE(names.empty());
  for (const std::string& name : names) expect_sources(read_storage_document(name), name);
}

TEST(MachineParts, ALevelOfStorageMayNameAShippedOne) {
  Json document = cluster_of_ten_lines();
  document["storage"] = {{"nvme", "samsung-980-pro"},
                         {"memory", {{"capacity_bytes", 256000000000}}}};
  validate_json(document, "machine", "mine.json");
  const Json complete = with_parts(document, "mine.json");
  validate_json(complete, "machine", "mine.json");
  EXPECT_EQ(with_parts(complete, "mine.json"), complete);
  const MachineProfile machine = machine_from_json(complete, "mine.json");
  ASSERT_EQ(machine.storage.size(), 2u);
  EXPECT_EQ(machine.storage[0].name, "memory");
  EXPECT_EQ(machine.storage[0].capacity.value, 256000000000);
  EXPECT_EQ(machine.storage[1].name, "nvme");
  EXPECT_DOUBLE_EQ(machine.storage[1].node_bytes_per_s,
                   read_storage("samsung-980-pro").node_bytes_per_s);
  document["storage"]["nvme"] = "samsung-980";
  EXPECT_THAT(test::message_of<InputError>([&] { with_parts(document, "mine.json"); }),
              HasSubstr("mine.json: at /storage/nvme: unknown storage \"samsung-980\" (did you "
                        "mean \"samsung-980-pro\"?)"));
}

TEST(ShippedMachines, RacksOfAbciShareAThirdOfTheirNodesBandwidth) {
  const MachineProfile abci = read_machine("abci");
  ASSERT_EQ(abci.levels.size(), 3);
  EXPECT_NEAR(abci.levels[0].shared_bytes_per_s, 17 * abci.levels[1].shared_bytes_per_s / 3, 1);
}

TEST(ReadMachine, ArithmeticIsChosenBehindAColon) {
  EXPECT_EQ(read_machine("dgx-a100").device.math, Math::Fp32);
  EXPECT_EQ(read_machine("dgx-a100:tf32").device.math, Math::Tf32);
  EXPECT_EQ(test::message_of<InputError>([] { read_machine("lassen:tf32"); }),
            "lassen:tf32: no tf32 rate is stated for the device of lassen");
  EXPECT_EQ(test::message_of<InputError>([] { read_machine("lassen:bf61"); }),
            "lassen: unknown arithmetic \"bf61\" behind the colon (did you mean \"bf16\"?); "
            "expected one of fp32, tf32, fp16, bf16");
  EXPECT_THAT(test::message_of<InputError>([] { read_machine("lasen:bf61"); }),
              HasSubstr("unknown machine"));
  const test::TemporaryFolder folder;
  const std::string file = folder.write("mine.json", cluster_of_ten_lines().dump());
  EXPECT_EQ(read_machine(file + ":bf16").device.math, Math::Bf16);
  EXPECT_THAT(test::message_of<InputError>([&] { read_machine(file + ":bf61"); }),
              HasSubstr("mine.json: unknown arithmetic"));
  EXPECT_EQ(read_machine(folder.write("a:b.json", cluster_of_ten_lines().dump())).name, "mine");
}

}  // namespace
}  // namespace stratplan
