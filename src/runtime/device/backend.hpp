#pragma once
// A device and its kernels. enqueue() returns at once; results are complete after synchronize() or
// after an event. If the device is the host's processor, work has finished when enqueue() returns.
// Buffers belong to the backend, and no other code dereferences them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.hpp"
#include "model/partition/program/kernel.hpp"
#include "model/partition/program/program.hpp"
#include "runtime/device/emulated_traffic.hpp"

namespace stratplan {

/// The numbers that change from one training step to the next. They lie in the backend's memory,
/// and kernels read them when they run. So captured work uses the numbers of the step in which it
/// is replayed.
struct StepNumbers {
  std::int64_t step = 0;  ///< counts from 0
  double learning_rate = 0;
  double mean_bias = 1;    ///< Adam: 1 - beta1^(step + 1), because running means begin at zero
  double square_bias = 1;  ///< Adam: 1 - beta2^(step + 1)
};

/// Arguments of a kernel besides its description and its buffers.
struct KernelContext {
  std::uint64_t seed = 0;
  const StepNumbers* now = nullptr;  ///< in the backend's memory
  /// the layer's name; random numbers are keyed by (seed, layer, step) and global element index
  std::string_view layer;
  Region region;  ///< where the output lies in its global tensor
  Shape global;
  double momentum = 0;  ///< a setting of the optimizer, as are the members up to `trust`
  double weight_decay = 0;
  double beta1 = 0.9;                   ///< Adam
  double beta2 = 0.999;                 ///< Adam
  double epsilon = 1e-8;                ///< Adam
  double trust = 0.001;                 ///< Lars
  std::int64_t scale_growth_steps = 0;  ///< AdjustLossScale (loss_scaling.hpp)
};

/// A kernel that is ready to run for one description. Its implementation is chosen, its primitives
/// are created and its constants are folded. It is prepared once and runs many times.
class PreparedKernel {
 public:
  virtual ~PreparedKernel() = default;
  /// Scratch memory that a run needs. Runs on one stream may share it.
  virtual Bytes workspace() const { return {0}; }
  /// Name of the chosen implementation ("jit:avx512_core", "own"), for reports.
  virtual std::string implementation() const = 0;
};

/// Work that was captured once and can be replayed any number of times, at the same addresses and
/// with the same arguments.
class CapturedWork {
 public:
  virtual ~CapturedWork() = default;
};

/// A device's own description.
struct DeviceInfo {
  std::string name;  ///< the device's model, for example "NVIDIA H200"
  Bytes memory{};
};

class Backend {
 public:
  using Event = std::int64_t;
  static constexpr Event none = -1;

