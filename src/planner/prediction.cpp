#include "planner/prediction.hpp"

#include <algorithm>
#include <set>

#include "model/cost/memory.hpp"
#include "model/cost/sensitivity.hpp"
#include "model/cost/simulator.hpp"
#include "model/partition/lowering/lower.hpp"

namespace stratplan {
namespace {

/// Composes a rank from digits in mixed radix. The radices are the prime factors of `ranks`. The
/// digit at a place has its largest value if `last(place)` is true, and is 0 otherwise.
template <class Last>
int rank_by_digits(int ranks, const Last& last) {
  int rank = 0;
  std::size_t place = 0;
  for (int prime = 2; ranks > 1; ++prime)
    for (; ranks % prime == 0; ranks /= prime)
      rank = rank * prime + (last(place++) ? prime - 1 : 0);
  return rank;
}

}  // namespace

std::vector<int> modelled_ranks(int ranks) {
  std::set<int> modelled;
  if (ranks <= most_ranks_of_their_own) {
    for (int rank = 0; rank < ranks; ++rank) modelled.insert(rank);
    return {modelled.begin(), modelled.end()};
  }
  // Rank 0 holds the longest blocks. A rank in which every other digit has its largest value has
  // neighbours on both sides along most dimensions, and half of its partners are far away.
  modelled = {0, ranks - 1};
  for (const std::size_t turn : {0, 1})
    modelled.insert(rank_by_digits(ranks, [&](std::size_t place) { return place % 2 == turn; }));
  return {modelled.begin(), modelled.end()};
}

std::vector<Program> programs_of(const Plan& plan, const Network& network) {
  std::vector<Program> programs;
  for (int rank = 0; rank < plan.ranks; ++rank)
    programs.push_back(lower(network, plan.layers, plan.execution, rank));
  return programs;
}

std::vector<Program> modelled_programs(const Plan& plan, const Network& network) {
  std::vector<Program> programs;
  for (const int rank : modelled_ranks(plan.ranks))
    programs.push_back(lower(network, plan.layers, plan.execution, rank));
  return programs;
}

Prediction prediction_of(Seconds step, const CriticalPath& path, Bytes memory,
                         const MachineProfile& machine) {
  Sensitivity errors = sensitivity_of(path, machine);
  const Certainty certainty{
      tier_of(path, machine), range_of(step.value, deviation_of(errors)),
      range_of(static_cast<double>(memory.value), memory_deviation(error_model(), machine))};
  return {step, memory, certainty, std::move(errors)};
}

Prediction predict(const std::vector<Program>& programs, const MachineProfile& machine) {
  CriticalPath path;
  const Seconds step = simulate(programs, machine, &path).total;
  return prediction_of(step, path, peak_memory(programs, machine).total(), machine);
}

Prediction predict(const Plan& plan, const Network& network, const MachineProfile& machine) {
  return predict(modelled_programs(plan, network), machine);
}

Bytes peak_memory(const Plan& plan, const Network& network, const MachineProfile& machine) {
  constexpr std::int64_t lowered = 4;
  const std::int64_t parts = network.training.micro_batches;
  if (parts <= lowered) return peak_memory(modelled_programs(plan, network), machine).total();
  Network shortened = network;
  shortened.batch = lowered * network.micro_batch();
  shortened.training.micro_batches = lowered;
  Bytes most{};
  for (const Program& program : modelled_programs(plan, shortened)) {
    const MemoryUse use = peak_memory(program, machine);
    most = std::max(most, use.total() + use.data * (parts - lowered) / lowered);
  }
  return most;
}

std::map<std::string, std::string> fastest_implementations(const std::vector<Program>& programs,
                                                           const MachineProfile& machine) {
  std::map<std::string, std::string> fastest;
  std::set<Kernel> known;
  for (const Program& program : programs) {
    for (const Op& op : program.ops) {
      const auto* compute = std::get_if<ComputeOp>(&op.body);
      if (!compute || !known.insert(compute->kernel).second) continue;
      const auto measured = machine.kernels.find(compute->kernel.key());
      if (measured != machine.kernels.end() && !measured->second.choice.empty())
        fastest.emplace(measured->first, measured->second.choice);
    }
  }
  return fastest;
}

KernelCount count_kernels(const std::set<Kernel>& kernels, const MachineProfile& machine) {
  const auto measured = std::ranges::count_if(kernels, [&](const Kernel& kernel) {
    return cost_of(kernel, machine).tier == Tier::Measured;
  });
  return {kernels.size(), static_cast<std::size_t>(measured)};
}

KernelCount count_kernels(const std::vector<Program>& programs, const MachineProfile& machine) {
  std::set<Kernel> kernels;
  for (const Program& program : programs)
    for (const Op& op : program.ops)
      if (const auto* compute = std::get_if<ComputeOp>(&op.body)) kernels.insert(compute->kernel);
  return count_kernels(kernels, machine);
}

bool fully_measured(const std::vector<Program>& programs, const MachineProfile& machine) {
  std::set<Kernel> known;  // most kernels occur many times
  for (const Program& program : programs) {
    for (const Op& op : program.ops) {
      const auto* compute = std::get_if<ComputeOp>(&op.body);
      if (compute && known.contains(compute->kernel)) continue;
      if (cost_of(op, program, machine).tier >= Tier::Calibrated) return false;
      if (compute) known.insert(compute->kernel);
    }
  }
  return true;
}

}  // namespace stratplan
