#pragma once
// Watches the ranks of a job for its supervisor, through their flight records
// (runtime/watch/flight_recorder.hpp). It detects that all ranks stand still, and names the rank to
// blame. It works for all ranks on this machine, however they were started. Ranks on other machines
// have no records, and no message names them. A rank that has not begun has no record yet. Its
// process is looked for among the descendants of this process.
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/base/system/process_tree.hpp"
#include "runtime/watch/flight_recorder.hpp"

namespace stratplan {

class JobWatch {
 public:
  using Seconds = std::chrono::duration<double>;
  /// Describes an op of a rank's program in words.
  using OpText = std::function<std::string(int rank, std::size_t op)>;
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  /// The shortest limit on the time without progress, while not all ranks have begun and joined the
  /// others (MPI_Init). If a process is stopped, the limit may be shorter. A loaded machine starts
  /// jobs slowly, and in MPI_Init waiting cannot be told from working.
  static constexpr Seconds least_to_join{10};

  /// Makes the records and puts their address into the environment, for ranks started from now on.
  /// `patience` is the time that a job may stand still; 0 means forever. `to_join` replaces
  /// least_to_join. Tests pass a `clock` of their own.
  JobWatch(int ranks, Seconds patience, OpText op_text, Seconds to_join = least_to_join,
           Clock clock = &std::chrono::steady_clock::now);
  ~JobWatch();
  JobWatch(const JobWatch&) = delete;
  JobWatch& operator=(const JobWatch&) = delete;

  /// Whether the job has stood still for too long. Must be called regularly; a call is cheap. A job
  /// moves if a rank begins another operation. A job also moves if a rank uses processor time
  /// before it has begun, or while it is not waiting for other ranks. Time in which this process
  /// itself was stopped does not count. If some ranks are not found on this machine, they may be on
  /// other machines. Then the job hangs only if a process is stopped.
  bool hangs();
  /// Returns a message that names the rank to blame and its last operations, or the ranks that have
  /// not begun. The message is empty until hangs() is true.
  const std::string& hang_text() const { return hang_text_; }

  /// Returns the rank that is furthest behind among the ranks that have begun but recorded no
  /// ending; no value if there is no such rank. After a job has ended, that rank ended without an
  /// error message.
  std::optional<int> silent() const;
  /// Whether a rank has failed and reported its own error.
  bool any_failed() const;
  /// Returns "rank 3 on HOST was killed by signal 9 (Killed) in step 17 during ...".
  std::string killed_text(std::optional<int> rank, int signal) const;
  /// Returns "rank 3 on HOST ended in step 17 during ..., without an error message".
  std::string ended_text(int rank) const;

 private:
  struct Pulse {
    std::uint64_t operations = 0, processor_ticks = 0;
    Ending ending = Ending::None;
    friend bool operator==(const Pulse&, const Pulse&) = default;
  };
  using Processes = std::vector<ProcessState>;

  std::vector<Pulse> pulses() const;
  std::map<int, std::uint64_t> beginners(const Processes& processes) const;
  bool moves();
  std::optional<Seconds> limit(const Processes& processes) const;
  std::vector<int> missing(const Processes& processes) const;
  int to_blame() const;
  std::string who(int rank) const;
  std::string where(int rank) const;
  std::string stopped_text(const Processes& processes) const;
  std::string history(int rank) const;
  std::string describe_hang(const Processes& processes, Seconds still) const;

  FlightRecords records_;
  Seconds patience_, to_join_;
  OpText op_text_;
  Clock clock_;
  std::chrono::steady_clock::time_point looked_;
  std::vector<Pulse> seen_;
  std::map<int, std::uint64_t> beginners_seen_;
  Seconds still_{0};
  std::string hang_text_;
};

/// Returns "in step 17 during conv_forward of conv1 (forward)" or "after step 17". Training steps
/// count from 1. `op_text` describes an op by its index.
std::string place_of(const Operation& operation,
                     const std::function<std::string(std::size_t op)>& op_text);

}  // namespace stratplan
