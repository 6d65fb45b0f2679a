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

/// Returns two ranks that are threads of one process, if there are any.
std::optional<std::pair<std::size_t, std::size_t>> threads_of_one_process(
    const std::vector<DeviceAssignment>& assignments) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> first;
  for (std::size_t rank = 0; rank < assignments.size(); ++rank) {
    const auto [place, fresh] =
        first.try_emplace({assignments[rank].node, assignments[rank].process}, rank);
    if (!fresh) return std::pair{place->second, rank};
  }
  return std::nullopt;
}

}  // namespace

DeviceAssignment this_assignment(const std::vector<std::string>& devices) {
  DeviceAssignment assignment{number_of(host_name()), static_cast<std::int32_t>(getpid()), {}};
  std::ranges::transform(devices, std::back_inserter(assignment.devices), number_of);
  return assignment;
}

std::vector<DeviceAssignment> gather_assignments(const DeviceAssignment& mine,
                                                 Communicator& communicator) {
  std::vector<std::int32_t> numbers{mine.node, mine.process};
  numbers.insert(numbers.end(), mine.devices.begin(), mine.devices.end());
  std::vector<DeviceAssignment> assignments;
  for (const auto& of_rank : gather(numbers, communicator))
    assignments.push_back({of_rank[0], of_rank[1], {of_rank.begin() + 2, of_rank.end()}});
  return assignments;
}

std::vector<int> choose_devices(const std::vector<DeviceAssignment>& assignments) {
  std::map<std::int32_t, int> assigned;  // by node: number of ranks so far
  std::vector<int> chosen;
  for (const DeviceAssignment& assignment : assignments) {
    const int place = assigned[assignment.node]++;
    chosen.push_back(
        assignment.devices.empty() ? -1 : place % static_cast<int>(assignment.devices.size()));
  }
  return chosen;
}

bool share_devices(const std::vector<DeviceAssignment>& assignments) {
  const std::vector<int> chosen = choose_devices(assignments);
  std::set<std::pair<std::int32_t, std::int32_t>> taken;  // pairs (node, device)
  for (std::size_t rank = 0; rank < assignments.size(); ++rank)
    if (chosen[rank] >= 0 &&
        !taken
             .insert({assignments[rank].node,
                      assignments[rank].devices[static_cast<std::size_t>(chosen[rank])]})
             .second)
      return true;
  return false;
}

bool on_one_node(const std::vector<DeviceAssignment>& assignments) {
  return std::ranges::all_of(assignments, [&](const DeviceAssignment& assignment) {
    return assignment.node == assignments.front().node;
  });
}

std::string device_transport(const std::string& wanted,
                             const std::vector<DeviceAssignment>& assignments) {
  const bool shared = share_devices(assignments);
  if (wanted == "auto") return shared ? "staged" : "nccl";
  if (wanted != "nccl") return wanted;
  if (const auto threads = threads_of_one_process(assignments); shared && threads)
    throw EnvironmentError(
        fmt::format("--communicator nccl: ranks {} and {} are threads of one process and need a "
                    "device each, but there are fewer devices than ranks: use "
                    "--communicator staged, or run ranks as processes",
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
