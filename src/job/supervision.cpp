#include "job/supervision.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>

#include "job/launcher.hpp"
#include "job/processes.hpp"
#include "model/base/error.hpp"
#include "model/base/message.hpp"
#include "model/base/system/standard_streams.hpp"
#include "model/partition/lowering/lower.hpp"
#include "model/partition/program/op_text.hpp"
#include "runtime/watch/job_watch.hpp"

namespace stratplan {
namespace {

/// Prints mpirun's output. mpirun itself silently drops output that it cannot write.
class Relay {
 public:
  Relay() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0)
      throw EnvironmentError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    copying_ = std::thread([this] { copy(); });
  }
  ~Relay() {
    finish();
    ::close(ends_[0]);
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// The path of the file to which mpirun writes.
  std::string entrance() const { return fmt::format("/proc/self/fd/{}", ends_[1]); }
  /// Waits until all output is printed. Returns the errno of a failed write; 0 if none failed.
  int finish() {
    if (copying_.joinable()) {
      ::close(ends_[1]);
      copying_.join();
    }
    return error_;
  }

 private:
  /// Continues to read after a failed write, because mpirun would otherwise wait for a reader.
  void copy() {
    std::array<char, 4096> buffer{};
    for (ssize_t got = 1; got != 0;) {
      got = ::read(ends_[0], buffer.data(), buffer.size());
      if (got < 0 && errno != EINTR) return;
      if (got > 0 && error_ == 0)
        error_ = write_all(STDOUT_FILENO, {buffer.data(), static_cast<std::size_t>(got)});
    }
  }

  std::array<int, 2> ends_{};
  int error_ = 0;  ///< written by copying_; read by others only after it is joined
  std::thread copying_;
};

ProcessesEnd start(const Plan& plan, const JobRequest& request,
                   const std::function<bool()>& hangs) {
  const int threads = plan.execution.threads_per_rank;
  if (!request.mpi)
    return run_processes(plan.ranks, threads, request.arguments, hangs, request.makes_checkpoints);
  Relay output;
  const LaunchResult result = launch({plan.ranks, threads, request.arguments, output.entrance(),
                                      request.makes_checkpoints, hangs});
  if (const int error = output.finish(); error != 0 && result.exit_code == 0)
    throw EnvironmentError(standard_output_failure(error));
  return {result.exit_code, result.interrupted, result.killed_by, -1};
}

/// Returns the message about a failure that no rank could report; empty if there is none.
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

int run_job(const PlanAndNetwork& planned, const JobRequest& request, Log& log) {
  const Plan& plan = planned.plan;
  const Network& network = planned.network;
  JobWatch watch(plan.ranks, request.patience, [&](int rank, std::size_t op) {
    const Program program = lower(network, plan.layers, plan.execution, rank);
    return to_text(program.ops.at(op), network, rank);
  });
  const ProcessesEnd end = start(plan, request, [&] { return watch.hangs(); });
  if (end.killed_by == SIGPIPE)
    end_for_lack_of_readers();  // only a write to standard output can end a rank by SIGPIPE
  if (const std::string text = explain(end, watch); !text.empty()) log.note(text);
  return end.exit_code;
}

}  // namespace stratplan
