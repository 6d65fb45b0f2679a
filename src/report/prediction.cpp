#include "report/prediction.hpp"

#include <fmt/format.h>

#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
#include "model/cost/sensitivity.hpp"
#include "model/cost/simulator.hpp"

namespace stratplan {
namespace {

/// Counts the kernels of each layer of the network.
std::vector<KernelCount> count_by_layer(const std::vector<Program>& programs, int layers,
                                        const MachineProfile& machine) {
  std::vector<std::set<Kernel>> kernels(static_cast<std::size_t>(layers));
  for (const Program& program : programs)
    for (const Op& op : program.ops)
      if (const auto* compute = std::get_if<ComputeOp>(&op.body); compute && op.layer >= 0)
        kernels[static_cast<std::size_t>(op.layer)].insert(compute->kernel);
  std::vector<KernelCount> counts;
  for (const std::set<Kernel>& of_layer : kernels)
    counts.push_back(count_kernels(of_layer, machine));
  return counts;
}

std::vector<Range> ranges_by_layer(const std::vector<Program>& programs,
                                   const std::vector<LayerTimes>& times,
                                   const MachineProfile& machine) {
  std::vector<CriticalPath> parts(times.size());
  for (const Program& program : programs)
    for (const Op& op : program.ops)
      if (op.layer >= 0)
        parts[static_cast<std::size_t>(op.layer)].push_back(part_of(op, program, machine));
  std::vector<Range> ranges;
  for (std::size_t layer = 0; layer < times.size(); ++layer)
    ranges.push_back(
        range_of(times[layer].total().value, deviation_of(sensitivity_of(parts[layer], machine))));
  return ranges;
}

}  // namespace

PlanPrediction predict_plan(const Plan& plan, const Network& network, const MachineProfile& machine,
                            bool every_rank) {
  PlanPrediction result;
  result.programs = every_rank ? programs_of(plan, network) : modelled_programs(plan, network);
  CriticalPath path;
  result.timeline = simulate(result.programs, machine, &path);
  result.steps = durations(result.timeline, result.programs);
  result.layers = times_by_layer(result.programs, result.steps, network.size());
  result.layer_ranges = ranges_by_layer(result.programs, result.layers, machine);
  result.memory = peak_memory(result.programs, machine);
  result.whole = prediction_of(result.timeline.total, path, result.memory.total(), machine);
  result.limit = machine.device.memory;
  result.reserve = reserve(machine, result.limit);
  result.kernels = count_kernels(result.programs, machine);
  result.layer_kernels = count_by_layer(result.programs, network.size(), machine);
  return result;
}

std::string kernels_text(const KernelCount& kernels) {
  const std::size_t estimated = kernels.all - kernels.measured;
  if (kernels.all == 0) return "-";
  if (kernels.measured == 0) return fmt::format("{} estimated", estimated);
  if (estimated == 0) return fmt::format("{} measured", kernels.measured);
  return fmt::format("{} measured, {} estimated", kernels.measured, estimated);
}

Json memory_to_json(const MemoryUse& memory) {
  Json persistent = Json::object(), arena = Json::object();
  for (int i = 0; i < tensor_class_count; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const std::string name(name_of(static_cast<TensorClass>(i)));
    if (memory.persistent_by_class[index].value > 0)
      persistent[name] = memory.persistent_by_class[index].value;
    if (memory.arena_by_class[index].value > 0) arena[name] = memory.arena_by_class[index].value;
  }
  return {{"persistent_bytes", memory.persistent.value},
          {"arena_bytes", memory.arena.value},
          {"workspace_bytes", memory.workspace.value},
          {"data_bytes", memory.data.value},
          {"kept_bytes", memory.kept.value},
          {"persistent_by_class_bytes", persistent},
          {"fullest_by_class_bytes", arena}};
}

Table memory_table(const MemoryUse& memory, Bytes reserve) {
  using enum Table::Align;
  Table table{{{"tensors", Left}, {"persistent"}, {"at the fullest op"}}, {}};
  for (int i = 0; i < tensor_class_count; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const Bytes persistent = memory.persistent_by_class[index],
                arena = memory.arena_by_class[index];
    if (persistent.value + arena.value == 0) continue;
    table.rows.push_back(
        {std::string(name_of(static_cast<TensorClass>(i))), readable(persistent), readable(arena)});
    if (static_cast<TensorClass>(i) == TensorClass::Activation && memory.kept.value > 0)
      table.rows.push_back({"- kept for the backward phase", "", readable(memory.kept)});
  }
  if (memory.arena > memory.fullest)
    table.rows.push_back({"gaps between lifetimes", "", readable(memory.arena - memory.fullest)});
  if (memory.workspace.value > 0)
    table.rows.push_back({"scratch memory of kernels", "", readable(memory.workspace)});
  if (memory.data.value > 0)
    table.rows.push_back({"samples in the data source", readable(memory.data), ""});
  if (reserve.value > 0)
    table.rows.push_back(
        {"reserve: context, unknown scratch, fragmentation", readable(reserve), ""});
  return table;
}

}  // namespace stratplan
