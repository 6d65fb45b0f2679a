// stratplan ranks (hidden): replaces mpirun where there is no MPI. Starts copies of this program as
// ranks; each copy runs the command that the arguments give.
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "job/processes.hpp"
#include "job/rank.hpp"

namespace stratplan {
namespace {

struct RanksOptions {
  int ranks = 0;
  int threads = 1;
  std::vector<std::string> command;
};

/// Throws JobFailed with the exit code of the failed rank. If signal N killed the rank, the code is
/// 128 + N, the same that a shell and mpirun return.
void run_ranks(const RanksOptions& options) {
  const ProcessesEnd end = run_processes(options.ranks, options.threads, options.command);
  const int code = end.killed_by != 0 ? 128 + end.killed_by : end.exit_code;
  if (code != 0) throw JobFailed{code};
}

}  // namespace

void add_ranks_command(CLI::App& program, const CommandLine&) {
  auto options = std::make_shared<RanksOptions>();
  CLI::App* command =
      program
          .add_subcommand("ranks", "Run a command of this program as ranks that talk over sockets")
          ->group("");
  add_ranks(*command, options->ranks, true);
  command->add_option("--threads", options->threads, "threads of each rank")->check(positive());
  command->add_option("COMMAND", options->command, "command to run, after --")->required();
  command->callback([options] { run_ranks(*options); });
}

}  // namespace stratplan
