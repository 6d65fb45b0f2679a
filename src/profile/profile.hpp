#pragma once
// Measures what a request asks for, on all ranks at once, and adds it to what was known.
#include "profile/kernel_profile.hpp"
#include "profile/profile_request.hpp"
#include "runtime/backend.hpp"
#include "runtime/communicator.hpp"

namespace stratplan {

/// Called by all ranks, as many as the request says; the result is the same on all, and one of them writes it. What `base` holds is kept if it was measured with
/// the same backend on as many ranks and threads, otherwise measuring starts anew from its name, levels and memory. `provenance` goes into the result. Throws
/// EnvironmentError: no memory, or another number of ranks; CommunicationError.
MachineProfile run_profile(const ProfileRequest& request, Backend& backend, Communicator& communicator, const MachineProfile& base, const Json& provenance,
                           const Progress& progress = {});

}  // namespace stratplan
