#pragma once
// The script with which a batch system measures the links of a cluster (cluster_profile).
#include <string>
#include <vector>

namespace stratplan {

enum class BatchSystem : int { Slurm, Lsf, Flux };

struct BatchJob {
  BatchSystem system = BatchSystem::Slurm;
  int nodes = 2;
  int ranks_per_node = 1;
  int minutes = 30;
  std::string program = "stratplan";
  std::string output = "machine.json";
  /// Backend of the ranks. With "cuda", each rank has a device, and links between devices are
  /// measured. If the name is empty, the program chooses the backend.
  std::string backend{};
  /// further arguments: a network whose kernels are measured too, and options
  std::vector<std::string> arguments{};
};

/// Returns the script. Program, output and backend are quoted, so that the ranks get them
/// unchanged. Throws UsageError if one of them holds a control character.
std::string job_script(const BatchJob& request);

}  // namespace stratplan
