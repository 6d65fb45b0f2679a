// Timing of kernels on a device that captures work: in batches that are replayed, over buffers that
// have left the caches, while the clock is watched.
#include "profile/kernel_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profile/device_profile.hpp"
#include "profile/measure/load_guard.hpp"
#include "profile/measure/probe.hpp"
#include "profile/measure/stream_clock.hpp"
#include "profile/timed_device.hpp"
#include "runtime/comm/loopback.hpp"

namespace stratplan {
namespace {

using test::TimedDevice;
using testing::DoubleNear;
using testing::Each;

/// Returns a kernel that reads and writes so many bytes.
Kernel relu_of(Bytes bytes) {
  Kernel kernel{.kind = KernelKind::PointwiseForward};
  kernel.x[Axis::C] = kernel.y[Axis::C] = bytes.value / 4;
  return kernel;
}

KernelSamples sample_on(TimedDevice& device, const Kernel& kernel, Bytes arena) {
  KernelSamples samples;
  run_loopback(1, [&](Communicator& alone) {
    const Team team(alone);
    KernelBuffers buffers(device, largest_operands({kernel}), arena);
    StreamClock clock(device);
    samples = sample_kernel(kernel, {}, device, buffers, clock, team, kernel_rule);
  });
  return samples;
}

TEST(SampleKernel, TimesWhatIsReplayed) {
  TimedDevice device;
  const KernelSamples samples = sample_on(device, relu_of({4096}), {1 << 20});
  EXPECT_GE(samples.seconds[0].size(), 3U);
  EXPECT_THAT(samples.seconds[0], Each(DoubleNear(10e-6, 1e-9)))
      << "the time of one run, without launches";
  EXPECT_EQ(device.replays, 2 * (static_cast<int>(samples.seconds[0].size()) + 1))
      << "each timed replay follows another one, and there is a rehearsal";
  EXPECT_EQ(std::ranges::count(device.runs, false, &TimedDevice::Run::replayed), 2)
      << "no kernel runs for the first time within a capture";
  EXPECT_EQ(std::ranges::count(device.runs, true, &TimedDevice::Run::replayed),
            20 * device.replays);
}

TEST(SampleKernel, TimesLaunchesWhereNothingIsCaptured) {
  TimedDevice device;
  device.captures_work = false;
  const KernelSamples samples = sample_on(device, relu_of({4096}), {1 << 20});
  EXPECT_THAT(samples.seconds[0],
              Each(DoubleNear((Seconds{10e-6} + TimedDevice::launch).value, 1e-9)));
  EXPECT_EQ(device.captures_made, 0);
}

TEST(SampleKernel, TimesNoMoreRunsAtOnceThanAnEventNeeds) {
  struct Row {
    double seconds;  ///< of one run
    int at_once;
  };
  for (const auto& [seconds, at_once] :
       {Row{10e-6, 20}, Row{90e-6, 10}, Row{390e-6, 3}, Row{5e-3, 1}}) {
    TimedDevice device;
    device.duration = [one_run = seconds](const Kernel&) { return Seconds{one_run}; };
    const KernelSamples samples = sample_on(device, relu_of({4096}), {1 << 20});
    EXPECT_THAT(samples.seconds[0],
                Each(DoubleNear(seconds, at_once > 1 ? 1e-9 : TimedDevice::launch.value + 1e-9)));
    EXPECT_EQ(std::ranges::count(device.runs, true, &TimedDevice::Run::replayed),
              at_once * device.replays)
        << seconds;
  }
}

TEST(KernelRuns, GoThroughTheArenas) {
  struct Row {
    int sets, most, at_once, captured;
  };
  for (const auto& [sets, most, at_once, captured] :
       {Row{1, 20, 20, 1}, Row{3, 20, 18, 1}, Row{19, 20, 19, 1}, Row{20, 20, 20, 1},
        Row{39, 20, 20, 1}, Row{64, 20, 20, 3}, Row{256, 20, 20, 8}, Row{512, 20, 20, 8},
        Row{5, 1, 1, 5}}) {
    TimedDevice device;
    const Kernel kernel = relu_of({1 << 16});
    KernelBuffers buffers(device, largest_operands({kernel}), {sets * (1 << 16)});
    const auto prepared = device.prepare(kernel, {});
    KernelRuns runs(kernel, *prepared, device, buffers);
    ASSERT_EQ(buffers.sets(), sets);
    runs.launch(0);
    runs.batch(most);
    EXPECT_EQ(runs.at_once(), at_once) << sets;
    device.runs.clear();
    for (int batch = 0; batch < 3 * captured; ++batch) {
      runs.prepare(batch);
      runs.run(batch);
    }
    EXPECT_EQ(device.captures_made, captured) << sets;
    // Each set has left the caches before it is used again: all others were used in between.
    std::map<const void*, std::size_t> last;
    std::size_t closest = device.runs.size();
    for (std::size_t i = 0; i < device.runs.size(); ++i) {
      const auto [place, fresh] = last.try_emplace(device.runs[i].read, i);
      if (!fresh) closest = std::min(closest, i - std::exchange(place->second, i));
    }
    EXPECT_EQ(last.size(), static_cast<std::size_t>(std::min(sets, at_once * captured))) << sets;
    EXPECT_GE(closest, last.size()) << sets;
  }
}

TEST(KernelRuns, FindWhatTheStepBeforeHasWrittenWhereTheyAreLaunched) {
  TimedDevice device;
  device.captures_work = false;
  const Kernel kernel = relu_of({1024});
  KernelBuffers buffers(device, largest_operands({kernel}), {1 << 16});
  const auto prepared = device.prepare(kernel, {});
  KernelRuns runs(kernel, *prepared, device, buffers);
  runs.batch(3);
  for (int batch = 0; batch < 2; ++batch) {
    device.uploads.clear();
    device.runs.clear();
    runs.prepare(batch);
    runs.run(batch);
    std::vector<const void*> read;
    for (const TimedDevice::Run& run : device.runs) read.push_back(run.read);
    EXPECT_EQ(device.uploads, read);
  }
}

TEST(ProfileKernels, LeavesOutWhatDoesNotRunHere) {
  TimedDevice device;
  device.choice_durations = {{"a", {20e-6}}, {"b", {5e-6}}, {"c", {10e-6}}};
  device.broken = {"b"};
  run_loopback(1, [&](Communicator& alone) {
    const Kernel kernel = relu_of({4096});
    const Measurement measured =
        profile_kernels({kernel}, device, Team(alone), {}).kernels.at(kernel.key());
    EXPECT_EQ(measured.choice, "c");
    EXPECT_NEAR(measured.median.value, 10e-6, 1e-9);
  });
  device.broken = {"a", "b", "c"};
  run_loopback(1, [&](Communicator& alone) {
    const Kernel kernel = relu_of({4096});
    EXPECT_NO_THROW(profile_kernels({kernel}, device, Team(alone), {}))
        << "the default choice is none of the three";
  });
  run_loopback(2, [&](Communicator& communicator) {
    TimedDevice mine;
    mine.choice_durations = {{"a", {20e-6}}, {"b", {5e-6}}, {"c", {10e-6}}};
    if (communicator.rank() == 1) mine.broken = {"b"};
    const Kernel kernel = relu_of({4096});
    EXPECT_EQ(
        profile_kernels({kernel}, mine, Team(communicator), {}).kernels.at(kernel.key()).choice,
        "c")
        << "a choice must run on all ranks";
  });
}

TEST(ProfileKernels, KeepsWhatSlowerChoicesTookOnProcessors) {
  for (const bool captures : {false, true}) {
    TimedDevice device;
    device.captures_work = captures;
    device.choice_durations = {{"a", {20e-6}}, {"b", {5e-6}}, {"c", {10e-6}}};
    run_loopback(1, [&](Communicator& alone) {
      const Kernel kernel = relu_of({4096});
      const Measurement measured =
          profile_kernels({kernel}, device, Team(alone), {}).kernels.at(kernel.key());
      EXPECT_EQ(measured.choice, "b");
      ASSERT_EQ(measured.others.size(), captures ? 0U : 2U);
      if (!captures) {
        EXPECT_NEAR((measured.others.at("a") - measured.median).value, 15e-6, 1e-9);
        EXPECT_NEAR((measured.others.at("c") - measured.median).value, 5e-6, 1e-9);
      }
    });
  }
}

TEST(ProfileKernels, TellsHowFarTheClockFell) {
  TimedDevice device;
  run_loopback(1, [&](Communicator& alone) {
    int reading = 0;
    device.clock_now = [&] {
      // The clock is lower behind every bunch.
      return reading++ % 2 == 0 ? 2e9 : 1.6e9;
    };
    const KernelProfile fell = profile_kernels({relu_of({4096})}, device, Team(alone), {});
    EXPECT_DOUBLE_EQ(fell.clock_share, 0.8);
    EXPECT_DOUBLE_EQ(fell.highest_clock, 2e9);
    EXPECT_EQ(device.clock_readings, 2 * 3 * kernel_visits) << "each bunch is measured three times";
    device.clock_now = [] { return 0.0; };
    const KernelProfile unknown = profile_kernels({relu_of({4096})}, device, Team(alone), {});
    EXPECT_EQ(unknown.clock_share, 1);
    EXPECT_EQ(unknown.highest_clock, 0);
  });
}

TEST(ClockWatch, IsDisturbedBelowNineTenthsOfTheHighest) {
  run_loopback(2, [&](Communicator& communicator) {
    TimedDevice mine;
    const Team team(communicator);
    ClockWatch watch(mine, team);
    EXPECT_EQ(watch.share(0, 0), 1) << "the device has no clock";
    mine.clock_now = [&] {
      // Each device has a clock of its own.
      return communicator.rank() == 0 ? 2e9 : 1e9;
    };
    const double before = watch.read();
    mine.clock_now = [&] { return communicator.rank() == 0 ? 1.9e9 : 0.85e9; };
    EXPECT_DOUBLE_EQ(watch.share(before, watch.read()), 0.85);
    EXPECT_DOUBLE_EQ(watch.share(before, before), 1);
  });
  EXPECT_LE((Guarded<int>{0, 0, 0.91}.disturbance()), 1);
  EXPECT_GT((Guarded<int>{0, 0, 0.89}.disturbance()), 1);
  EXPECT_GT((Guarded<int>{0, 0.05, 1}.disturbance()), 1);
}

TEST(ClockWatch, HasTheMeasurementRepeated) {
  TimedDevice device;
  run_loopback(1, [&](Communicator& alone) {
    const Team team(alone);
    ClockWatch watch(device, team);
    int attempts = 0;
    device.clock_now = [&] { return attempts == 1 ? 1e9 : 2e9; };
    least_disturbed(
        team, 3, [&](int) { return ++attempts; }, &watch);
    EXPECT_GE(attempts, 2) << "the clock was low behind the first attempt";
  });
}

TEST(StepOverhead, IsOfStepsThatAreReplayed) {
  TimedDevice device;
  run_loopback(1, [&](Communicator& alone) {
    const Team team(alone);
    const DeviceProfile profile = profile_device(device, team);
    const std::size_t before = static_cast<std::size_t>(
        std::ranges::count(device.runs, false, &TimedDevice::Run::replayed));
    EXPECT_GT(profile.step_overhead.samples, 0);
    EXPECT_GE(before, 2000U) << "the first iteration is launched";
    EXPECT_LT(before, 4000U) << "later iterations are replayed";
    EXPECT_NEAR(profile.launch.value, 10e-6, 1e-9);
  });
}

}  // namespace
}  // namespace stratplan
