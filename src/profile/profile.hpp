#pragma once
// Measures what a request asks for, on all ranks at once, and adds it to what was known.
#include "profile/kernel_profile.hpp"
#include "profile/measure/team.hpp"
#include "profile/profile_request.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/collective_groups.hpp"

namespace stratplan {

/// Called by all ranks, as many as the request says; the result is the same on all, and one of them
/// writes it. What `base` holds is kept if it was measured with the same backend on as many ranks
/// and threads, otherwise measuring starts anew from its name, levels and memory. `provenance` goes
/// into the result. Throws EnvironmentError: no memory, or another number of ranks;
/// CommunicationError. Transports between backends that are not on the host need groups_to_measure.
MachineProfile run_profile(const ProfileRequest& request, Backend& backend, const Team& team,
                           const MachineProfile& base, const Provenance& provenance,
                           const Progress& progress = {});
/// The groups of this rank whose collectives are measured.
std::vector<CollectiveGroup> groups_to_measure(const ProfileRequest& request, int rank);

}  // namespace stratplan
