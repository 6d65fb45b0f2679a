// The device of each rank, as tables of nodes, and the consequences if ranks share a device.
#include "runtime/device/device_assignment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "model/base/error.hpp"
#include "runtime/comm/loopback.hpp"

namespace stratplan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(DeviceAssignments, RanksOfANodeTakeItsDevicesInTurn) {
  struct Row {
    const char* what;
    std::vector<DeviceAssignment> assignments;  // each is node, process, devices
    std::vector<int> chosen;
    bool shared;
  };
  const Row table[] = {
      {"one device for each", {{1, 1, {7, 8}}, {1, 2, {7, 8}}}, {0, 1}, false},
      {"two nodes with two each",
       {{1, 1, {7, 8}}, {1, 2, {7, 8}}, {2, 1, {5, 6}}, {2, 2, {5, 6}}},
       {0, 1, 0, 1},
       false},
      {"nodes in turn",
       {{1, 1, {7, 8}}, {2, 1, {7, 8}}, {1, 2, {7, 8}}, {2, 2, {7, 8}}},
       {0, 0, 1, 1},
       false},
      {"each process is shown its own", {{1, 1, {7}}, {1, 2, {8}}, {1, 3, {9}}}, {0, 0, 0}, false},
      {"each pair is shown its own",
       {{1, 1, {7, 8}}, {1, 2, {7, 8}}, {1, 3, {5, 6}}, {1, 4, {5, 6}}},
       {0, 1, 0, 1},
       false},
      {"three on two", {{1, 1, {7, 8}}, {1, 2, {7, 8}}, {1, 3, {7, 8}}}, {0, 1, 0}, true},
      {"processes on one", {{1, 1, {7}}, {1, 2, {7}}}, {0, 0}, true},
      {"threads on one", {{1, 1, {7}}, {1, 1, {7}}}, {0, 0}, true},
      {"no devices", {{1, 1, {}}, {1, 2, {}}}, {-1, -1}, false},
      {"one alone", {{1, 1, {7, 8}}}, {0}, false},
  };
  for (const Row& row : table) {
    EXPECT_EQ(choose_devices(row.assignments), row.chosen) << row.what;
    EXPECT_EQ(share_devices(row.assignments), row.shared) << row.what;
  }
}

TEST(DeviceAssignments, NcclWhereEachRankHasADevice) {
  const std::vector<DeviceAssignment> apart{{1, 1, {7, 8}}, {1, 2, {7, 8}}},
      processes{{1, 1, {7}}, {1, 2, {7}}}, threads{{1, 1, {7}}, {1, 1, {7}}},
      threads_apart{{1, 1, {7, 8}}, {1, 1, {7, 8}}};
  struct Row {
    const char* wanted;
    std::vector<DeviceAssignment> assignments;
    std::string transport;
  };
  const Row table[] = {
      {"auto", apart, "nccl"},         {"auto", processes, "staged"},
      {"auto", threads, "staged"},     {"auto", threads_apart, "nccl"},
      {"nccl", apart, "nccl"},         {"nccl", processes, "nccl"},
      {"nccl", threads_apart, "nccl"}, {"staged", apart, "staged"},
      {"staged", processes, "staged"}, {"staged", threads, "staged"},
      {"mpi", processes, "mpi"},
  };
  for (const Row& row : table)
    EXPECT_EQ(device_transport(row.wanted, row.assignments), row.transport)
        << row.wanted << " for " << row.assignments.size();
  try {
    device_transport("nccl", threads);
    ADD_FAILURE() << "no error, though NCCL refuses threads on one device";
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("ranks 0 and 1 are threads of one process"));
  }
}

TEST(DeviceAssignments, RanksAreToldOfEachOther) {
  run_loopback(3, [](Communicator& communicator) {
    std::vector<std::string> devices(static_cast<std::size_t>(communicator.rank()), "a");
    const auto assignments = gather_assignments(this_assignment(devices), communicator);
    ASSERT_EQ(assignments.size(), 3U);
    EXPECT_TRUE(on_one_node(assignments));
    for (std::size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(assignments[rank].process, assignments[0].process);
      EXPECT_EQ(assignments[rank].devices.size(), rank);
    }
    EXPECT_EQ(assignments[1].devices[0], assignments[2].devices[1]);
    EXPECT_NE(this_assignment({"a"}).devices, this_assignment({"b"}).devices);
  });
}

TEST(DeviceAssignments, ProcessesThatShareADeviceAreNodesToNccl) {
  const auto variables = [](int rank, bool one_node) {
    const Variables list = shared_device_environment(rank, one_node);
    return std::map<std::string, std::string>(list.begin(), list.end());
  };
  EXPECT_NE(variables(0, true).at("NCCL_HOSTID"), variables(1, true).at("NCCL_HOSTID"));
  EXPECT_EQ(variables(1, true).at("NCCL_SOCKET_IFNAME"), "lo");
  EXPECT_EQ(variables(1, false).count("NCCL_SOCKET_IFNAME"), 0U)
      << "other nodes cannot be reached over lo";
  EXPECT_EQ(variables(-1, true).count("NCCL_HOSTID"), 0U) << "each rank keeps its own host id";
  EXPECT_EQ(variables(-1, true).at("CUDA_MODULE_LOADING"), "EAGER");
}

}  // namespace
}  // namespace stratplan
