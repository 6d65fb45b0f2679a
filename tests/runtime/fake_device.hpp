#pragma once
// A device of another kind than the host, for tests where there is none: its addresses are nobody's (who dereferences one crashes), and nothing that is
// enqueued happens before somebody waits for it. Kernels are the reference's.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "model/base/assert.hpp"
#include "runtime/backend.hpp"

namespace stratplan::test {

class FakeDevice final : public Backend {
 public:
  FakeDevice() : addresses_(reserve(PROT_NONE)), memory_(reserve(PROT_READ | PROT_WRITE)), kernels_(make_reference_backend()) {}
  ~FakeDevice() override {
    munmap(addresses_, size);
    munmap(memory_, size);
  }
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;

  std::string name() const override { return "fake"; }
  void* allocate(Bytes bytes) override {
    std::byte* address = addresses_ + used_;
    used_ += (static_cast<std::size_t>(bytes.value) + 63) / 64 * 64;
    SP_ASSERT(used_ <= size, "{} bytes of {}", used_, size);
    return address;
  }
  void release(void*) noexcept override {}
  std::unique_ptr<PreparedKernel> prepare(const Kernel& kernel, const std::string& choice) override { return kernels_->prepare(kernel, choice); }
  void enqueue(Stream stream, PreparedKernel& kernel, std::span<const void* const> reads, std::span<void* const> writes, void* workspace,
               const KernelContext& context) override {
    std::vector<const void*> from;
    for (const void* read : reads) from.push_back(real(read));
    std::vector<void*> into;
    for (void* write : writes) into.push_back(real(write));
    void* scratch = workspace ? real(workspace) : nullptr;
    later(stream, [=, this, &kernel] { kernels_->enqueue(stream, kernel, from, into, scratch, context); });
  }
  void upload(Stream stream, void* device, const void* host, Bytes bytes) override {
    later(stream, [=, to = real(device)] { std::copy_n(static_cast<const std::byte*>(host), bytes.value, static_cast<std::byte*>(to)); });
  }
  void download(Stream stream, void* host, const void* device, Bytes bytes) override {
    later(stream, [=, from = real(device)] { std::copy_n(static_cast<const std::byte*>(from), bytes.value, static_cast<std::byte*>(host)); });
  }
  Event record(Stream stream, Event) override { return static_cast<Event>(stream) * events_of_a_stream + queue(stream).issued; }
  Seconds elapsed(Event, Event) override { return {}; }
  void wait(Stream stream, Event event) override {
    later(stream, [=, this] { run(queues_.at(static_cast<std::size_t>(event / events_of_a_stream)), event % events_of_a_stream); });
  }
  void synchronize(Stream stream) override { run(queue(stream), queue(stream).issued); }

 private:
  struct Queue {
    std::deque<std::function<void()>> waiting;
    std::int64_t issued = 0, done = 0;
  };
  static constexpr std::size_t size = std::size_t{1} << 28;
  static constexpr Event events_of_a_stream = Event{1} << 40;

  static std::byte* reserve(int protection) {
    void* memory = mmap(nullptr, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    SP_ASSERT(memory != MAP_FAILED, "{} bytes of address space", size);
    return static_cast<std::byte*>(memory);
  }
  std::byte* real(const void* address) const {
    const auto offset = static_cast<const std::byte*>(address) - addresses_;
    SP_ASSERT(offset >= 0 && offset <= static_cast<std::ptrdiff_t>(used_), "{} is no address of the device", address);
    return memory_ + offset;
  }
  Queue& queue(Stream stream) { return queues_[static_cast<std::size_t>(stream)]; }
  void later(Stream stream, std::function<void()> work) {
    queue(stream).waiting.push_back(std::move(work));
    ++queue(stream).issued;
  }
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
};

}  // namespace stratplan::test
