#pragma once
// What a job's supervisor sees of its ranks, through their flight records
// (runtime/watch/flight_recorder.hpp): whether all stand still, and in words who is to blame. It
// works the same however the ranks were started, for those on this machine; of ranks elsewhere
// there are no records, and nothing is said of them. A rank that has not begun has no record yet:
// until then its process is looked for among those that descend from this one.
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
  /// A step of a rank's program in words.
  using OpText = std::function<std::string(int rank, std::size_t step)>;
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  /// How long ranks get to begin and to meet (MPI_Init) while nothing is seen to move, if the job's
  /// own patience is shorter and none of them is stopped: a machine
  /// under load is slow to start a job, and who waits in MPI_Init can not be told from who works
  /// there.
  static constexpr Seconds least_to_join{10};

  /// Makes the records and names them in the environment, for ranks that are started from now on.
  /// `patience`: how long a job may stand still; 0: for ever. `clock`: tests have their own.
  JobWatch(int ranks, Seconds patience, OpText op_text, Seconds to_join = least_to_join,
           Clock clock = &std::chrono::steady_clock::now);
  ~JobWatch();
  JobWatch(const JobWatch&) = delete;
  JobWatch& operator=(const JobWatch&) = delete;

  /// Whether the job has stood still for too long; to be asked all the time, and cheap. A job moves
  /// if any rank begins another operation, or one that is not waiting for others, or has not begun,
  /// uses its processor. Time in which this process was stopped too does not count. As long as some
  /// ranks are not to be seen here (they may be on other machines) only a process that is stopped
  /// makes the job hang.
  bool hangs();
  /// Whom the others wait for, and its last operations; where hangs() has come true.
  const std::string& hang_text() const { return hang_text_; }

  /// The rank that ended without a word, unlike those that were ended because of it.
  std::optional<int> silent() const;
  /// Whether a rank has said itself what went wrong.
  bool any_failed() const;
  /// "rank 3 on HOST was killed by signal 9 (Killed) in step 17 during ..."
  std::string killed_text(std::optional<int> rank, int signal) const;
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

/// "in step 17 during conv_forward of conv1 (forward)", "after step 17"; steps counted from 1.
std::string place_of(const Operation& operation,
                     const std::function<std::string(std::size_t step)>& op_text);

}  // namespace stratplan
