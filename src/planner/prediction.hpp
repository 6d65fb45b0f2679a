#pragma once
// What the model says of one plan: its programs, priced and played through.
#include <map>
#include <string>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {

/// One per rank.
std::vector<Program> programs_of(const Plan& plan, const Network& network);

/// Ranks whose programs stand for all: each of up to this many; of more the first, the last and two
/// that have others on both sides along most dimensions.
inline constexpr int most_ranks_of_their_own = 16;
std::vector<int> modelled_ranks(int ranks);
std::vector<Program> modelled_programs(const Plan& plan, const Network& network);

/// The simulated step, and the worst rank's peak memory.
Prediction predict(const std::vector<Program>& programs, const MachineProfile& machine);
Prediction predict(const Plan& plan, const Network& network, const MachineProfile& machine);

/// Execution::implementations, as far as they were measured.
std::map<std::string, std::string> fastest_implementations(const std::vector<Program>& programs,
                                                           const MachineProfile& machine);

/// Whether no step's price is a mere estimate.
bool fully_measured(const std::vector<Program>& programs, const MachineProfile& machine);

}  // namespace stratplan
