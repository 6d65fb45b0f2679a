#pragma once
// The environment variables that give a process its rank and its sockets, for ranks that are
// processes of one machine and communicate over sockets.
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/communicator.hpp"

namespace stratplan {

/// Returns the variables of one rank, each as "NAME=value". `sockets` are the descriptors that the
/// rank's process inherits, by peer.
std::vector<std::string> rank_environment(int rank, const std::vector<int>& sockets);

/// Whether this process has these variables, which means that job/processes started it.
bool launched_by_processes();
/// Makes this process's communicator. Called once, if launched_by_processes().
std::unique_ptr<Communicator> make_process_communicator();

}  // namespace stratplan
