#pragma once
// A communicator between ranks that are processes of one machine, without MPI. Each pair of ranks
// shares a connected pair of stream sockets that is made before the processes start. So there are
// no names, no ports and nothing to clean up. Sums are added in rank order, as over loopback, so
// results are deterministic.
#include <memory>
#include <vector>

#include "runtime/device/communicator.hpp"

namespace stratplan {

/// Makes this rank's communicator. `sockets` holds one stream socket per rank, connected to that
/// rank, and -1 at this rank's own place. The communicator owns the sockets. Its calls throw a
/// CommunicationError that names the peer if the peer has ended, sends a message of another size,
/// or calls another collective.
std::unique_ptr<Communicator> make_socket_communicator(int rank, const std::vector<int>& sockets);

/// Connects every two ranks by a socket pair; returns the descriptors as [rank][peer]. Throws
/// EnvironmentError if a pair cannot be made, for example because too many files are open.
std::vector<std::vector<int>> connect_all(int ranks);

}  // namespace stratplan
