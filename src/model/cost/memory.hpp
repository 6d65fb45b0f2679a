#pragma once
// How much memory a program needs on its rank: its buffer plan, which the runtime allocates by, and
// on top of that the kernels' scratch memory and the data at hand.
#include <array>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

inline constexpr int tensor_class_count = 7;
using BytesByClass = std::array<Bytes, tensor_class_count>;  ///< indexed by TensorClass

struct MemoryUse {
  Bytes persistent{};  ///< parameters, their gradients, optimizer state
  Bytes arena{};       ///< everything that comes and goes within an op
  BytesByClass persistent_by_class{};
  BytesByClass arena_by_class{};  ///< what lives at the program's fullest op; adds up to `fullest`
  Bytes fullest{};                ///< at most `arena`: the rest are gaps between lifetimes
  /// scratch memory: of the kernel that takes most, for they run one after the other
  Bytes workspace{};
  /// what the data source holds for the program's loads: this op's, which are copied into the arena
  Bytes data{};
  Bytes total() const { return persistent + arena + workspace + data; }
};

/// Of one rank. Requires that plan_buffers() has run.
MemoryUse peak_memory(const Program& program, const MachineProfile& machine);
/// Of the rank that needs most.
MemoryUse peak_memory(const std::vector<Program>& programs, const MachineProfile& machine);

}  // namespace stratplan
