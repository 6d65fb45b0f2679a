// The backend of one CUDA device: the device that is current when the backend is made. Each Stream
// has a CUDA stream of its own. The communication streams have the higher priority.
#include <cuda_runtime_api.h>

#include <array>
#include <optional>
#include <vector>

#include "model/base/error.hpp"
#include "model/partition/program/contraction.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/cuda_kernel.hpp"
#include "runtime/cuda/cudnn/convolution.hpp"
#include "runtime/cuda/device_clock.hpp"
#include "runtime/cuda/graph.hpp"
#include "runtime/cuda/traffic.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {
namespace {

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(bool tf32)
      : arithmetic_(tf32 ? cudnn::Arithmetic::TF32 : cudnn::Arithmetic::F32) {
    int devices = 0;
    check_cuda(cudaGetDeviceCount(&devices), "looking for devices");
    if (devices == 0) throw EnvironmentError("CUDA: no device");
    int least = 0, greatest = 0;
    check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for stream priorities");
    for (std::size_t stream = 0; stream < streams_.size(); ++stream)
      check_cuda(cudaStreamCreateWithPriority(&streams_[stream], cudaStreamNonBlocking,
                                              stream == index(Stream::Compute) ? least : greatest),
                 "making a stream");
  }
  ~CudaBackend() override {
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
  }
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;

  std::string name() const override {
    return arithmetic_ == cudnn::Arithmetic::TF32 ? "cuda:tf32" : "cuda";
  }

  void* allocate(Bytes bytes) override {
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, static_cast<std::size_t>(bytes.value)), "allocating memory");
    return memory;
  }
  void release(void* memory) noexcept override { cudaFree(memory); }
  void* allocate_host(Bytes bytes) override {
    void* memory = nullptr;
    check_cuda(cudaMallocHost(&memory, static_cast<std::size_t>(bytes.value)),
               "allocating pinned memory of the host");
    return memory;
  }
  void release_host(void* memory) noexcept override { cudaFreeHost(memory); }

  std::vector<std::string> choices(const Kernel& kernel) override {
    return is_contraction(kernel.kind) ? cudnn::convolution_choices(kernel, arithmetic_of(kernel))
                                       : std::vector<std::string>{};
  }
  std::unique_ptr<PreparedKernel> prepare(const Kernel& kernel,
                                          const std::string& choice) override {
    if (is_contraction(kernel.kind))
      return cudnn::make_convolution(kernel, choice, arithmetic_of(kernel));
    return make_own_kernel(kernel);
  }
  void enqueue(Stream stream, PreparedKernel& kernel, std::span<const void* const> reads,
               std::span<void* const> writes, void* workspace,
               const KernelContext& context) override {
    static_cast<CudaKernel&>(kernel).run({reads, writes, workspace, context}, of(stream));
  }

  void upload(Stream stream, void* device, const void* host, Bytes bytes) override {
    copy(stream, device, host, bytes, cudaMemcpyHostToDevice);
  }
  void download(Stream stream, void* host, const void* device, Bytes bytes) override {
    copy(stream, host, device, bytes, cudaMemcpyDeviceToHost);
  }

  Event record(Stream stream, Event again) override {
    if (again == none) {
      again = static_cast<Event>(events_.size());
      check_cuda(cudaEventCreate(&events_.emplace_back()), "making an event");
    }
    check_cuda(cudaEventRecord(events_[static_cast<std::size_t>(again)], of(stream)),
               "recording an event");
    return again;
  }
  Seconds elapsed(Event from, Event to) override {
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, events_[static_cast<std::size_t>(from)],
                                    events_[static_cast<std::size_t>(to)]),
               "reading events");
    return {static_cast<double>(milliseconds) * 1e-3};
  }
  int runs_per_timing() const override { return 20; }
  void wait(Stream stream, Event event) override {
    check_cuda(cudaStreamWaitEvent(of(stream), events_[static_cast<std::size_t>(event)]),
               "waiting for an event");
  }
  void synchronize(Stream stream) override {
    check_cuda(cudaStreamSynchronize(of(stream)), "running kernels");
  }
  void* native_stream(Stream stream) override { return of(stream); }

  bool captures() const override { return true; }
  /// Captures all three streams, whether or not `enqueue` uses them. For this purpose, the
  /// communication streams first wait for the compute stream, and the compute stream waits for them
  /// last.
  std::unique_ptr<CapturedWork> capture(const std::function<void()>& enqueue) override {
    return std::make_unique<Graph>(of(Stream::Compute), [&] {
      fork_ = record(Stream::Compute, fork_);
      for (const Stream beside : {Stream::Halo, Stream::Gradient}) wait(beside, fork_);
      enqueue();
      for (const Stream beside : {Stream::Halo, Stream::Gradient})
        wait(Stream::Compute, join_ = record(beside, join_));
    });
  }
  void replay(CapturedWork& work) override {
    static_cast<Graph&>(work).launch(of(Stream::Compute));
  }

  std::optional<DeviceInfo> device() const override {
    int current = 0;
    check_cuda(cudaGetDevice(&current), "asking for the device");
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, current), "asking for a device's name");
    return DeviceInfo{properties.name, {static_cast<std::int64_t>(properties.totalGlobalMem)}};
  }
  std::optional<Bytes> used_memory() const override {
    std::size_t free = 0, all = 0;
    check_cuda(cudaMemGetInfo(&free, &all), "asking for the device's memory");
    return Bytes{static_cast<std::int64_t>(all - free)};
  }
  double clock() override {
    if (!clock_) clock_.emplace();
    return cycles_per_s_ = clock_->read(of(Stream::Compute));
  }
  bool emulates_traffic() const override { return true; }
  /// The copies keep their rate by counting clock cycles. The number of cycles per second is the
  /// one that clock() measured last.
  void enqueue_traffic(Stream stream, const EmulatedTraffic& traffic, void* to, const void* from,
                       Bytes buffer) override {
    if (cycles_per_s_ == 0 && clock() == 0)
      throw EnvironmentError(
          "CUDA: the device's timer does not advance, so emulated traffic cannot keep its rate");
    stratplan::enqueue_traffic(traffic, to, from, buffer, cycles_per_s_, of(stream));
  }

 private:
  cudnn::Arithmetic arithmetic_of(const Kernel& kernel) const {
    return cudnn::arithmetic_of(kernel.type, arithmetic_);
  }
  static constexpr std::size_t index(Stream stream) { return static_cast<std::size_t>(stream); }
  cudaStream_t of(Stream stream) const { return streams_[index(stream)]; }

  void copy(Stream stream, void* to, const void* from, Bytes bytes, cudaMemcpyKind kind) {
    check_cuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes.value), kind, of(stream)),
               "copying");
  }

  cudnn::Arithmetic arithmetic_;
  std::array<cudaStream_t, 3> streams_{};
  std::vector<cudaEvent_t> events_;
  Event fork_ = none, join_ = none;  ///< begin and end of a capture, reused by later captures
  std::optional<DeviceClock> clock_;
  double cycles_per_s_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(bool tf32) {
  return std::make_unique<CudaBackend>(tf32);
}

}  // namespace stratplan
