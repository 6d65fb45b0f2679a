#pragma once
// The memory that a program needs on its rank: the buffer plan, by which the runtime allocates, the
// kernels' scratch memory and the data that the data source holds.
#include <array>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

inline constexpr int tensor_class_count = 7;
using BytesByClass = std::array<Bytes, tensor_class_count>;  ///< indexed by TensorClass

struct MemoryUse {
  Bytes persistent{};  ///< parameters, their gradients, optimizer state
  Bytes arena{};       ///< everything that is allocated and freed within a step
  BytesByClass persistent_by_class{};
  /// live bytes at the program's fullest op; they add up to `fullest`
  BytesByClass arena_by_class{};
  Bytes fullest{};  ///< at most `arena`; the difference is gaps between lifetimes
  /// scratch memory of the kernel that needs most, since kernels run one after the other
  Bytes workspace{};
  /// what the data source holds for the loads of one step, before they are copied into the arena
  Bytes data{};
  Bytes total() const { return persistent + arena + workspace + data; }
};

/// The memory of one rank. Requires that plan_buffers() has run.
MemoryUse peak_memory(const Program& program, const MachineProfile& machine);
/// The memory of the rank that needs most.
MemoryUse peak_memory(const std::vector<Program>& programs, const MachineProfile& machine);

}  // namespace stratplan
