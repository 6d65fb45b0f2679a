#include "model/machine/error_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "support/message_of.hpp"

namespace stratplan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Json shipped() {
  return read_json_file((data_folder("machines") / "parts" / "errors.json").string());
}

TEST(ErrorModel, EveryShippedNumberIsADeviationWithASource) {
  const ErrorModel& errors = error_model();
  EXPECT_LT(errors.anchored_device, errors.calibrated_device);
  EXPECT_LT(errors.calibrated_device, errors.data_sheet_device);
  for (const double deviation : errors.family) EXPECT_GT(deviation, 0);
  for (const double deviation : errors.kernel) EXPECT_GT(deviation, 0);
  EXPECT_LT(errors.memory, errors.framework_memory);
}

TEST(ErrorModel, WhatIsMissingIsNamed) {
  struct Row {
    const char* pointer;  ///< of what is removed, or replaced by -1
    bool removed;
    const char* named;
  };
  const Row rows[] = {
      // pointer, removed, what the message names
      {"/device", true, "/device"},
      {"/device/anchored", true, "/device/anchored"},
      {"/family/conv_3d", true, "/family/conv_3d"},
      {"/kernel/loss", false, "/kernel/loss"},
      {"/transfers/source/link", true, "/transfers/source/link"},
      {"/family/source", true, "/family/source/conv_1x1"},
  };
  for (const Row& row : rows) {
    Json document = shipped();
    const Json::json_pointer pointer(row.pointer);
    if (row.removed)
      document.at(pointer.parent_pointer()).erase(pointer.back());
    else
      document.at(pointer) = -1;
    const std::string message =
        test::message_of<InputError>([&] { error_model_from_json(document, "errors.json"); });
    EXPECT_THAT(message, AllOf(HasSubstr("errors.json"), HasSubstr(row.named))) << row.pointer;
  }
}

TEST(ErrorModel, DevicesAndMemoryByWhatIsKnownOfThem) {
  const ErrorModel& errors = error_model();
  Software unknown, framework;
  unknown.shipped = false;
  framework.kept["conv_forward"] = {.input = true};
  struct Row {
    const char* name;
    const char* device;
    int units;
    Software software;
    bool anchored;
    Tier tier;
    double device_deviation, memory_deviation;
  };
  const double placed = errors.memory;
  const Row rows[] = {
      // name, device, units, software, anchored, tier, deviation of the device, of memory
      {"shipped", "a100-80", 108, {}, false, Tier::Calibrated, errors.calibrated_device, placed},
      {"no units", "a100-80", 0, {}, false, Tier::DataSheet, errors.data_sheet_device, placed},
      {"own device", "", 108, {}, false, Tier::DataSheet, errors.data_sheet_device, placed},
      {"own software", "a100-80", 108, unknown, false, Tier::DataSheet, errors.data_sheet_device,
       placed},
      {"anchored", "", 0, {}, true, Tier::Calibrated, errors.anchored_device, placed},
      {"framework", "a100-80", 108, framework, false, Tier::Calibrated, errors.calibrated_device,
       errors.framework_memory},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    MachineProfile machine;
    machine.device.name = row.device;
    machine.device.units = row.units;
    machine.software = row.software;
    if (row.anchored) machine.calibrated[row.software.name] = {};
    EXPECT_EQ(machine.estimate_tier(), row.tier);
    EXPECT_EQ(device_deviation(errors, machine), row.device_deviation);
    EXPECT_EQ(memory_deviation(errors, machine), row.memory_deviation);
  }
}

}  // namespace
}  // namespace stratplan
