#pragma once
// Plans that autotune measured as faster than the recommended one. `plan` answers with them from
// then on, for the same network on as many ranks of the same machine.
#include <optional>
#include <string>

#include "model/plan/plan.hpp"

namespace stratplan {

struct Adopted {
  Plan plan;
  std::string name;       ///< the plan's name among those considered
  Seconds measured{};     ///< its step
  Seconds recommended{};  ///< the step of the plan that was recommended
};

/// Keeps the plan in the cache folder, in place of an earlier one. Nothing: forgets the earlier
/// one.
void adopt(const Network& network, int ranks, const std::optional<Adopted>& adopted,
           const Provenance& provenance);
/// The plan that was adopted for this network on this number of ranks of this machine; nothing if
/// there is none, or if its file cannot be used.
std::optional<Adopted> adopted_for(const Network& network, int ranks);

}  // namespace stratplan
