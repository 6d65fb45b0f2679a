#pragma once
// Memory in which kernels are measured as they would run in a program. The caches no longer hold a
// run's buffers, except the buffers that the op before would just have used. Buffers of successive
// runs follow each other in large arenas. Kernels never write buffers that are only read, so the
// numbers in these buffers keep their range.
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

/// Writes random numbers between 1/2 and 1, with random signs if requested, into device memory, and
/// reads device memory. Writes and reads go through the caches, like those of a kernel.
class Noise {
 public:
  explicit Noise(Backend& backend, bool signs);
  /// Writes floats, or 16-bit numbers if `type` is a 16-bit type.
  void write(void* device, Bytes bytes, DataType type = DataType::F32) const;
  void read(const void* device, Bytes bytes) const;

 private:
  Backend& backend_;
  std::vector<float> numbers_;
  std::map<DataType, std::vector<std::uint16_t>> narrow_;  ///< the same numbers, rounded
};

/// An operand of a kernel that the op before has usually just written, or just read. Other operands
/// (weights, saved activations) come from memory. Written and read data differ, because written
/// data must still go back to memory.
struct RecentUse {
  std::size_t read = 0;  ///< index in Operands::reads
  bool written = true;   ///< if false, the op before has read the operand
};
std::vector<RecentUse> recent_uses(const Kernel& kernel);

class KernelBuffers {
 public:
  /// `largest`: the most bytes that one kernel reads, or that one writes, in later calls. Each of
  /// the two arenas has at least `arena` bytes.
  KernelBuffers(Backend& backend, Bytes largest, Bytes arena);

  /// The buffers of one run.
  struct Set {
    std::vector<const void*> reads;
    std::vector<void*> writes;
  };
  /// Lays out as many sets for a kernel as the arenas hold, with valid labels, indices and sums.
  /// There is at least one set, and at most 512, or 16 if the kernel reads what it writes. Sets of
  /// earlier calls become invalid.
  void arrange(const Kernel& kernel);
  int sets() const { return static_cast<int>(sets_.size()); }
  const Set& set(int run) const { return sets_[static_cast<std::size_t>(run) % sets_.size()]; }
  /// Writes the buffers of a run that the op before would have written, and reads those that it
  /// would have read (recent_uses).
  void refresh(const Kernel& kernel, int run);
  /// Returns scratch memory of at least `bytes`, valid until a larger request.
  void* workspace(Bytes bytes);
  /// The numbers of the first training step, in device memory.
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
  DataType read_as_ = DataType::F32;  ///< type of the noise in the arena of reads
  Bytes workspace_bytes_{};
  std::vector<DeviceMemory> special_;  ///< valid integers and sums for the current kernel
  std::vector<Set> sets_;
};

}  // namespace stratplan
