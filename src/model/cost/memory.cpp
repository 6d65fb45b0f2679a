#include "model/cost/memory.hpp"

#include <algorithm>
#include <numeric>

namespace stratplan {
namespace {

Bytes sum(const BytesByClass& by_class) { return std::accumulate(by_class.begin(), by_class.end(), Bytes{}); }

}  // namespace

MemoryUse peak_memory(const Program& program) {
  MemoryUse use;
  use.persistent = program.persistent;
  use.arena = program.arena;
  // Change of what lives, by class, on entering each step. The loss is read after the last one, so it goes two behind.
  std::vector<BytesByClass> changes(program.steps.size() + 2);
  for (const Buffer& buffer : program.buffers) {
    if (buffer.inside >= 0) continue;
    const auto tensor_class = static_cast<std::size_t>(buffer.tensor_class);
    if (buffer.persistent) {
      use.persistent_by_class[tensor_class] += buffer.bytes();
    } else if (buffer.first_step >= 0) {
      changes[static_cast<std::size_t>(buffer.first_step)][tensor_class] += buffer.bytes();
      changes[static_cast<std::size_t>(buffer.last_step) + 1][tensor_class] -= buffer.bytes();
    }
  }
  BytesByClass living{};
  for (const BytesByClass& change : changes) {
    for (std::size_t i = 0; i < living.size(); ++i) living[i] += change[i];
    if (sum(living) > use.fullest) {
      use.fullest = sum(living);
      use.arena_by_class = living;
    }
  }
  return use;
}

}  // namespace stratplan
