#include "model/cost/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "model/base/text.hpp"
#include "model/cost/framework_memory.hpp"
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

Phase phase_of(const Program& program, int op) {
  return program.ops[static_cast<std::size_t>(op)].phase;
}

/// The lives of the buffers that are not persistent, as plan_buffers() set them.
std::vector<Life> planned_lives(const Program& program) {
  std::vector<Life> lives;
  for (const Buffer& buffer : program.buffers)
    if (buffer.inside < 0 && !buffer.persistent && buffer.first_op >= 0)
      lives.push_back({buffer.tensor_class, buffer.bytes(), buffer.first_op, buffer.last_op,
                       buffer.tensor_class == TensorClass::Activation &&
                           phase_of(program, buffer.first_op) == Phase::Forward &&
                           phase_of(program, buffer.last_op) == Phase::Backward});
  return lives;
}

/// The changes of the live bytes at the start of an op, by class; the last entry counts what is
/// kept.
using Changes = std::array<Bytes, tensor_class_count + 1>;

/// By op. `lives` end before the op behind their last one. The loss is read after the last op, so
/// its buffer is freed two entries after that op's.
std::vector<Changes> changes_of(const std::vector<Life>& lives, std::size_t ops) {
  std::vector<Changes> changes(ops + 2);
  for (const Life& life : lives) {
    Changes &begin = changes[static_cast<std::size_t>(life.first)],
            &end = changes[static_cast<std::size_t>(life.last) + 1];
    begin[static_cast<std::size_t>(life.tensor_class)] += life.bytes;
    end[static_cast<std::size_t>(life.tensor_class)] -= life.bytes;
    if (!life.kept) continue;
    begin.back() += life.bytes;
    end.back() -= life.bytes;
  }
  return changes;
}

/// Sets the fullest op, and what lives there.
void find_fullest(const std::vector<Life>& lives, std::size_t ops, MemoryUse& use) {
  BytesByClass living{};
  Bytes kept{};
  for (const Changes& change : changes_of(lives, ops)) {
    for (std::size_t i = 0; i < living.size(); ++i) living[i] += change[i];
    kept += change.back();
    use.kept = std::max(use.kept, kept);
    if (sum(living) <= use.fullest) continue;
    use.fullest = sum(living);
    use.arena_by_class = living;
  }
}

/// The lives of all buffers that are not persistent, as the machine's software keeps them.
std::vector<Life> lives_of(const Program& program, const MachineProfile& machine) {
  return machine.software.kept.empty()
             ? planned_lives(program)
             : framework_lives(program, machine.software, machine.on_gpus());
}

BytesByClass persistent_of(const Program& program, const Software& software) {
  BytesByClass persistent{};
  for (const Buffer& buffer : program.buffers)
    if (buffer.inside < 0 && buffer.persistent && stays(buffer, software))
      persistent[static_cast<std::size_t>(buffer.tensor_class)] +=
          rounded(buffer.bytes(), software);
  return persistent;
}

MemoryUse planned_memory(const Program& program, const MachineProfile& machine) {
  const Software& software = machine.software;
  MemoryUse use;
  use.persistent_by_class = persistent_of(program, software);
  find_fullest(lives_of(program, machine), program.ops.size(), use);
  const bool placed = software.kept.empty();
  use.persistent = placed ? program.persistent : sum(use.persistent_by_class);
  use.arena = placed ? program.arena : use.fullest;
  return use;
}

MemoryUse peak_memory(const Program& program, Workspaces& workspaces,
                      const MachineProfile& machine) {
  MemoryUse use = planned_memory(program, machine);
  use.workspace = workspaces.largest(program);
  if (machine.software.kept.empty()) use.data = loaded(program);
  return use;
}

}  // namespace

std::vector<BytesByClass> memory_over_step(const Program& program, const MachineProfile& machine) {
  const std::vector<Changes> changes = changes_of(lives_of(program, machine), program.ops.size());
  BytesByClass living = persistent_of(program, machine.software);
  std::vector<BytesByClass> by_op;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    for (std::size_t i = 0; i < living.size(); ++i) living[i] += changes[op][i];
    by_op.push_back(living);
  }
  return by_op;
}

std::string_view name_of(Fit fit) {
  constexpr std::array<std::string_view, 3> names{"fits", "within_reserve", "does_not_fit"};
  return names[static_cast<std::size_t>(fit)];
}

Fit fit_of(Bytes memory, Bytes limit, Bytes reserve) {
  if (limit.value == 0 || memory + reserve <= limit) return Fit::Fits;
  return memory <= limit ? Fit::WithinReserve : Fit::DoesNotFit;
}

std::string fit_text(Fit fit, Bytes reserve) {
  if (fit == Fit::Fits) return {};
  if (fit == Fit::DoesNotFit) return ", which does not fit";
  return fmt::format(
      ", which fits only within the reserve of {} for context, scratch and fragmentation",
      readable(reserve));
}

MemoryUse peak_memory(const Program& program, const MachineProfile& machine) {
  Workspaces workspaces(machine);
  return peak_memory(program, workspaces, machine);
}

MemoryUse peak_memory(const std::vector<Program>& programs, const MachineProfile& machine) {
  Workspaces workspaces(machine);
  MemoryUse worst;
  for (const Program& program : programs) {
    const MemoryUse use = peak_memory(program, workspaces, machine);
    if (use.total() > worst.total()) worst = use;
  }
  return worst;
}

}  // namespace stratplan
