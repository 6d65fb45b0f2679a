#pragma once
// A device whose memory the host cannot read, for tests on machines without a device. Dereferencing
// its addresses crashes. Enqueued work happens only when somebody waits for it. Kernels are the
// reference backend's. Captured work is kept in the order of the calls, under the rules of CUDA
// graphs.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"
#include "runtime/capturing.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan::test {

class FakeDevice final : public Backend {
 public:
  FakeDevice()
      : addresses_(reserve(PROT_NONE)),
        memory_(reserve(PROT_READ | PROT_WRITE)),
        kernels_(make_reference_backend()) {}
  ~FakeDevice() override {
    munmap(addresses_, size);
    munmap(memory_, size);
  }
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;

  std::string name() const override { return "fake"; }
  void* allocate(Bytes bytes) override {
    refuse_in_capture("allocates");
    std::byte* address = addresses_ + used_;
    used_ += (static_cast<std::size_t>(bytes.value) + 63) / 64 * 64;
    SP_ASSERT(used_ <= size, "{} bytes of {}", used_, size);
    return address;
  }
  void release(void*) noexcept override {}
  std::optional<Bytes> used_memory() const override {
    return Bytes{static_cast<std::int64_t>(used_)};
  }
  std::unique_ptr<PreparedKernel> prepare(const Kernel& kernel,
                                          const std::string& choice) override {
    return kernels_->prepare(kernel, choice);
  }
  void enqueue(Stream stream, PreparedKernel& kernel, std::span<const void* const> reads,
               std::span<void* const> writes, void* workspace,
               const KernelContext& context) override {
    std::vector<const void*> from;
    for (const void* read : reads) from.push_back(real(read));
    std::vector<void*> into;
    for (void* write : writes) into.push_back(real(write));
    void* scratch = workspace ? real(workspace) : nullptr;
    KernelContext there = context;
    if (context.now) there.now = reinterpret_cast<const StepNumbers*>(real(context.now));
    if (ran_.insert(&kernel).second) refuse_in_capture("runs a kernel for the first time");
    later(stream,
          [=, this, &kernel] { kernels_->enqueue(stream, kernel, from, into, scratch, there); });
  }
  void upload(Stream stream, void* device, const void* host, Bytes bytes) override {
    later(stream, [=, to = real(device)] {
      std::copy_n(static_cast<const std::byte*>(host), bytes.value, static_cast<std::byte*>(to));
    });
  }
  void download(Stream stream, void* host, const void* device, Bytes bytes) override {
    later(stream, [=, from = real(device)] {
      std::copy_n(static_cast<const std::byte*>(from), bytes.value, static_cast<std::byte*>(host));
    });
  }
  Event record(Stream stream, Event) override {
    const Event first = static_cast<Event>(stream) * events_of_a_stream;
    return capture_ ? captured_event + first + capture_->of(stream) : first + queue(stream).issued;
  }
  Seconds elapsed(Event, Event) override {
    refuse_in_capture("reads an event");
    return {};
  }
  void wait(Stream stream, Event event) override {
    if ((event >= captured_event) != (capture_ != nullptr))
      throw EnvironmentError("fake: a capture and what is not in it wait for each other");
    const auto from = static_cast<Stream>(event % captured_event / events_of_a_stream);
    const std::int64_t count = event % events_of_a_stream;
    if (capture_) return capture_->add({stream, {}, from, count});
    later(stream, [=, this] { run(queue(from), count); });
  }
  void synchronize(Stream stream) override {
    refuse_in_capture("waits for a stream");
    run(queue(stream), queue(stream).issued);
  }

  bool captures() const override { return true; }
  std::unique_ptr<CapturedWork> capture(const std::function<void()>& enqueue) override {
    auto work = std::make_unique<Work>();
    {
      const Capturing capturing(capture_, *work);
      enqueue();
    }
    ++captures_made_;
    return work;
  }
  /// In a replay, too, each stream runs as late as possible.
  void replay(CapturedWork& work) override {
    constexpr std::array beside{Stream::Halo, Stream::Gradient};
    const Event start = record(Stream::Compute, none);
    for (const Stream stream : beside) wait(stream, start);
    std::array<std::int64_t, 3> before{};
    for (std::size_t stream = 0; stream < before.size(); ++stream)
      before[stream] = queues_[stream].issued;
    for (const auto& [stream, task, from, count] : static_cast<Work&>(work).calls) {
      if (task)
        later(stream, task);
      else
        wait(stream, static_cast<Event>(from) * events_of_a_stream +
                         before[static_cast<std::size_t>(from)] + count);
    }
    for (const Stream stream : beside) wait(Stream::Compute, record(stream, none));
    ++replays_;
  }
  int captures_made() const { return captures_made_; }
  int replays() const { return replays_; }

  /// Enqueues work on host memory on a stream, as a communicator would.
  void later(Stream stream, std::function<void()> task) {
    if (capture_) return capture_->add({stream, std::move(task), {}, 0});
    queue(stream).waiting.push_back(std::move(task));
    ++queue(stream).issued;
  }
  bool owns(const void* address) const {
    return address >= addresses_ && address < addresses_ + size;
  }
  std::byte* real(const void* address) const {
    const auto offset = static_cast<const std::byte*>(address) - addresses_;
    SP_ASSERT(offset >= 0 && offset <= static_cast<std::ptrdiff_t>(used_),
              "{} is no address of the device", address);
    return memory_ + offset;
  }

 private:
  /// One call: a task, or a wait until another stream has done `count` calls.
  struct Call {
    Stream stream;
    std::function<void()> task;
    Stream from;
    std::int64_t count;
  };
  struct Work final : CapturedWork {
    std::vector<Call> calls;
    std::int64_t of(Stream stream) const {
      return std::count_if(calls.begin(), calls.end(),
                           [&](const Call& call) { return call.stream == stream; });
    }
    void add(Call call) { calls.push_back(std::move(call)); }
  };
  struct Queue {
    std::deque<std::function<void()>> waiting;
    std::int64_t issued = 0, done = 0;
  };
  static constexpr std::size_t size = std::size_t{1} << 30;
  static constexpr Event events_of_a_stream = Event{1} << 40, captured_event = Event{1} << 50;

  static std::byte* reserve(int protection) {
    void* memory =
        mmap(nullptr, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    SP_ASSERT(memory != MAP_FAILED, "{} bytes of address space", size);
    return static_cast<std::byte*>(memory);
  }
  void refuse_in_capture(const char* what) const {
    if (capture_) throw EnvironmentError(std::string("fake: a capture ") + what);
  }
  Queue& queue(Stream stream) { return queues_[static_cast<std::size_t>(stream)]; }
  static void run(Queue& queue, std::int64_t up_to) {
    while (queue.done < up_to) {
      const auto work = std::move(queue.waiting.front());
      queue.waiting.pop_front();
      ++queue.done;
      work();
    }
  }

  std::byte *addresses_, *memory_;
  std::size_t used_ = 0;
  std::unique_ptr<Backend> kernels_;
  std::array<Queue, 3> queues_;
  Work* capture_ = nullptr;  ///< the capture in progress, or null
  std::set<PreparedKernel*> ran_;
  int captures_made_ = 0, replays_ = 0;
};

}  // namespace stratplan::test
