#pragma once
// A device and its kernels. Stream-shaped: enqueue returns at once, results are there after
// synchronize or behind an event; a processor's stream is an inline queue that has always finished.
// Buffers belong to the backend; nobody else dereferences them.
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

namespace stratplan {

/// What changes from one training step to the next. It lies in the backend's memory and kernels
/// read it as they run, so that work which was captured once goes on with the numbers of the step
/// in which it is replayed.
struct StepNumbers {
  std::int64_t step = 0;  ///< from 0
  double learning_rate = 0;
  double mean_bias = 1;    ///< Adam: 1 - beta1^(step + 1), for the running means begin at zero
  double square_bias = 1;  ///< Adam: 1 - beta2^(step + 1)
};

/// What a kernel may depend on beyond its description, its buffers and the shapes in them.
struct KernelContext {
  std::uint64_t seed = 0;
  const StepNumbers* now = nullptr;  ///< in the backend's memory
  /// name; random numbers are keyed by (seed, layer, step) and counted by global element index
  std::string_view layer;
  Region region;  ///< where the output lies in its global tensor
  Shape global;
  double momentum = 0;  ///< this and what follows: optimizers
  double weight_decay = 0;
  double beta1 = 0.9;                   ///< Adam
  double beta2 = 0.999;                 ///< Adam
  double epsilon = 1e-8;                ///< Adam
  double trust = 0.001;                 ///< Lars
  std::int64_t scale_growth_steps = 0;  ///< AdjustLossScale (loss_scaling.hpp)
};

/// A kernel made ready for one description: primitives created, implementation chosen, constants
/// folded. Made at plan time, run many times.
class PreparedKernel {
 public:
  virtual ~PreparedKernel() = default;
  /// Scratch memory that a run needs; runs on one stream may share it.
  virtual Bytes workspace() const { return {0}; }
  /// Which implementation was chosen ("jit:avx512_core", "own"), for reports.
  virtual std::string implementation() const = 0;
};

/// Work that was enqueued once and may be done any number of times, at the same addresses and with
/// the same arguments.
class CapturedWork {
 public:
  virtual ~CapturedWork() = default;
};

/// What a device says of itself.
struct DeviceInfo {
  std::string name;  ///< of the model: "NVIDIA H200"
  Bytes memory{};
};

/// What a kernel of a communication library takes from the kernels beside it: blocks of 512
/// threads, each of which keeps its place on the device until the end, copy memory, no faster than
/// a link would ask for.
struct EmulatedTraffic {
  int blocks = 0;
  Bytes bytes{};           ///< copied by all of them together: read once and written once
  double bytes_per_s = 0;  ///< at most
};

class Backend {
 public:
  using Event = std::int64_t;
  static constexpr Event none = -1;

