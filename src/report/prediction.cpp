#include "report/prediction.hpp"

#include <set>

#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
#include "model/cost/simulator.hpp"
#include "planner/prediction.hpp"

namespace stratplan {
namespace {

std::size_t count_unmeasured(const std::vector<Program>& programs, const MachineProfile& machine) {
  std::set<std::string> keys;
  for (const Program& program : programs) {
    for (const Op& op : program.ops) {
      const auto* compute = std::get_if<ComputeOp>(&op.body);
      if (compute && cost_of(compute->kernel, machine).tier != Tier::Measured)
        keys.insert(compute->kernel.key());
    }
  }
  return keys.size();
}

}  // namespace

PlanPrediction predict_plan(const Plan& plan, const Network& network, const MachineProfile& machine,
                            bool every_rank) {
  PlanPrediction result;
  result.programs = every_rank ? programs_of(plan, network) : modelled_programs(plan, network);
  const Timeline timeline = simulate(result.programs, machine);
  result.steps = durations(timeline, result.programs);
  result.layers = times_by_layer(result.programs, result.steps, network.size());
  result.step = timeline.total;
  result.memory = peak_memory(result.programs, machine);
  result.unmeasured = count_unmeasured(result.programs, machine);
  return result;
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
  return {{"persistent_bytes", memory.persistent.value}, {"arena_bytes", memory.arena.value},
          {"workspace_bytes", memory.workspace.value},   {"data_bytes", memory.data.value},
          {"persistent_by_class_bytes", persistent},     {"fullest_by_class_bytes", arena}};
}

Table memory_table(const MemoryUse& memory) {
  using enum Table::Align;
  Table table{{{"tensors", Left}, {"persistent"}, {"at the fullest op"}}, {}};
  for (int i = 0; i < tensor_class_count; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const Bytes persistent = memory.persistent_by_class[index],
                arena = memory.arena_by_class[index];
    if (persistent.value + arena.value == 0) continue;
    table.rows.push_back(
        {std::string(name_of(static_cast<TensorClass>(i))), readable(persistent), readable(arena)});
  }
  table.rows.push_back({"gaps between lifetimes", "", readable(memory.arena - memory.fullest)});
  table.rows.push_back({"scratch memory of kernels", "", readable(memory.workspace)});
  table.rows.push_back({"samples held by the data source", readable(memory.data), ""});
  return table;
}

}  // namespace stratplan
