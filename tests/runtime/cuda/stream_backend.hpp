#pragma once
// A device's memory and streams without kernels, for tests of communication between devices.
#include <cuda_runtime_api.h>

#include <array>
#include <string>
#include <vector>

#include "model/base/assert.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan::test {

class StreamBackend final : public Backend {
 public:
  StreamBackend() {
    for (cudaStream_t& stream : streams_)
      check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  }
  ~StreamBackend() override {
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
    for (const cudaStream_t stream : streams_) cudaStreamDestroy(stream);
  }
  StreamBackend(const StreamBackend&) = delete;
  StreamBackend& operator=(const StreamBackend&) = delete;

  std::string name() const override { return "streams"; }
  void* allocate(Bytes bytes) override {
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, static_cast<std::size_t>(bytes.value)), "allocating memory");
    return memory;
  }
  void release(void* memory) noexcept override { cudaFree(memory); }
  std::unique_ptr<PreparedKernel> prepare(const Kernel&, const std::string&) override {
    return nullptr;
  }
  void enqueue(Stream, PreparedKernel&, std::span<const void* const>, std::span<void* const>, void*,
               const KernelContext&) override {
    SP_ASSERT(false, "there are no kernels");
  }
  void upload(Stream stream, void* device, const void* host, Bytes bytes) override {
    check_cuda(cudaMemcpyAsync(device, host, static_cast<std::size_t>(bytes.value),
                               cudaMemcpyHostToDevice, of(stream)),
               "uploading");
  }
  void download(Stream stream, void* host, const void* device, Bytes bytes) override {
    check_cuda(cudaMemcpyAsync(host, device, static_cast<std::size_t>(bytes.value),
                               cudaMemcpyDeviceToHost, of(stream)),
               "downloading");
  }
  Event record(Stream stream, Event again) override {
    if (again == none) {
      again = static_cast<Event>(events_.size());
      check_cuda(cudaEventCreateWithFlags(&events_.emplace_back(), cudaEventDisableTiming),
                 "making an event");
    }
    check_cuda(cudaEventRecord(events_.at(static_cast<std::size_t>(again)), of(stream)),
               "recording an event");
    return again;
  }
  Seconds elapsed(Event, Event) override { return {}; }
  void wait(Stream stream, Event event) override {
    check_cuda(cudaStreamWaitEvent(of(stream), events_.at(static_cast<std::size_t>(event)), 0),
               "waiting for an event");
  }
  void synchronize(Stream stream) override {
    check_cuda(cudaStreamSynchronize(of(stream)), "waiting for a stream");
  }
  void* native_stream(Stream stream) override { return of(stream); }

 private:
  cudaStream_t of(Stream stream) const { return streams_[static_cast<std::size_t>(stream)]; }
  std::array<cudaStream_t, 3> streams_{};
  std::vector<cudaEvent_t> events_;
};

/// Numbers on the device, as long as the backend lives.
template <class T>
class OnDevice {
 public:
  OnDevice(Backend& backend, const std::vector<T>& values)
      : backend_(backend), count_(values.size()), address_(backend.allocate(bytes())) {
    set(values);
  }
  ~OnDevice() { backend_.release(address_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  T* at(std::size_t element = 0) const { return static_cast<T*>(address_) + element; }
  Bytes bytes() const { return {static_cast<std::int64_t>(count_ * sizeof(T))}; }
  void set(const std::vector<T>& values) {
    backend_.upload(Stream::Compute, address_, values.data(), bytes());
    backend_.synchronize(Stream::Compute);
  }
  std::vector<T> get() const {
    std::vector<T> values(count_);
    backend_.download(Stream::Compute, values.data(), address_, bytes());
    backend_.synchronize(Stream::Compute);
    return values;
  }

 private:
  Backend& backend_;
  std::size_t count_;
  void* address_;
};

}  // namespace stratplan::test
