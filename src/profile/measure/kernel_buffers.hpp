#pragma once
// Memory in which kernels are measured as they would run in a program: over buffers that the caches
// no longer hold, but for those that the step before has just written. Buffers of successive runs
// lie one behind the other in large arenas; what is read is never written, so that numbers stay
// harmless.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "runtime/device/backend.hpp"

namespace stratplan {

/// Owned device memory.
using DeviceMemory = std::unique_ptr<std::byte, std::function<void(std::byte*)>>;
DeviceMemory allocate(Backend& backend, Bytes bytes);

/// Writes random numbers between 1/2 and 1, with random signs if asked for, into device memory, or
/// reads it, as a kernel would: through the caches.
class Noise {
 public:
  explicit Noise(Backend& backend, bool signs);
  /// As floats, or as numbers of a narrow type.
  void write(void* device, Bytes bytes, DataType type = DataType::F32) const;
  void read(const void* device, Bytes bytes) const;

 private:
  Backend& backend_;
  std::vector<float> numbers_;
  std::map<DataType, std::vector<std::uint16_t>> narrow_;  ///< the same, rounded
};

/// What the step before usually did with reads of a kernel; the others (weights, saved activations)
/// come from memory. It matters which: what was written has yet to make its way back to memory.
struct RecentUse {
  std::size_t read = 0;
  bool written = true;
};
std::vector<RecentUse> recent_uses(const Kernel& kernel);

class KernelBuffers {
 public:
  /// `largest`: bytes of the reads, and of the writes, of the largest kernel to come. Arenas are at
  /// least `arena` long each.
  KernelBuffers(Backend& backend, Bytes largest, Bytes arena);

  /// Pointers for one run.
  struct Set {
    std::vector<const void*> reads;
    std::vector<void*> writes;
  };
  /// Lays out as many sets for a kernel as the arenas hold (at least one, at most 512), with valid
  /// labels, indices and sums. The last call's sets are void.
  void arrange(const Kernel& kernel);
  int sets() const { return static_cast<int>(sets_.size()); }
  const Set& set(int run) const { return sets_[static_cast<std::size_t>(run) % sets_.size()]; }
  /// Writes and reads what the step before would have.
  void refresh(const Kernel& kernel, int run);
  /// At least this much.
  void* workspace(Bytes bytes);
  /// What kernels know of the training step that they are in.
  const StepNumbers* first_step() const {
    return reinterpret_cast<const StepNumbers*>(step_.get());
  }

 private:
  void place_special(const Kernel& kernel, std::size_t read, const Operand& operand);
  std::vector<std::byte> pool_indices(const Kernel& kernel);

  Backend& backend_;
  Noise noise_;
  Bytes arena_;
  DeviceMemory reads_, writes_, workspace_, step_;
  DataType read_as_ = DataType::F32;  ///< what is to be read is noise of this type
  Bytes workspace_bytes_{};
  std::vector<DeviceMemory> special_;  ///< integers and sums of the kernel at hand
  std::vector<Set> sets_;
};

}  // namespace stratplan
