#pragma once
// The price of batch normalization over sets of samples that lie on several ranks.
#include <optional>
#include <vector>

#include "model/base/units.hpp"
#include "model/machine/machine_profile.hpp"
#include "model/network/network.hpp"
#include "model/partition/program/program.hpp"

namespace stratplan {

/// Sums of statistics between ranks. DistributedDataParallel, for example, makes none: it takes
/// statistics per rank (Network::local_statistics).
struct SharedStatistics {
  std::int64_t samples = 0;  ///< in a statistics set
  int ranks = 0;             ///< on which parts of one set lie, at most
  Seconds cost{};            ///< how much longer the simulated step is than without these sums
};

/// Nothing if every statistics set lies on one rank. `programs`: a plan's, by rank.
std::optional<SharedStatistics> shared_statistics(std::vector<Program> programs,
                                                  const Network& network,
                                                  const MachineProfile& machine);

}  // namespace stratplan
