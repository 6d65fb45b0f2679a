#include "profile/pace.hpp"

#include <algorithm>
#include <map>

#include "model/base/assert.hpp"

namespace stratplan {

std::vector<Kernel> heaviest_kernels(std::span<const Program> programs,
                                     const MachineProfile& machine, double share) {
  struct Load {
    Kernel kernel;
    Seconds seconds{};
  };
  std::map<std::string, Load> by_key;
  Seconds all{};
  for (const Program& program : programs) {
    for (const Step& step : program.steps) {
      const auto* compute = std::get_if<ComputeStep>(&step.body);
      if (!compute) continue;
      const auto measured = machine.kernels.find(compute->kernel.key());
      if (measured == machine.kernels.end()) continue;
      by_key.try_emplace(measured->first, Load{compute->kernel}).first->second.seconds +=
          measured->second.mean();
      all += measured->second.mean();
    }
  }
  std::vector<Load> loads;
  for (const auto& [key, load] : by_key) loads.push_back(load);
  std::stable_sort(loads.begin(), loads.end(),
                   [](const Load& a, const Load& b) { return a.seconds > b.seconds; });
  std::vector<Kernel> heaviest;
  Seconds covered{};
  for (const Load& load : loads) {
    if (covered >= all * share) break;
    heaviest.push_back(load.kernel);
    covered += load.seconds;
  }
  return heaviest;
}

double pace(const std::vector<Kernel>& kernels, const MachineProfile& before,
            const MachineProfile& now) {
  SP_ASSERT(!kernels.empty(), "no kernels to tell by");
  Seconds then{}, today{};
  for (const Kernel& kernel : kernels) {
    then += before.kernels.at(kernel.key()).mean();
    today += now.kernels.at(kernel.key()).mean();
  }
  return today / then;
}

}  // namespace stratplan
