#include "planner/prediction.hpp"

#include <algorithm>
#include <set>

#include "model/cost/memory.hpp"
#include "model/cost/simulator.hpp"
#include "model/partition/lower.hpp"

namespace stratplan {

std::vector<Program> programs_of(const Plan& plan, const Network& network) {
  std::vector<Program> programs;
  for (int rank = 0; rank < plan.ranks; ++rank) programs.push_back(lower(network, plan.layers, plan.execution, rank));
  return programs;
}

Prediction predict(const std::vector<Program>& programs, const MachineProfile& machine) {
  return {simulate(programs, machine).total, peak_memory(programs, machine).total()};
}

Prediction predict(const Plan& plan, const Network& network, const MachineProfile& machine) {
  return predict(programs_of(plan, network), machine);
}

std::map<std::string, std::string> fastest_implementations(const std::vector<Program>& programs, const MachineProfile& machine) {
  std::map<std::string, std::string> fastest;
  std::set<Kernel> known;
  for (const Program& program : programs) {
    for (const Step& step : program.steps) {
      const auto* compute = std::get_if<ComputeStep>(&step.body);
      if (!compute || !known.insert(compute->kernel).second) continue;
      const auto measured = machine.kernels.find(compute->kernel.key());
      if (measured != machine.kernels.end() && !measured->second.choice.empty()) fastest.emplace(measured->first, measured->second.choice);
    }
  }
  return fastest;
}

bool fully_measured(const std::vector<Program>& programs, const MachineProfile& machine) {
  std::set<Kernel> known;  // most kernels occur many times
  for (const Program& program : programs) {
    for (const Step& step : program.steps) {
      const auto* compute = std::get_if<ComputeStep>(&step.body);
      if (compute && known.contains(compute->kernel)) continue;
      if (cost_of(step, program, machine).tier == Tier::Estimated) return false;
      if (compute) known.insert(compute->kernel);
    }
  }
  return true;
}

}  // namespace stratplan
