#include "model/cost/memory.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "model/cost/op_cost.hpp"

namespace stratplan {
namespace {

Bytes sum(const BytesByClass& by_class) {
  return std::accumulate(by_class.begin(), by_class.end(), Bytes{});
}

Bytes workspace_of(const Kernel& kernel, const MachineProfile& machine) {
  if (!machine.kernels.empty()) {  // without measurements, no time is spent on making a key
    const auto measured = machine.kernels.find(kernel.key());
    if (measured != machine.kernels.end() && measured->second.workspace)
      return *measured->second.workspace;
  }
  return machine.unmeasured_workspace ? machine.unmeasured_workspace(kernel) : Bytes{0};
}

/// Looks up the scratch memory of each distinct kernel once. Programs have few distinct kernels.
class Workspaces {
 public:
  explicit Workspaces(const MachineProfile& machine) : machine_(machine) {}
  Bytes largest(const Program& program) {
    Bytes largest{};
    if (machine_.kernels.empty() && !machine_.unmeasured_workspace)
      return largest;  // no scratch memory is known; saves time with thousands of programs
    for (const Op& op : program.ops)
      if (const auto* compute = std::get_if<ComputeOp>(&op.body))
        largest = std::max(largest, of(compute->kernel));
    return largest;
  }

 private:
  Bytes of(const Kernel& kernel) {
    const auto [place, fresh] = known_.try_emplace(kernel);
    if (fresh) place->second = workspace_of(kernel, machine_);
    return place->second;
  }

  const MachineProfile& machine_;
  std::map<Kernel, Bytes> known_;
};

Bytes loaded(const Program& program) {
  Bytes bytes{};
  for (const LoadOp& load : loads_of(program))
    bytes += load_kernel(load).operands().writes[0].bytes();
  return bytes;
}

MemoryUse planned_memory(const Program& program) {
  MemoryUse use;
  use.persistent = program.persistent;
  use.arena = program.arena;
  // The changes of the live bytes, by class, at the start of each op. The loss is read after the
  // last op, so the loss buffer is freed two entries after that op's entry.
  std::vector<BytesByClass> changes(program.ops.size() + 2);
  for (const Buffer& buffer : program.buffers) {
    if (buffer.inside >= 0) continue;
    const auto tensor_class = static_cast<std::size_t>(buffer.tensor_class);
    if (buffer.persistent) {
      use.persistent_by_class[tensor_class] += buffer.bytes();
    } else if (buffer.first_op >= 0) {
      changes[static_cast<std::size_t>(buffer.first_op)][tensor_class] += buffer.bytes();
      changes[static_cast<std::size_t>(buffer.last_op) + 1][tensor_class] -= buffer.bytes();
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

MemoryUse peak_memory(const Program& program, Workspaces& workspaces) {
  MemoryUse use = planned_memory(program);
  use.workspace = workspaces.largest(program);
  use.data = loaded(program);
  return use;
}

}  // namespace

MemoryUse peak_memory(const Program& program, const MachineProfile& machine) {
  Workspaces workspaces(machine);
  return peak_memory(program, workspaces);
}

MemoryUse peak_memory(const std::vector<Program>& programs, const MachineProfile& machine) {
  Workspaces workspaces(machine);
  MemoryUse worst;
  for (const Program& program : programs) {
    const MemoryUse use = peak_memory(program, workspaces);
    if (use.total() > worst.total()) worst = use;
  }
  return worst;
}

}  // namespace stratplan
