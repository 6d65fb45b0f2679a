#include "profile/job_script.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "model/base/assert.hpp"
#include "model/base/system/shell.hpp"

namespace stratplan {
namespace {

/// Returns the command that every rank runs.
std::string rank_command(const BatchJob& request) {
  std::vector<std::string> words{request.program,
                                 "profile",
                                 "--links",
                                 "--ranks-per-node",
                                 std::to_string(request.ranks_per_node),
                                 "-o",
                                 request.output};
  words.insert(words.begin() + 2, request.arguments.begin(), request.arguments.end());
  if (!request.backend.empty()) words.insert(words.end(), {"--backend", request.backend});
  return shell_line(words);
}

/// Returns the directives that request nodes and time, and the command that starts the ranks.
std::string directives_and_launch(const BatchJob& request) {
  const int nodes = request.nodes, per_node = request.ranks_per_node;
  switch (request.system) {
    case BatchSystem::Slurm:
      return fmt::format(
          "#SBATCH --job-name=stratplan-profile\n#SBATCH --nodes={}\n#SBATCH "
          "--ntasks-per-node={}\n#SBATCH --exclusive\n#SBATCH --time={}\n{}\nsrun",
          nodes, per_node, request.minutes,
          request.backend.empty() ? "" : fmt::format("#SBATCH --gpus-per-node={}\n", per_node));
    case BatchSystem::Lsf:
      return fmt::format(
          "#BSUB -J stratplan-profile\n#BSUB -nnodes {}\n#BSUB -W {}\n\n"
          "jsrun --nrs {} --rs_per_host 1 --tasks_per_rs {} --cpu_per_rs ALL_CPUS --gpu_per_rs "
          "ALL_GPUS --launch_distribution packed",
          nodes, request.minutes, nodes, per_node);
    case BatchSystem::Flux:
      return fmt::format(
          "#flux: --job-name=stratplan-profile\n#flux: --nodes={}\n#flux: --exclusive\n#flux: "
          "--time-limit={}m\n\nflux run --nodes={} --ntasks={} "
          "--exclusive",
          nodes, request.minutes, nodes, nodes * per_node);
  }
  SP_ASSERT(false, "system={}", static_cast<int>(request.system));
  return "";
}

}  // namespace

std::string job_script(const BatchJob& request) {
  return "#!/bin/bash\n" + directives_and_launch(request) + " " + rank_command(request) + "\n";
}

}  // namespace stratplan
