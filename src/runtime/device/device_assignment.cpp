#include "runtime/device/device_assignment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "model/base/error.hpp"
#include "runtime/watch/flight_recorder.hpp"

namespace stratplan {
namespace {

std::int32_t number_of(const std::string& name) {
  return static_cast<std::int32_t>(std::hash<std::string>{}(name));
}

/// Two ranks that are threads of one process.
std::optional<std::pair<std::size_t, std::size_t>> threads_of_one_process(
    const std::vector<Seat>& seats) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> first;
  for (std::size_t rank = 0; rank < seats.size(); ++rank) {
    const auto [place, fresh] = first.try_emplace({seats[rank].node, seats[rank].process}, rank);
    if (!fresh) return std::pair{place->second, rank};
  }
  return std::nullopt;
}

}  // namespace

Seat this_seat(const std::vector<std::string>& devices) {
  Seat seat{number_of(host_name()), static_cast<std::int32_t>(getpid()), {}};
  std::ranges::transform(devices, std::back_inserter(seat.devices), number_of);
  return seat;
}

std::vector<Seat> gather_seats(const Seat& mine, Communicator& communicator) {
  std::vector<std::int32_t> numbers{mine.node, mine.process};
  numbers.insert(numbers.end(), mine.devices.begin(), mine.devices.end());
  std::vector<Seat> seats;
  for (const auto& of_rank : gather(numbers, communicator))
    seats.push_back({of_rank[0], of_rank[1], {of_rank.begin() + 2, of_rank.end()}});
  return seats;
}

std::vector<int> choose_devices(const std::vector<Seat>& seats) {
  std::map<std::int32_t, int> seated;  // by node
  std::vector<int> chosen;
  for (const Seat& seat : seats) {
    const int place = seated[seat.node]++;
    chosen.push_back(seat.devices.empty() ? -1 : place % static_cast<int>(seat.devices.size()));
  }
  return chosen;
}

bool share_devices(const std::vector<Seat>& seats) {
  const std::vector<int> chosen = choose_devices(seats);
  std::set<std::pair<std::int32_t, std::int32_t>> taken;  // node and device
  for (std::size_t rank = 0; rank < seats.size(); ++rank)
    if (chosen[rank] >= 0 &&
        !taken
             .insert(
                 {seats[rank].node, seats[rank].devices[static_cast<std::size_t>(chosen[rank])]})
             .second)
      return true;
  return false;
}

bool on_one_node(const std::vector<Seat>& seats) {
  return std::ranges::all_of(seats,
                             [&](const Seat& seat) { return seat.node == seats.front().node; });
}

std::string device_way(const std::string& wanted, const std::vector<Seat>& seats) {
  const bool shared = share_devices(seats);
  if (wanted == "auto") return shared ? "staged" : "nccl";
  if (wanted != "nccl") return wanted;
  if (const auto threads = threads_of_one_process(seats); shared && threads)
    throw EnvironmentError(
        fmt::format("--communicator nccl: ranks {} and {} are threads of one process, which need a "
                    "device each; there are fewer devices than ranks: use "
                    "--communicator staged, or processes",
                    threads->first, threads->second));
  return wanted;
}

Variables shared_device_environment(int rank, bool one_node) {
  Variables variables{{"NCCL_NET", "Socket"},     {"NCCL_IB_DISABLE", "1"},
                      {"NCCL_MNNVL_ENABLE", "0"}, {"NCCL_NVLS_ENABLE", "0"},
                      {"NCCL_ALGO", "Ring"},      {"NCCL_PROTO", "Simple"},
                      {"NCCL_MAX_CTAS", "2"},     {"CUDA_MODULE_LOADING", "EAGER"}};
  if (one_node) variables.emplace_back("NCCL_SOCKET_IFNAME", "lo");
  if (rank >= 0) variables.emplace_back("NCCL_HOSTID", fmt::format("stratplan-rank-{}", rank));
  return variables;
}

void prepare_shared_device(int rank, bool one_node) {
  for (const auto& [name, value] : shared_device_environment(rank, one_node))
    setenv(name.c_str(), value.c_str(), name == "NCCL_HOSTID");
}

}  // namespace stratplan
