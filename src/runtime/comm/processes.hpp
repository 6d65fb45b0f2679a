#pragma once
// Ranks that are processes of one machine and communicate over sockets: the environment variables
// by which such a process knows its rank and its sockets.
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/communicator.hpp"

namespace stratplan {

/// Returns the variables of one rank, "NAME=value" each. `sockets` are the descriptors that it
/// inherits, by peer.
std::vector<std::string> rank_environment(int rank, const std::vector<int>& sockets);

/// Whether this process has these variables, which means that job/processes started it.
bool launched_by_processes();
/// Makes this process's communicator. Called once, if launched_by_processes().
std::unique_ptr<Communicator> make_process_communicator();

}  // namespace stratplan
