#include "cli/supervision.hpp"

#include "cli/console.hpp"
#include "model/partition/lower.hpp"
#include "model/partition/step_text.hpp"
#include "planner/launcher.hpp"
#include "runtime/backend.hpp"
#include "runtime/comm/processes.hpp"
#include "runtime/job_watch.hpp"

namespace stratplan {
namespace {

ProcessesEnd start(const Plan& plan, const JobRequest& request,
                   const std::function<bool()>& hangs) {
  const int threads = plan.execution.threads_per_rank;
  if (!request.mpi) return run_processes(plan.ranks, threads, request.arguments, hangs);
  const LaunchResult result = launch({plan.ranks,
                                      threads,
                                      request.arguments,
                                      {},
                                      request.makes_checkpoints,
                                      mpi_part().built,
                                      hangs});
  return {result.exit_code, result.interrupted, result.killed_by, -1};
}

/// What is left to say; empty: nothing.
std::string explain(const ProcessesEnd& end, const JobWatch& watch) {
  if (end.interrupted) return {};
  if (!watch.hang_text().empty()) return watch.hang_text();
  const std::optional<int> silent = end.rank >= 0 ? end.rank : watch.silent();
  if (end.killed_by != 0) return watch.killed_text(silent, end.killed_by);
  const bool unexplained =
      end.exit_code == static_cast<int>(ExitCode::Communication) && !watch.any_failed();
  return unexplained && silent ? watch.ended_text(*silent) : std::string();
}

}  // namespace

int run_job(const PlanAndNetwork& planned, const JobRequest& request) {
  const auto& [plan, network] = planned;
  JobWatch watch(plan.ranks, request.patience, [&](int rank, std::size_t step) {
    const Program program = lower(network, plan.layers, plan.execution, rank);
    return to_text(program.steps.at(step), network, rank);
  });
  const ProcessesEnd end = start(plan, request, [&] { return watch.hangs(); });
  if (const std::string text = explain(end, watch); !text.empty()) note(text);
  return end.exit_code;
}

}  // namespace stratplan
