#include "planner/overlap.hpp"

#include <algorithm>
#include <map>

#include "model/cost/memory.hpp"
#include "model/cost/op_cost.hpp"
#include "model/cost/simulator.hpp"
#include "model/cost/transports.hpp"
#include "model/partition/lowering/overlapped_halo.hpp"
#include "planner/prediction.hpp"

namespace stratplan {
namespace {

/// Times the forward phase of one layer and of the edges that lead to it, on one rank, without
/// other layers. Kernels run one after the other. An edge's messages and collectives overlap with
/// kernels until an op reads what they bring.
class LayerClock {
 public:
  void add(const Op& op, Seconds cost) {
    if (op.producer >= 0 && communicates(op)) {
      arriving_ = op.writes;
      arrived_ = now_ + cost;
      return;
    }
    const bool waits = std::ranges::any_of(
        op.reads, [&](BufferId read) { return std::ranges::count(arriving_, read) > 0; });
    if (waits) now_ = std::max(now_, arrived_);
    now_ += cost;
  }
  Seconds now() const { return now_; }

 private:
  std::vector<BufferId> arriving_;
  Seconds arrived_{}, now_{};
};

/// Returns the forward time of each layer, on the rank that takes longest for it.
std::map<LayerIndex, Seconds> forward_times(const std::vector<Program>& programs,
                                            const std::set<LayerIndex>& layers,
                                            const MachineProfile& machine) {
  std::map<LayerIndex, Seconds> longest;
  for (const Program& program : programs) {
    std::map<LayerIndex, LayerClock> clocks;
    for (const Op& op : program.ops)
      if (op.phase == Phase::Forward && layers.contains(op.layer))
        clocks[op.layer].add(op,
                             cost_of(op, program, machine).seconds + machine.step_overhead.median);
    for (const auto& [layer, clock] : clocks)
      longest[layer] = std::max(longest[layer], clock.now());
  }
  return longest;
}

/// A simulated step, with the programs to which its path leads.
struct Played {
  std::vector<Program> programs;
  CriticalPath path{};
  Seconds step{};
  Bytes memory{};
};

Played play(Plan& plan, const Network& network, const MachineProfile& machine) {
  Played played;
  played.programs = modelled_programs(plan, network);
  plan.execution.implementations = fastest_implementations(played.programs, machine);
  plan.execution.transports = fastest_transports(played.programs, machine);
  played.step = simulate(played.programs, machine, &played.path).total;
  played.memory = peak_memory(played.programs, machine).total();
  return played;
}

Prediction prediction_of(const Played& played, const MachineProfile& machine) {
  return prediction_of(played.step, played.path, played.memory, machine);
}

}  // namespace

std::set<std::string> interior_splits_that_pay(const Plan& plan, const Network& network,
                                               const MachineProfile& machine) {
  Plan cut = plan;
  cut.execution.overlapped_halos = layers_with_interior(network, plan.layers);
  if (cut.execution.overlapped_halos.empty()) return {};
  std::set<LayerIndex> layers;
  for (const std::string& name : cut.execution.overlapped_halos) layers.insert(*network.find(name));
  const auto at_once = forward_times(modelled_programs(plan, network), layers, machine);
  const auto is_split = forward_times(modelled_programs(cut, network), layers, machine);
  std::set<std::string> paying;
  for (const LayerIndex layer : layers)
    if (is_split.at(layer) < at_once.at(layer)) paying.insert(network.layer(layer).name);
  return paying;
}

Prediction choose_execution(Plan& plan, const Network& network, const MachineProfile& machine,
                            const std::optional<Bytes>& memory_limit, bool thorough) {
  const bool fixed = plan.execution.concurrent_streams || machine.hidden.value_or(0) == 0;
  const bool many = plan.ranks > most_ranks_of_their_own;
  const auto fits = [&](Bytes memory) { return !memory_limit || memory <= *memory_limit; };
  Plan beside = plan;
  beside.execution.concurrent_streams = true;
  Prediction best = prediction_of(play(many && !fixed ? beside : plan, network, machine), machine);
  if (many && !fixed) {
    // The plan is assumed to be faster with concurrent streams. To simulate it both ways would take
    // too long, unless only the plan without them fits.
    if (!fits(best.memory)) return prediction_of(play(plan, network, machine), machine);
    plan.execution = beside.execution;
    if (!thorough) return best;
  }
  if (fixed || !fits(best.memory)) return best;
  const auto consider = [&] {
    const Played played = play(beside, network, machine);
    if (played.step >= best.step || !fits(played.memory)) return;
    best = prediction_of(played, machine);
    plan.execution = beside.execution;
  };
  if (!many) consider();
  beside.execution.overlapped_halos = interior_splits_that_pay(beside, network, machine);
  if (!beside.execution.overlapped_halos.empty()) consider();
  return best;
}

}  // namespace stratplan
