#pragma once
// The memory that a program needs on its rank. It has three parts: the buffers as plan_buffers()
// places them for the runtime, the kernels' scratch memory, and the data that the data source
// holds.
#include <array>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

inline constexpr int tensor_class_count = 7;
using BytesByClass = std::array<Bytes, tensor_class_count>;  ///< indexed by TensorClass

struct MemoryUse {
  Bytes persistent{};  ///< parameters, their gradients, optimizer state
  Bytes arena{};       ///< all buffers that are allocated and freed within a step
  BytesByClass persistent_by_class{};
  /// live bytes by class, at the op at which their sum is largest; this sum is `fullest`
  BytesByClass arena_by_class{};
  /// largest number of live bytes at any op; `arena` also contains the gaps between placed buffers
  Bytes fullest{};
  /// largest scratch memory of a kernel, since kernels run one after the other
  Bytes workspace{};
  /// bytes that the data source holds for the loads of one step, before loads copy them to the
  /// arena
  Bytes data{};
  Bytes total() const { return persistent + arena + workspace + data; }
};

/// The memory of one rank. Requires that plan_buffers() has run.
MemoryUse peak_memory(const Program& program, const MachineProfile& machine);
/// The memory of the rank that needs most.
MemoryUse peak_memory(const std::vector<Program>& programs, const MachineProfile& machine);

}  // namespace stratplan
