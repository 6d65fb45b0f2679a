#include "runtime/comm/processes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <sstream>

#include "runtime/comm/socket.hpp"

namespace stratplan {
namespace {

constexpr const char* rank_variable = "STRATPLAN_RANK";
constexpr const char* sockets_variable = "STRATPLAN_SOCKETS";

}  // namespace

std::vector<std::string> rank_environment(int rank, const std::vector<int>& sockets) {
  return {fmt::format("{}={}", rank_variable, rank),
          fmt::format("{}={}", sockets_variable, fmt::join(sockets, ","))};
}

bool launched_by_processes() { return std::getenv(rank_variable) && std::getenv(sockets_variable); }

std::unique_ptr<Communicator> make_process_communicator() {
  std::vector<int> sockets;
  std::istringstream list(std::getenv(sockets_variable));
  for (std::string socket; std::getline(list, socket, ',');)
    sockets.push_back(std::atoi(socket.c_str()));
  return make_socket_communicator(std::atoi(std::getenv(rank_variable)), sockets);
}

}  // namespace stratplan
