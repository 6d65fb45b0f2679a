#pragma once
// The memory that a program needs on its rank. It has three parts: the buffers as plan_buffers()
// places them for the runtime, the kernels' scratch memory, and the data that the data source
// holds. If MachineProfile::software is a framework, buffers live as that framework keeps them
// (framework_memory.hpp), and the host holds the data.
#include <array>
#include <string>
#include <string_view>
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
  /// largest number of bytes of activations that a backward phase waits for; part of `fullest`
  Bytes kept{};
  /// largest scratch memory of a kernel, since kernels run one after the other
  Bytes workspace{};
  /// bytes that the data source holds for the loads of one step, before loads copy them to the
  /// arena
  Bytes data{};
  Bytes total() const { return persistent + arena + workspace + data; }
};

/// Whether a plan's memory fits: beside the reserve (reserve() in software.hpp), only if it takes a
/// part of the reserve, or not at all. Without a limit (0) all plans fit.
enum class Fit : int { Fits, WithinReserve, DoesNotFit };
/// Returns "fits", "within_reserve" or "does_not_fit".
std::string_view name_of(Fit fit);
Fit fit_of(Bytes memory, Bytes limit, Bytes reserve);
/// Returns a text such as ", which fits only within the reserve of 769 MiB"; empty if a plan fits.
std::string fit_text(Fit fit, Bytes reserve);

/// The memory of one rank. Requires that plan_buffers() has run.
MemoryUse peak_memory(const Program& program, const MachineProfile& machine);
/// The bytes of tensors that live during each op, by class and with persistent ones: without
/// scratch memory, gaps between buffers, and data on the host. Requires that plan_buffers() has
/// run.
std::vector<BytesByClass> memory_over_step(const Program& program, const MachineProfile& machine);
/// The memory of the rank that needs most.
MemoryUse peak_memory(const std::vector<Program>& programs, const MachineProfile& machine);

}  // namespace stratplan