  virtual ~Backend() = default;
  virtual std::string name() const = 0;  ///< the name that make_backend takes
  /// Allocates device memory, aligned to 64 bytes at least. Throws EnvironmentError if too little
  /// memory is left.
  virtual void* allocate(Bytes bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  /// Allocates host memory for fast uploads and downloads, aligned to 64 bytes. The memory is
  /// pinned if the driver can pin it. Throws EnvironmentError if too little memory is left.
  virtual void* allocate_host(Bytes bytes) {
    void* memory = std::aligned_alloc(64, (static_cast<std::size_t>(bytes.value) / 64 + 1) * 64);
    if (memory == nullptr)
      throw EnvironmentError("out of memory: " + std::to_string(bytes.value) + " bytes");
    return memory;
  }
  virtual void release_host(void* memory) noexcept { std::free(memory); }
  /// Returns the names of the implementations that are worth measuring. The backend's rule chooses
  /// the first of them. The list is empty if there is nothing to choose.
  virtual std::vector<std::string> choices(const Kernel&) { return {}; }
  /// Prepares a kernel. `choice` is one of choices(kernel), or empty to let the backend's rule
  /// choose. Throws EnvironmentError if this backend has no such implementation.
  virtual std::unique_ptr<PreparedKernel> prepare(const Kernel& kernel,
                                                  const std::string& choice) = 0;
  std::unique_ptr<PreparedKernel> prepare(const Kernel& kernel) { return prepare(kernel, {}); }
  /// Enqueues one run of a kernel. `reads` and `writes` are in the order that kernel.hpp documents.
  /// `workspace` has at least kernel.workspace() bytes.
  virtual void enqueue(Stream stream, PreparedKernel& kernel, std::span<const void* const> reads,
                       std::span<void* const> writes, void* workspace,
                       const KernelContext& context) = 0;
  virtual void upload(Stream stream, void* device, const void* host, Bytes bytes) = 0;
  virtual void download(Stream stream, void* host, const void* device, Bytes bytes) = 0;
  /// Records an event: the moment at which the stream reaches this point. `again` is an earlier
  /// event that may be reused, or `none`.
  virtual Event record(Stream stream, Event again = none) = 0;
  /// Returns the time between two events. The events' streams must have been synchronized since.
  virtual Seconds elapsed(Event from, Event to) = 0;
  /// Makes the stream wait for an event; the host does not wait.
  virtual void wait(Stream stream, Event event) = 0;
  /// Returns how many runs of a kernel are timed together, because launches and events take time
  /// themselves. For captured runs this number is an upper limit.
  virtual int runs_per_timing() const { return 1; }
  virtual void synchronize(Stream stream) = 0;
  /// Whether work can be captured and replayed, which saves the launches of single kernels.
  virtual bool captures() const { return false; }
  /// Calls `enqueue`. The work that `enqueue` puts on the streams is recorded instead of run, and
  /// so are the waits of streams for each other. `enqueue` may not wait on the host or allocate,
  /// and every kernel must have run before. Throws the errors of `enqueue`, and EnvironmentError if
  /// the device cannot capture. Requires captures().
  virtual std::unique_ptr<CapturedWork> capture(const std::function<void()>& enqueue);
  /// Enqueues captured work, as a whole, on the stream of Stream::Compute.
  virtual void replay(CapturedWork& work);
  /// Returns the device's description; no value if the host is the device.
  virtual std::optional<DeviceInfo> device() const { return std::nullopt; }
  /// Returns the device memory that all processes use now; no value if the host is the device.
  virtual std::optional<Bytes> used_memory() const { return std::nullopt; }
  /// Returns the clock rate of the device's processors in cycles per second, measured during this
  /// call; 0 if unknown. Waits for the stream of Stream::Compute.
  virtual double clock() { return 0; }
  /// Whether a communication library's kernels can be emulated.
  virtual bool emulates_traffic() const { return false; }
  /// Copies traffic.bytes from `from` to `to`, and starts over at the end of the buffers. Both
  /// buffers have `buffer` bytes, which is at least one MiB. Requires emulates_traffic().
  virtual void enqueue_traffic(Stream stream, const EmulatedTraffic& traffic, void* to,
                               const void* from, Bytes buffer);
  /// Returns the stream's handle in the device's libraries (cudaStream_t); null on hosts.
  virtual void* native_stream(Stream) { return nullptr; }
};

/// Whether the name is "cuda" or "cuda:tf32". Under "cuda:tf32" tensor cores may round the operands
/// of convolutions to 10 bits after the binary point.
bool is_cuda(std::string_view name);
/// Throws EnvironmentError if the kernel belongs to mixed precision. Backends that compute only on
/// floats call this function.
void require_single_precision(const Kernel& kernel, const std::string& backend);
/// Makes a backend by name: "reference", "cpu", or a name for which is_cuda() holds. `threads` is
/// the cpu backend's number of threads per rank. Throws UsageError for another name, and
/// EnvironmentError that names the CMake option if the backend was not built.
std::unique_ptr<Backend> make_backend(std::string_view name, int threads);
/// Makes the backend of plain loops (runtime/reference). It is the executable specification. It
/// needs no packages and is always built.
std::unique_ptr<Backend> make_reference_backend();
/// Makes the backend of oneDNN and this project's own loops (runtime/cpu, or runtime/stub).
std::unique_ptr<Backend> make_cpu_backend(int threads);
/// Makes the backend of cuDNN and this project's own kernels (runtime/cuda, or runtime/stub).
std::unique_ptr<Backend> make_cuda_backend(bool tf32);
/// Returns the globally unique names of the CUDA devices that this process may use; none without a
/// driver.
std::vector<std::string> cuda_devices();
/// Selects the device for backends that this thread makes from now on. Throws EnvironmentError if
/// CUDA cannot select it.
void use_cuda_device(int device);
/// Whether an optional part was built, and its description ("oneDNN 2.6.3, AVX2"), for `doctor`.
struct PartInfo {
  bool built = false;
  std::string description;
  std::map<std::string, std::string>
      versions{};  ///< versions of the part's packages, by name, if there is more than one package
};
PartInfo cpu_part();
/// Returns the backend's name and, if it depends on packages, their versions. Timings are
/// comparable only under equal descriptions.
std::string describe_backend(std::string_view name);
PartInfo cuda_part();
PartInfo mpi_part();
PartInfo hdf5_part();

}  // namespace stratplan
