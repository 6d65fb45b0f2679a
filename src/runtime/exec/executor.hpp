#pragma once
// Runs a program on a backend and a communicator. Memory, kernels, pointers and groups are prepared
// once. Each iteration then walks over the ops in program order and times each op. On devices that
// can capture work, runs of ops are captured once and replayed instead.
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

/// Settings of training that are neither in the network nor in the plan.
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
  LossScaleSettings loss_scale{};  ///< used if gradients are F16

  double learning_rate_at(std::int64_t step) const {
    return learning_rate * factor(schedule, step);
  }
  /// Returns the numbers of a step for parameters whose learning rate is `rate` times the usual
  /// one.
  StepNumbers numbers_at(std::int64_t step, double rate = 1) const;
};

class Executor {
 public:
  /// Allocates the arena and the persistent memory, in which plan_buffers() placed the program's
  /// buffers, and fills the persistent memory with zeros. Prepares each distinct kernel once, and
  /// makes the groups of the collectives. Called by all ranks together, because all members make a
  /// group together. All arguments but `settings` must outlive the executor. Throws
  /// EnvironmentError if memory runs out.
  Executor(const Network& network, const Program& program, Backend& backend,
           Communicator& communicator, DataSource& data, const TrainingSettings& settings,
           FlightRecorder recorder = {});
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Called with the index of an op that has just finished.
  using AfterOp = std::function<void(std::size_t op)>;

  /// Runs one iteration. Without concurrent streams, each op ends before the next op begins. With
  /// concurrent streams, communication overlaps kernels, up to the op that depends on the
  /// communication. An op has ended when `after_op` is called for it. Throws CommunicationError.
  void run(std::int64_t iteration, const AfterOp& after_op = {});
  /// Returns when each op of the last iteration began and ended; empty if ops are replayed.
  std::span<const Span> spans() const { return replays() ? std::span<const Span>() : spans_; }
  /// Returns the steady_time() at which the last iteration began, from which spans() count.
  Seconds started() const { return started_; }
  /// From the second iteration on, runs of ops that need no host are captured once and replayed
  /// (segments.hpp). Results stay the same. Ops are still launched one by one if there are no such
  /// runs, and in iterations with an after_op. Requires backend.captures(). If the device cannot
  /// capture an op, the iteration that captures it throws EnvironmentError.
  void replay_ops();
  ReplayCount replay_count() const;
  /// Returns whether this rank replays some of its ops.
  bool replays() const { return !segments_.empty(); }
  /// Discards the captured work. From now on each op is launched and timed on its own again.
  void launch_ops();
  const Program& program() const { return program_; }
  /// Returns the last iteration's losses, in the network's order and without their weights. A loss
  /// is equal on all ranks that hold its layer, and NaN on other ranks. The numbers are valid until
  /// the next call, and the caller may change them.
  std::span<double> losses();
  /// Returns the weighted sum of the losses.
  double loss();

  /// Copies dense host memory into a whole buffer.
  void upload(BufferId buffer, const void* host);
  /// Copies `bytes` bytes of host memory into a buffer, from the buffer's byte `begin` on.
  void upload(BufferId buffer, Bytes begin, const void* host, Bytes bytes);
  /// Copies a whole buffer into dense host memory.
  void download(BufferId buffer, void* host);
  /// Returns the values of a buffer of type F32, F16 or BF16.
  std::vector<float> floats(BufferId buffer);
  /// Stores what floats() returns in `values`, and reuses the memory of `values`.
  void download_floats(BufferId buffer, std::vector<float>& values);
  void upload_floats(BufferId buffer, const std::vector<float>& values);
  /// Fills the arena with bytes 0xFF, which are NaN in every floating type. If a kernel then reads
  /// memory that was not written, NaN spreads to the results.
  void poison();

  const TrainingSettings& settings() const { return settings_; }
  /// Reads or writes the loss scale on the device. In programs without a scaled loss the setter
  /// does nothing, and the getter returns a scale of 1.
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
  /// The arguments of an op that stay the same in all iterations.
  struct Prepared {
    PreparedKernel* kernel = nullptr;  ///< of a ComputeOp
    std::vector<const void*> reads;
    std::vector<void*> writes;
    KernelContext context;
    HostMemory staged;                  ///< pinned copy of a replayed LoadOp's data
    std::vector<PartOfExchange> parts;  ///< messages of an ExchangeOp, one part per transport
    Communicator* transport = nullptr;  ///< of a CollectiveOp
    Communicator::Group group = 0;      ///< of a CollectiveOp
    std::vector<Stream> awaits;         ///< streams whose communication must end before this op
  };

  DeviceMemory allocate(Bytes bytes);
  HostMemory allocate_host(Bytes bytes);
  std::byte* address(BufferId buffer) const;
  Prepared prepare(const Op& op);
  KernelContext context_of(const Op& op) const;
  Bytes step_numbers() const;
  PreparedKernel* prepare(const Kernel& kernel);
  Communicator& transport(TransportId id) const {
    return communicator_.transport(program_.transports[id]);
  }
  std::vector<PartOfExchange> parts(const ExchangeOp& exchange) const;
  bool captured(const Op& op) const;
  void fill(const DeviceMemory& memory, Bytes bytes, int value);

  void tell(std::int64_t iteration);
  void run(const Segment& segment, std::int64_t iteration, Seconds start, const AfterOp& after_op);
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
  /// StepNumbers on the host: of parameters in no group, then of each parameter group
  HostMemory told_;
  DeviceMemory now_;  ///< the same on the device, where kernels read them
  std::vector<Prepared> prepared_;
  std::vector<Span> spans_;
  Seconds started_{};
  std::vector<double> losses_;                 ///< memory for what losses() returns
  Backend::Event start_ = Backend::none;       ///< start of the iteration
  std::vector<Backend::Event> begins_, ends_;  ///< of each op, on the compute stream
  std::vector<std::uint16_t> stored_;          ///< 16-bit values that are about to be widened
  /// by stream: communication ops that may not have ended
  std::array<std::vector<std::size_t>, 3> under_way_;
  std::vector<Segment> segments_;                    ///< empty if no ops are replayed
  std::vector<std::unique_ptr<CapturedWork>> work_;  ///< by segment; null unless captured
  /// by stream: end of the work captured so far
  std::array<Backend::Event, 3> passed_{Backend::none, Backend::none, Backend::none};
  /// whether an iteration has run. In the first iteration, libraries create the objects that a
  /// later capture needs
  bool ran_ = false;
};

}  // namespace stratplan
