#include "tuner/deciding.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "model/cost/op_cost.hpp"

namespace stratplan {

double chance_of(const Prediction& other, const Prediction& best) {
  return probability_less(best.step.value * (1 - decision_margin) / other.step.value,
                          deviation_of_ratio(other.errors, best.errors));
}

std::vector<const Considered*> rivals_of(const PlanningResult& planning) {
  const Considered& best = fastest(planning);
  std::vector<std::pair<double, const Considered*>> found;
  for (const auto* list : {&planning.searched, &planning.baselines, &planning.fitted})
    for (const Considered& other : *list) {
      if (&other == &best || !other.usable()) continue;
      const double chance = chance_of(*other.plan->prediction, *best.plan->prediction);
      if (chance > negligible_chance) found.emplace_back(chance, &other);
    }
  std::ranges::stable_sort(found, std::ranges::greater{},
                           &std::pair<double, const Considered*>::first);
  std::vector<const Considered*> rivals;
  for (const auto& [chance, rival] : found) rivals.push_back(rival);
  return rivals;
}

void MeasuringPace::learn(Seconds kernels, std::size_t count, Seconds taken) {
  constexpr double least = 3, most = 300;
  if (kernels.value <= 0) return;
  const Seconds spent = taken - fixed * static_cast<double>(count);
  runs_ = std::clamp(spent / kernels, least, most);
}

namespace {

/// The time that a plan spends in a kernel on its critical path.
Seconds time_in(const Prediction& prediction, const std::string& key) {
  const auto found = prediction.errors.find({ErrorKind::Kernel, key});
  return found == prediction.errors.end() ? Seconds{} : prediction.step * found->second.share;
}

/// The relative uncertainty of a kernel that was not measured.
double doubt_of(const OpCost& cost) {
  constexpr double nothing_known = 1;
  return cost.doubt > 0 ? cost.doubt : nothing_known;
}

}  // namespace

std::vector<OpenKernel> open_kernels(const Prediction& best,
                                     const std::vector<const Considered*>& rivals,
                                     std::span<const Kernel> missing, const MachineProfile& machine,
                                     const MeasuringPace& pace) {
  std::vector<OpenKernel> open;
  for (const Kernel& kernel : missing) {
    const std::string key = kernel.key();
    const OpCost cost = cost_of(kernel, machine);
    const Seconds ours = time_in(best, key);
    Seconds differences{};
    for (const Considered* rival : rivals)
      differences += Seconds{std::abs((ours - time_in(*rival->plan->prediction, key)).value)};
    const double doubt = doubt_of(cost);
    open.push_back({kernel, differences * doubt, pace.of(cost.seconds), ours * doubt});
  }
  return open;
}

std::vector<OpenKernel> next_batch(std::vector<OpenKernel> open, Seconds budget, bool for_range) {
  const auto weight = [&](const OpenKernel& one) { return for_range ? one.doubt : one.worth; };
  std::erase_if(open, [&](const OpenKernel& one) { return weight(one).value <= 0; });
  std::ranges::stable_sort(open, std::ranges::greater{},
                           [&](const OpenKernel& one) { return weight(one) / one.takes; });
  Seconds total{};
  std::size_t count = 0;
  while (count < open.size() && (count == 0 || total + open[count].takes <= budget))
    total += open[count++].takes;
  open.resize(count);
  return open;
}

std::vector<Kernel> representatives(std::span<const Program> programs,
                                    std::span<const Kernel> missing, const MachineProfile& machine,
                                    int enough) {
  std::map<std::string, Seconds> spent;
  for (const Program& program : programs)
    for (const Op& op : program.ops)
      if (const auto* compute = std::get_if<ComputeOp>(&op.body))
        spent[compute->kernel.key()] += cost_of(compute->kernel, machine).seconds;
  using Group = std::array<int, 3>;
  std::map<Group, std::vector<std::pair<Seconds, const Kernel*>>> groups;
  for (const Kernel& kernel : missing)
    groups[{static_cast<int>(family_of(kernel)), static_cast<int>(direction_of(kernel.kind)),
            is_narrow(kernel.type) ? 1 : 0}]
        .emplace_back(spent[kernel.key()], &kernel);
  std::vector<Kernel> chosen;
  for (auto& [group, kernels] : groups) {
    std::ranges::stable_sort(kernels, std::ranges::greater{},
                             [](const auto& one) { return one.first; });
    const int wanted = enough - machine.speeds.measured_like(*kernels.front().second);
    for (int i = 0; i < std::min<int>(wanted, static_cast<int>(kernels.size())); ++i)
      chosen.push_back(*kernels[static_cast<std::size_t>(i)].second);
  }
  return chosen;
}

}  // namespace stratplan
