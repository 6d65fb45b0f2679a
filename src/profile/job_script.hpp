#pragma once
// The script that a batch system needs to run the links' benchmark (cluster_profile) on a cluster.
#include <string>

namespace stratplan {

enum class BatchSystem : int { Slurm, Lsf, Flux };

struct BatchJob {
  BatchSystem system = BatchSystem::Slurm;
  int nodes = 2;
  int ranks_per_node = 1;
  int minutes = 30;
  std::string program = "stratplan";
  std::string output = "machine.json";
  /// "cuda": a device for each rank, and what is between them; empty: the program's own choice
  std::string backend{};
};

/// Program, output and backend reach the ranks as the very words that they are here. Throws
/// UsageError if one of them holds a control character.
std::string job_script(const BatchJob& request);

}  // namespace stratplan
