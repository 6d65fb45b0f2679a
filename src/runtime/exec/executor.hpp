#pragma once
// Runs a program on a backend and a communicator. Everything is prepared once (memory, kernels,
// pointers, groups); then each iteration is one walk over the steps, in program order, and is timed
// step by step; or, where the device can, runs of steps are captured and replayed.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "model/network/network.hpp"
#include "model/partition/program/program.hpp"
#include "model/plan/timeline.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/communicator.hpp"
#include "runtime/device/loss_scaling.hpp"
#include "runtime/exec/schedule.hpp"
#include "runtime/exec/segments.hpp"
#include "runtime/io/data.hpp"
#include "runtime/watch/flight_recorder.hpp"

namespace stratplan {

/// What training depends on beyond network and plan.
struct TrainingSettings {
  std::uint64_t seed = 1;
  double learning_rate = 0.01;
  double momentum = 0.9;
  double weight_decay = 0;
  double beta1 = 0.9;              ///< Adam
  double beta2 = 0.999;            ///< Adam
  double epsilon = 1e-8;           ///< Adam
  double trust = 0.001;            ///< LARS
  Schedule schedule{};             ///< of the learning rate
  LossScaleSettings loss_scale{};  ///< where gradients are F16

  double learning_rate_at(std::int64_t step) const {
    return learning_rate * factor(schedule, step);
  }
  StepNumbers numbers_at(std::int64_t step) const;
};

class Executor {
 public:
  /// Allocates the arena and the persistent memory (zeroed) as the buffer plan says, prepares the
  /// kernels (equal ones once), and makes the groups, which all ranks must therefore do together.
  /// All arguments but the settings must outlive the executor. Throws EnvironmentError: no memory
  /// left.
  Executor(const Network& network, const Program& program, Backend& backend,
           Communicator& communicator, DataSource& data, const TrainingSettings& settings,
           FlightRecorder recorder = {});
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Called with the index of a step that has just finished.
  using AfterStep = std::function<void(std::size_t step)>;

  /// One training iteration. Without concurrent streams each step is finished before the next
  /// begins; with them communication goes on beside the kernels, up to a step that depends on it.
  /// `after_step` has each step finished first. Throws CommunicationError.
  void run(std::int64_t iteration, const AfterStep& after_step = {});
  /// Of the last iteration, one per step; none where steps are replayed.
  std::span<const Span> spans() const { return replays() ? std::span<const Span>() : spans_; }
  /// Behind the first iteration, steps in which the host has no part are captured, once, and
  /// replayed (segments.hpp), with the same results; nothing changes if there are none. Iterations
  /// that call after_step run as before. Requires backend.captures(). If the device refuses, the
  /// next iteration throws EnvironmentError.
  void replay_steps();
  ReplayCount replay_count() const;
  /// From now on each step is launched on its own again, and timed: forgets what was captured.
  void launch_ops();
  /// Of the last iteration: the same on all ranks.
  double loss();

  /// Moves a whole buffer between the device and dense host memory.
  void upload(BufferId buffer, const void* host);
  /// A part of a buffer, from byte `begin`.
  void upload(BufferId buffer, Bytes begin, const void* host, Bytes bytes);
  void download(BufferId buffer, void* host);
  /// The numbers of a buffer of floats, or of a narrower type.
  std::vector<float> floats(BufferId buffer);
  /// The same into `values`, whose room is used again.
  void download_floats(BufferId buffer, std::vector<float>& values);
  void upload_floats(BufferId buffer, const std::vector<float>& values);
  /// Fills the arena with bytes 0xFF (not a number in every floating type): what is then read
  /// before it is written shows.
  void poison();

  const TrainingSettings& settings() const { return settings_; }
  /// Of programs that scale the loss; nothing happens in others, whose scale is 1.
  void set_loss_scaling(const LossScaling& scaling);
  LossScaling loss_scaling();

  struct Memory {
    Bytes arena{};
    Bytes persistent{};
    Bytes workspace{};
    Bytes total() const { return arena + persistent + workspace; }
  };
  Memory memory() const { return memory_; }