  virtual ~Backend() = default;
  virtual std::string name() const = 0;  ///< as make_backend knows it
  /// Device memory, aligned to 64 bytes at least. Throws EnvironmentError if there is none left.
  virtual void* allocate(Bytes bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
  /// Memory of the host, aligned to 64 bytes, from and to which uploads and downloads are quickest:
  /// where the driver can pin it, pinned.
  virtual void* allocate_host(Bytes bytes) {
    void* memory = std::aligned_alloc(64, (static_cast<std::size_t>(bytes.value) / 64 + 1) * 64);
    if (memory == nullptr)
      throw EnvironmentError("out of memory: " + std::to_string(bytes.value) + " bytes");
    return memory;
  }
  virtual void release_host(void* memory) noexcept { std::free(memory); }
  /// Names of the implementations among which it is worth measuring, the one chosen by rule first;
  /// none if there is nothing to choose.
  virtual std::vector<std::string> choices(const Kernel&) { return {}; }
  /// `choice`: one of choices(kernel), or empty for what the rule says. Throws EnvironmentError if
  /// there is no such implementation here.
  virtual std::unique_ptr<PreparedKernel> prepare(const Kernel& kernel,
                                                  const std::string& choice) = 0;
  std::unique_ptr<PreparedKernel> prepare(const Kernel& kernel) { return prepare(kernel, {}); }
  /// Reads and writes in the order that kernel.hpp documents; `workspace` has at least
  /// kernel.workspace() bytes.
  virtual void enqueue(Stream stream, PreparedKernel& kernel, std::span<const void* const> reads,
                       std::span<void* const> writes, void* workspace,
                       const KernelContext& context) = 0;
  virtual void upload(Stream stream, void* device, const void* host, Bytes bytes) = 0;
  virtual void download(Stream stream, void* host, const void* device, Bytes bytes) = 0;
  /// The moment at which the stream gets here. `again`: an event of before that is of no more
  /// interest, if there is one.
  virtual Event record(Stream stream, Event again = none) = 0;
  /// From one event to another, on streams that were synchronized since.
  virtual Seconds elapsed(Event from, Event to) = 0;
  virtual void wait(Stream stream, Event event) = 0;
  /// How many runs of a kernel are to be timed at once, as a launch and an event take time of their
  /// own; at most, where they are captured.
  virtual int runs_per_timing() const { return 1; }
  virtual void synchronize(Stream stream) = 0;
  /// Whether work can be captured and replayed, which saves launching its parts.
  virtual bool captures() const { return false; }
  /// Calls `enqueue`, and keeps what it puts on the streams, and how they wait for each other,
  /// instead of doing it. In there the host may not wait or allocate, and no kernel may be run that
  /// was never run before. Throws what `enqueue` throws; EnvironmentError: the device cannot.
  /// Requires captures().
  virtual std::unique_ptr<CapturedWork> capture(const std::function<void()>& enqueue);
  /// Does it as one piece of work on the stream of Stream::Compute.
  virtual void replay(CapturedWork& work);
  /// Nothing where the host is the device.
  virtual std::optional<DeviceInfo> device() const { return std::nullopt; }
  /// Of the device's memory, by all who use it, just now. Nothing where the host is the device.
  virtual std::optional<Bytes> used_memory() const { return std::nullopt; }
  /// Cycles per second of the device's processors, measured as this is called, on the stream of
  /// Stream::Compute, which is waited for; 0 if there is no way to know.
  virtual double clock() { return 0; }
  /// Whether a communication library's kernels can be emulated.
  virtual bool emulates_traffic() const { return false; }
  /// Goes through both buffers of so many bytes again and again, as long as there is something to
  /// copy. Requires emulates_traffic(), and both at least a MiB.
  virtual void enqueue_traffic(Stream stream, const EmulatedTraffic& traffic, void* to,
                               const void* from, Bytes buffer);
  /// What libraries for the device know the stream by (cudaStream_t); null on hosts.
  virtual void* native_stream(Stream) { return nullptr; }
};

/// "cuda", or "cuda:tf32", which lets tensor cores round the factors of convolutions to 10 bits.
bool is_cuda(std::string_view name);
/// Of backends that compute on floats alone. Throws EnvironmentError for what mixed precision
/// needs.
void require_single_precision(const Kernel& kernel, const std::string& backend);
/// "reference", "cpu" or one of is_cuda; throws EnvironmentError naming the CMake option if that
/// one was not built. `threads`: per rank, for processors.
std::unique_ptr<Backend> make_backend(std::string_view name, int threads);
/// Plain loops, no packages: the executable specification, always built (runtime/reference).
std::unique_ptr<Backend> make_reference_backend();
/// oneDNN and own loops (runtime/cpu, or runtime/stub).
std::unique_ptr<Backend> make_cpu_backend(int threads);
/// cuDNN and own kernels (runtime/cuda, or runtime/stub).
std::unique_ptr<Backend> make_cuda_backend(bool tf32);
/// Names, unlike anywhere, of those that this process may use; none without a driver.
std::vector<std::string> cuda_devices();
/// The one that backends made by this thread from now on work on. Throws EnvironmentError.
void use_cuda_device(int device);
/// Whether the real part was linked, and what it says of itself ("oneDNN 2.6.3, AVX2"): for doctor.
struct PartInfo {
  bool built = false;
  std::string description;
  std::map<std::string, std::string>
      versions{};  ///< of its packages, by name; where there is more than one
};
PartInfo cpu_part();
/// What its timings are only comparable under: its name and, if it has packages and kernels that
/// may change, their versions.
std::string describe_backend(std::string_view name);
PartInfo cuda_part();
PartInfo mpi_part();
PartInfo hdf5_part();

}  // namespace stratplan
