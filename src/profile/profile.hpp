#pragma once
// Measures a request on all ranks at once, and adds the results to an earlier profile.
#include "profile/kernel_profile.hpp"
#include "profile/measure/team.hpp"
#include "profile/profile_request.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/collective_groups.hpp"

namespace stratplan {

/// Measures the request and adds the results to `base`. All of the requested ranks call this
/// function, and all get the same result. One of them writes it to a file. Measurements in `base`
/// are kept if they come from the same backend and device, and from as many ranks and threads as
/// requested. Otherwise the result starts anew with the name, levels and device of `base`.
/// `provenance` goes into the result. Transports between device memories must have been made for
/// groups_to_measure(). Throws EnvironmentError if memory runs out or the number of ranks is not
/// the request's, and CommunicationError if communication fails.
MachineProfile run_profile(const ProfileRequest& request, Backend& backend, const Team& team,
                           const MachineProfile& base, const Provenance& provenance,
                           const Progress& progress = {});
/// Returns the groups that hold `rank` and whose collectives run_profile() measures.
std::vector<CollectiveGroup> groups_to_measure(const ProfileRequest& request, int rank);

}  // namespace stratplan