 private:
  template <void (Backend::*release)(void*) noexcept>
  struct Release {
    Backend* backend;
    void operator()(void* memory) const noexcept { (backend->*release)(memory); }
  };
  using DeviceMemory = std::unique_ptr<void, Release<&Backend::release>>;
  using HostMemory = std::unique_ptr<void, Release<&Backend::release_host>>;

  struct PartOfExchange {
    Communicator* transport;
    std::vector<Communicator::Parcel> sends, receives;
  };
  /// A step with everything looked up that does not change from iteration to iteration.
  struct Prepared {
    PreparedKernel* kernel = nullptr;  ///< of a compute step
    std::vector<const void*> reads;
    std::vector<void*> writes;
    KernelContext context;
    HostMemory staged;                  ///< what a replay loads, filled before it; null: nothing
    std::vector<PartOfExchange> parts;  ///< of an exchange: one for each way that its messages go
    Communicator* transport = nullptr;  ///< of a collective
    Communicator::Group group = 0;      ///< of it
    std::vector<Stream> awaits;  ///< on which something is under way that this step depends on
  };

  DeviceMemory allocate(Bytes bytes);
  HostMemory allocate_host(Bytes bytes);
  std::byte* address(BufferId buffer) const;
  Prepared prepare(const Op& op);
  PreparedKernel* prepare(const Kernel& kernel);
  Communicator& transport(TransportId id) const {
    return communicator_.transport(program_.transports[id]);
  }
  std::vector<PartOfExchange> parts(const ExchangeOp& exchange) const;
  bool captured(const Op& op) const;
  void fill(const DeviceMemory& memory, Bytes bytes, int value);

  bool replays() const { return !segments_.empty(); }
  void tell(std::int64_t iteration);
  void run(const Segment& segment, std::int64_t iteration, Seconds start,
           const AfterStep& after_step);
  void note_spans();
  void finish(Stream stream, Seconds start);
  void follow(std::size_t index, Seconds start);
  void execute(const Op& op, Prepared& prepared, std::int64_t iteration);
  void compute(Prepared& prepared);
  std::span<const std::byte> contents(const Op& op, std::int64_t iteration);
  void communicate(const Op& op, const Prepared& prepared);
  void communicate(const CollectiveOp& collective, Stream stream, const Prepared& prepared);

  void replay(std::size_t segment, std::int64_t iteration, Seconds start);
  void capture(std::size_t segment);
  void enqueue(const Segment& segment);
  void follow_stream(Stream stream);

  const Network& network_;
  const Program& program_;
  Backend& backend_;
  Communicator& communicator_;
  DataSource& data_;
  TrainingSettings settings_;
  FlightRecorder recorder_;
  Memory memory_;
  std::map<Kernel, std::unique_ptr<PreparedKernel>> kernels_;
  DeviceMemory arena_;
  DeviceMemory persistent_;
  DeviceMemory workspace_;
  HostMemory told_;   ///< StepNumbers, on their way
  DeviceMemory now_;  ///< to here, where kernels read them
  std::vector<Prepared> prepared_;
  std::vector<Span> spans_;
  Backend::Event start_ = Backend::none;       ///< of the iteration
  std::vector<Backend::Event> begins_, ends_;  ///< by step, as the device sees them
  std::vector<std::uint16_t> stored_;          ///< narrow numbers on their way to floats
  std::array<std::vector<std::size_t>, 3>
      under_way_;                  ///< by stream: steps whose end has not been seen
  std::vector<Segment> segments_;  ///< none: no steps are replayed
  std::vector<std::unique_ptr<CapturedWork>> work_;  ///< by segment; null where it is not replayed
  std::array<Backend::Event, 3> passed_{
      Backend::none, Backend::none, Backend::none};  ///< by stream: behind what is captured so far
  bool ran_ = false;  ///< once, at least: what is made at first use is made
};

}  // namespace stratplan
