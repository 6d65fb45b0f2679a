#include "profile/interference_profile.hpp"

#include <gtest/gtest.h>

#include "model/base/json/json.hpp"
#include "model/cost/example_machine.hpp"
#include "profile/profile.hpp"
#include "profile/timed_device.hpp"
#include "runtime/comm/loopback.hpp"

namespace stratplan {
namespace {

using test::TimedDevice;

TEST(Interference, IsTheTimeBesideTrafficOverTheTimeAlone) {
  // Slowdown per block. With the second, kernels outlast the traffic at first.
  for (const double each : {1.0 / 64, 1.0 / 4}) {
    TimedDevice device;
    device.clock_now = [] { return 2e9; };
    device.slowdown = [&](int blocks) { return 1 + blocks * each; };
    const std::vector<Kernel> kernels = kernels_interfered_with();
    const std::vector<Interference> rows = profile_interference(device, kernels);
    ASSERT_EQ(rows.size(), 3U);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i].blocks, 8 << i);
      EXPECT_EQ(rows[i].bytes_per_s, emulated_link_bytes_per_s);
      EXPECT_NEAR(rows[i].copied_bytes_per_s, emulated_link_bytes_per_s, 1e6);
      ASSERT_EQ(rows[i].slowdowns.size(), kernels.size());
      for (const auto& [kernel, slowdown] : rows[i].slowdowns)
        EXPECT_NEAR(slowdown, 1 + rows[i].blocks * each, 0.01 * slowdown) << kernel;
    }
    EXPECT_NEAR(hidden_beside_traffic(rows), 1 / (1 + 16 * each), 0.01);
  }
}

TEST(Interference, IsNotMadeUp) {
  TimedDevice deaf;
  deaf.clock_now = [] { return 2e9; };
  EXPECT_TRUE(profile_interference(deaf, kernels_interfered_with()).empty());
  TimedDevice timeless;
  timeless.slowdown = [](int) { return 2.0; };
  EXPECT_TRUE(profile_interference(timeless, kernels_interfered_with()).empty())
      << "without a clock, blocks cannot keep a rate";
}

TEST(Profile, OfOneDeviceStandsOnItsOwn) {
  TimedDevice device;
  device.clock_now = [] { return 1.98e9; };
  device.slowdown = [](int blocks) { return 1 + blocks / 64.0; };
  device.info = DeviceInfo{"Some GPU", {Bytes{80} * (1 << 30)}};
  run_loopback(1, [&](Communicator& alone) {
    Kernel fill{.kind = KernelKind::Fill};
    fill.y[Axis::C] = 1000;
    const ProfileRequest request{
        .ranks = 1, .threads_per_rank = 1, .device = true, .collectives = {}, .kernels = {fill}};
    const MachineProfile machine = run_profile(request, device, Team(alone), round_machine(),
                                               Provenance(Json{{"device", "a processor"}}));
    EXPECT_EQ(machine.device.memory, device.info->memory);
    ASSERT_EQ(machine.levels.size(), 1U);
    EXPECT_EQ(machine.levels[0].name, "gpu");
    EXPECT_EQ(machine.levels[0].ranks, 1);
    EXPECT_EQ(machine.provenance.text("device"), "Some GPU");
    EXPECT_EQ(machine.provenance.json().at("clock_share_worst"), 1);
    EXPECT_TRUE(machine.provenance.text("hidden").starts_with("emulated"));
    ASSERT_TRUE(machine.hidden);
    EXPECT_NEAR(*machine.hidden, 0.8, 0.01);
    EXPECT_GT(machine.device.rate(Math::Bf16), 0);

    const Json document = to_json(machine);
    validate_json(document, "machine", "test");
    EXPECT_EQ(document.at("interference").at("emulated"), true);
    const MachineProfile back = machine_from_json(document, "test");
    EXPECT_EQ(to_json(back), document);
    EXPECT_EQ(back.interference.size(), 3U);

    // A request for another kernel leaves the interference as it was.
    device.slowdown = [](int) { return 7.0; };
    fill.y[Axis::C] = 2000;
    const MachineProfile more =
        run_profile({.ranks = 1, .threads_per_rank = 1, .collectives = {}, .kernels = {fill}},
                    device, Team(alone), machine, {});
    EXPECT_EQ(more.hidden, machine.hidden);
    EXPECT_EQ(more.interference.size(), 3U);
    EXPECT_TRUE(more.provenance.json().contains("hidden"));
    device.info->name = "Another GPU";
    const MachineProfile other =
        run_profile({.ranks = 1, .threads_per_rank = 1, .collectives = {}, .kernels = {fill}},
                    device, Team(alone), machine, {});
    EXPECT_EQ(other.kernels.size(), 1U) << "times of one device do not apply to another";
  });
}

}  // namespace
}  // namespace stratplan
