#pragma once
// Ranks that are processes of one machine and talk over sockets: what tells such a process that it
// is one.
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/communicator.hpp"

namespace stratplan {

/// "NAME=value" each: the variables by which a process knows its rank and its sockets to the
/// others, which it inherits.
std::vector<std::string> rank_environment(int rank, const std::vector<int>& sockets);

/// Whether this process has those variables: job/processes started it.
bool launched_by_processes();
/// Its communicator. Once, in a process that was launched so.
std::unique_ptr<Communicator> make_process_communicator();

}  // namespace stratplan
