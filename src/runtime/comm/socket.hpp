#pragma once
// Ranks as processes of one machine, without MPI: each pair of ranks shares a connected stream
// socket, made before the processes start, so that there are no names, no ports and nothing to
// clean up. Sums are added in the order of the ranks, as over loopback, so that results are
// deterministic.
#include <memory>
#include <vector>

#include "runtime/device/communicator.hpp"

namespace stratplan {

/// This rank's end of the mesh. `sockets`: one stream socket per rank, connected to it; its own
/// place holds -1. Takes them over. Whatever a verb meets is a CommunicationError naming the peer:
/// one that is gone, a message of another size, another collective.
std::unique_ptr<Communicator> make_socket_communicator(int rank, const std::vector<int>& sockets);

/// The ends of a full mesh: [rank][peer]. Throws EnvironmentError: too many open files.
std::vector<std::vector<int>> connect_all(int ranks);

}  // namespace stratplan
