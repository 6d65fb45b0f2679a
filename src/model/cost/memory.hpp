#pragma once
// How much memory a program needs on its rank: read off its buffer plan, which the runtime allocates by.
#include <array>

#include "model/partition/program.hpp"

namespace stratplan {

inline constexpr int tensor_class_count = 7;
using BytesByClass = std::array<Bytes, tensor_class_count>;  ///< indexed by TensorClass

struct MemoryUse {
  Bytes persistent{};            ///< parameters, their gradients, optimizer state
  Bytes arena{};                 ///< everything that comes and goes within a step
  BytesByClass persistent_by_class{};
  BytesByClass arena_by_class{}; ///< what lives at the program's fullest step; adds up to `fullest`
  Bytes fullest{};               ///< at most `arena`: the rest are gaps between lifetimes
  Bytes total() const { return persistent + arena; }
};

/// Requires that plan_buffers() has run.
MemoryUse peak_memory(const Program& program);

}  // namespace stratplan
