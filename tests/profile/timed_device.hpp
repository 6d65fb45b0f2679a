#pragma once
// A device on which only time passes. Each kernel takes the time that the test sets, and addresses
// are not valid on the host. Captures obey the rules of CUDA graphs. A launched kernel takes longer
// than a replayed one, so a test can tell how kernels were timed.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/base/error.hpp"
#include "runtime/capturing.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan::test {

class TimedDevice final : public Backend {
 public:
  static constexpr Seconds launch{10e-6};
  static constexpr double traffic_per_s = 450e9;

  // Properties that a test may set.
  std::function<Seconds(const Kernel&)> duration = [](const Kernel&) { return Seconds{10e-6}; };
  bool captures_work = true;
  int at_once = 20;
  std::function<double()> clock_now = [] { return 0.0; };
  /// of kernels beside so many blocks of traffic; empty: the device emulates no traffic
  std::function<double(int)> slowdown{};
  std::optional<DeviceInfo> info{};
  std::set<std::string> broken{};  ///< choices that cannot be captured
  std::map<std::string, Seconds> choice_durations{};

  // A record of the calls.
  struct Run {
    const void* read;  ///< its first operand, or its first output if it has none
    bool replayed;
  };
  std::vector<Run> runs;
  std::vector<const void*> uploads;
  int captures_made = 0, replays = 0, clock_readings = 0;

  std::string name() const override { return "timed"; }
  void* allocate(Bytes bytes) override {
    refuse_in_capture("allocates");
    const std::uintptr_t address = next_;
    next_ += (static_cast<std::size_t>(bytes.value) + 63) / 64 * 64;
    return reinterpret_cast<void*>(address);
  }
  void release(void*) noexcept override {}
  std::vector<std::string> choices(const Kernel&) override {
    std::vector<std::string> names;
    for (const auto& [name, seconds] : choice_durations) names.push_back(name);
    return names;
  }
  std::unique_ptr<PreparedKernel> prepare(const Kernel& kernel,
                                          const std::string& choice) override {
    auto prepared = std::make_unique<Prepared>();
    prepared->seconds = choice.empty() ? duration(kernel) : choice_durations.at(choice);
    prepared->choice = choice;
    return prepared;
  }
  void enqueue(Stream stream, PreparedKernel& kernel, std::span<const void* const> reads,
               std::span<void* const> writes, void*, const KernelContext&) override {
    auto& prepared = static_cast<Prepared&>(kernel);
    const void* first = reads.empty() ? writes[0] : reads[0];
    if (!capture_) {
      prepared.ran = true;
      return run(stream, first, prepared.seconds + launch, false);
    }
    if (!prepared.ran) refuse_in_capture("runs a kernel for the first time");
    if (broken.contains(prepared.choice)) refuse_in_capture("does what cannot be captured");
    capture_->calls.emplace_back(first, prepared.seconds);
  }
  void upload(Stream, void* device, const void*, Bytes) override {
    if (!capture_) uploads.push_back(device);
  }
  void download(Stream, void* host, const void*, Bytes bytes) override {
    std::memset(host, 0, static_cast<std::size_t>(bytes.value));
  }
  Event record(Stream stream, Event again) override {
    if (capture_) return none;
    if (again == none) {
      again = static_cast<Event>(events_.size());
      events_.emplace_back();
    }
    events_[static_cast<std::size_t>(again)] = of(stream);
    return again;
  }
  Seconds elapsed(Event from, Event to) override {
    refuse_in_capture("reads an event");
    return events_.at(static_cast<std::size_t>(to)) - events_.at(static_cast<std::size_t>(from));
  }
  void wait(Stream stream, Event event) override {
    if (!capture_) of(stream) = std::max(of(stream), events_.at(static_cast<std::size_t>(event)));
  }
  int runs_per_timing() const override { return at_once; }
  void synchronize(Stream stream) override {
    refuse_in_capture("waits for a stream");
    for (Seconds& other : at_)
      // The host's next calls cannot begin before.
      other = std::max(other, of(stream));
    idle_ = true;
  }

  bool captures() const override { return captures_work; }
  std::unique_ptr<CapturedWork> capture(const std::function<void()>& enqueue) override {
    auto work = std::make_unique<Work>();
    {
      const Capturing capturing(capture_, *work);
      enqueue();
    }
    ++captures_made;
    return work;
  }
  void replay(CapturedWork& work) override {
    // The device has waited for the host.
    if (std::exchange(idle_, false)) of(Stream::Compute) += launch;
    for (const auto& [first, seconds] : static_cast<Work&>(work).calls)
      run(Stream::Compute, first, seconds, true);
    ++replays;
  }

  std::optional<DeviceInfo> device() const override { return info; }
  double clock() override {
    refuse_in_capture("reads the clock");
    ++clock_readings;
    return clock_now();
  }
  bool emulates_traffic() const override { return static_cast<bool>(slowdown); }
  void enqueue_traffic(Stream stream, const EmulatedTraffic& traffic, void*, const void*,
                       Bytes) override {
    slowed_by_ = slowdown(traffic.blocks);
    of(stream) += {static_cast<double>(traffic.bytes.value) / traffic.bytes_per_s};
    traffic_ends_ = of(stream);
  }

 private:
  struct Prepared final : PreparedKernel {
    Seconds seconds{};
    std::string choice;
    bool ran = false;
    std::string implementation() const override { return "timed" + choice; }
  };
  struct Work final : CapturedWork {
    std::vector<std::pair<const void*, Seconds>> calls;
  };

  Seconds& of(Stream stream) { return at_[static_cast<std::size_t>(stream)]; }
  void refuse_in_capture(const std::string& what) const {
    if (capture_) throw EnvironmentError("timed: a capture " + what);
  }
  /// Runs slower as long as there is traffic.
  void run(Stream stream, const void* first, Seconds seconds, bool replayed) {
    runs.push_back({first, replayed});
    const Seconds slowly =
        std::max(Seconds{}, std::min(seconds * slowed_by_, traffic_ends_ - of(stream)));
    of(stream) += slowly + (seconds - slowly / slowed_by_);
  }

  std::uintptr_t next_ = std::uintptr_t{1} << 40;
  std::array<Seconds, 3> at_{};
  std::vector<Seconds> events_;
  Work* capture_ = nullptr;
  Seconds traffic_ends_{};
  double slowed_by_ = 1;
  bool idle_ = true;
};

}  // namespace stratplan::test
