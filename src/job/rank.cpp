#include "job/rank.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <new>
#include <optional>
#include <system_error>
#include <thread>

#include "job/stop_request.hpp"
#include "model/base/error.hpp"
#include "model/base/message.hpp"
#include "model/base/system/standard_streams.hpp"
#include "model/base/text.hpp"
#include "runtime/comm/loopback.hpp"
#include "runtime/comm/mpi.hpp"
#include "runtime/comm/processes.hpp"
#include "runtime/comm/recording.hpp"

namespace stratplan {
namespace {

std::pair<std::string, ExitCode> describe(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const RankFailure& in_place) {
    const auto [message, code] = describe(in_place.cause);
    return {fmt::format("{}: {}", in_place.place, message), code};
  } catch (const Error& error) {
    return {error.what(), error.code()};
  } catch (const std::bad_alloc&) {
    return {"out of memory", ExitCode::Environment};
  } catch (const std::system_error& error) {
    if (std::ferror(stdout))
      return {standard_output_failure(error.code().value()), ExitCode::Environment};
    return {fmt::format("internal error: {}", error.what()), ExitCode::Environment};
  } catch (const std::exception& error) {
    return {fmt::format("internal error: {}", error.what()), ExitCode::Environment};
  }
}

}  // namespace

int report_failure(const std::exception_ptr& failure) {
  const auto [message, code] = describe(failure);
  const bool rank = launched_as_rank();
  // A failure that all ranks share is reported by rank 0 only. The other ranks wait here until they
  // are ended because rank 0 has ended. A rank that has lost another rank waits until the launcher
  // ends it, because the launcher has seen which rank failed first.
  const bool second_hand = launched_by_processes() && code == ExitCode::Communication;
  if (rank && (!speaks() || second_hand)) {
    // From here on, SIGTERM ends this process and no longer asks for a checkpoint, because the
    // launcher sends SIGTERM to end this wait.
    std::signal(SIGTERM, SIG_DFL);
    std::this_thread::sleep_for(std::chrono::milliseconds(second_hand ? 500 : 2000));
  }
  std::fflush(stdout);
  write_message(fmt::format("stratplan: {}\n", message));
  if (rank) abort_all_ranks(static_cast<int>(code));
  return static_cast<int>(code);
}

bool speaks() { return launched_rank() <= 0; }

bool launched_as_rank() { return launched_by_processes() || launched_by_mpi(); }

void run_as_rank(const RankBody& body) {
  FlightRecorder recorder = FlightRecorder::of_rank(launched_rank());
  note_being_ended(recorder);
  recorder.begin({-1, Operation::joining});
  recorder.waits(true);  // polling in MPI_Init, as in MPI_Finalize, does not count as work
  std::optional<MpiSession> session;
  if (!launched_by_processes()) session.emplace();
  // The communicator outlives report_failure(), so that the other ranks lose this rank only after
  // its report.
  std::unique_ptr<Communicator> communicator;
  try {
    communicator = session ? make_mpi_communicator() : make_process_communicator();
    recorder.waits(false);
    recorder.begin({});
    RecordingCommunicator recorded(*communicator, recorder);
    body(recorded, recorder);
    recorder.waits(true);
    recorder.ends(Ending::Finished);
  } catch (...) {
    recorder.ends(Ending::Failed);
    report_failure(std::current_exception());
  }
}

void run_as_threads(int ranks, const RankBody& body) {
  run_loopback(ranks, [&](Communicator& communicator) { body(communicator, FlightRecorder()); });
}

void run_alone(const RankBody& body) { run_as_threads(1, body); }

}  // namespace stratplan
