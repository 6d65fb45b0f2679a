#pragma once
// The time that a step spends on sums between ranks for batch normalization, whose statistics sets
// may lie on several ranks.
#include <optional>
#include <vector>

#include "model/base/units.hpp"
#include "model/machine/machine_profile.hpp"
#include "model/network/network.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

/// The sums of statistics between ranks. PyTorch's DistributedDataParallel, for example, makes no
/// such sums, because it takes statistics per rank (Network::local_statistics).
struct SharedStatistics {
  std::int64_t samples = 0;  ///< number of samples in a statistics set
  int ranks = 0;             ///< most ranks over which one set is spread
  Seconds cost{};            ///< time that these sums add to the simulated step
};

/// Returns nothing if every statistics set lies on one rank. `programs`: the plan's programs, by
/// rank.
std::optional<SharedStatistics> shared_statistics(std::vector<Program> programs,
                                                  const Network& network,
                                                  const MachineProfile& machine);

}  // namespace stratplan
