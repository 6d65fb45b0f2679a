#pragma once
// Predicts the step time and memory of one plan. Its programs are lowered, priced and simulated.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/cost/simulator.hpp"
#include "model/machine/machine_profile.hpp"
#include "model/plan/plan.hpp"

namespace stratplan {

/// The programs of all ranks.
std::vector<Program> programs_of(const Plan& plan, const Network& network);

/// modelled_ranks() returns the ranks that are simulated. Up to this many ranks, every rank is
/// simulated. In larger jobs, four representative ranks are simulated: the first, the last, and two
/// that have neighbours on both sides along most dimensions.
inline constexpr int most_ranks_of_their_own = 16;
std::vector<int> modelled_ranks(int ranks);
std::vector<Program> modelled_programs(const Plan& plan, const Network& network);

/// A simulated step and its memory, with their ranges. `path`: the step's critical path.
Prediction prediction_of(Seconds step, const CriticalPath& path, Bytes memory,
                         const MachineProfile& machine);
/// The simulated step, and the peak memory of the rank that needs most, with their ranges.
Prediction predict(const std::vector<Program>& programs, const MachineProfile& machine);
Prediction predict(const Plan& plan, const Network& network, const MachineProfile& machine);

/// Returns the peak memory of the rank that needs most. A program repeats itself from the second
/// micro-batch to the last but one, so at most four micro-batches are lowered.
Bytes peak_memory(const Plan& plan, const Network& network, const MachineProfile& machine);

/// Returns Execution::implementations: the fastest implementation of each kernel that was measured.
std::map<std::string, std::string> fastest_implementations(const std::vector<Program>& programs,
                                                           const MachineProfile& machine);

/// Numbers of distinct kernels.
struct KernelCount {
  std::size_t all = 0;
  std::size_t measured = 0;  ///< kernels whose time was measured at exactly their shape
};
KernelCount count_kernels(const std::set<Kernel>& kernels, const MachineProfile& machine);
KernelCount count_kernels(const std::vector<Program>& programs, const MachineProfile& machine);

/// Whether no op's cost is an estimate.
bool fully_measured(const std::vector<Program>& programs, const MachineProfile& machine);

}  // namespace stratplan
