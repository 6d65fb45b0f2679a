#pragma once
// One training iteration as discrete events over all ranks: each rank has a host track that issues steps, and compute, halo and
// gradient tracks that run them (one after the other where the machine has no concurrency). Exchanges and collectives wait for the slowest partner.
#include <vector>

#include "model/cost/step_cost.hpp"
#include "model/timeline.hpp"

namespace stratplan {

/// `programs`: one per rank, as lower() makes them.
Timeline simulate(const std::vector<Program>& programs, const Execution& execution, const MachineProfile& machine);

}  // namespace stratplan
