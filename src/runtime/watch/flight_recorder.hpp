#pragma once
// A rank's last operations, written where they outlive it: a ring of fixed size in memory that the
// job's supervisor has mapped as well (runtime/watch/job_watch.hpp),
// so that it can be read however the rank ended, and while it hangs. One writer; an operation takes
// a few stores: no lock, no clock, no allocation.
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace stratplan {

/// What a rank is at: a step of its program, or something between two iterations. Ordered as they
/// happen.
struct Operation {
  static constexpr std::int64_t joining = -1,  ///< before the first iteration: MPI_Init
      between_steps = std::numeric_limits<std::int32_t>::max(), checkpoint = between_steps + 1,
                                verification = between_steps + 2;
  std::int64_t iteration = -1;  ///< from 0; -1: before the first
  std::int64_t step = between_steps;
  friend auto operator<=>(const Operation&, const Operation&) = default;
};

/// How a rank came to its end, as far as it could say; Told: by SIGTERM, because another had ended.
enum class Ending : int { None, Finished, Failed, Told };

/// What lies in that memory, one per rank; zeros mean that the rank has not begun.
struct FlightRecord {
  static constexpr std::size_t kept = 32;
  struct Entry {
    std::atomic<std::int64_t> iteration, step;
  };
  std::array<char, 64> host;
  std::atomic<std::int32_t> process;  ///< its id; set last
  std::atomic<Ending> ending;
  std::atomic<bool> waiting;         ///< in a call that waits for other ranks
  std::atomic<std::uint64_t> count;  ///< of operations begun so far
  std::array<Entry, kept> ring;

  bool begun() const { return process.load(std::memory_order_acquire) != 0; }
  /// Whether it has met the other ranks.
  bool joined() const { return begun() && now().step != Operation::joining; }
  /// The last operations, at most `most`, the current one behind.
  std::vector<Operation> last(std::size_t most) const;
  Operation now() const { return last(1).front(); }
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                  std::atomic<Ending>::is_always_lock_free,
              "shared between processes");

/// "vm", as messages name it.
std::string host_name();

/// The records of a job's ranks, in memory that all its processes on this machine map. It has no
/// name in any file system, and goes with the last of them.
class FlightRecords {
 public:
  /// For so many ranks; on a machine where none can be made there are no records.
  static FlightRecords make(int ranks);
  /// Those of another process, as long as it lives; none if that is not on this machine.
  static FlightRecords open(const std::string& address);

  int ranks() const { return ranks_; }
  FlightRecord& operator[](int rank) const { return records_.get()[rank]; }
  std::span<const FlightRecord> all() const {
    return {records_.get(), static_cast<std::size_t>(ranks_)};
  }
  /// "/proc/PID/fd/N:NAME"; the name tells them from what another machine has in that place.
  const std::string& address() const { return address_; }
  std::shared_ptr<FlightRecord> share(int rank) const { return {records_, records_.get() + rank}; }

 private:
  /// Takes over the descriptor.
  FlightRecords(const std::string& address, int descriptor);
  FlightRecords() = default;

  std::string address_;
  int ranks_ = 0;
  std::shared_ptr<FlightRecord> records_;
};

/// The address of the records, for the ranks of a job.
inline constexpr const char* flight_records_variable = "STRATPLAN_FLIGHT_RECORDS";

/// The writing side. A copy writes to the same record.
class FlightRecorder {
 public:
  /// A record that nobody else sees.
  FlightRecorder();
  /// Among the records that flight_records_variable names, if it does and they are there.
  static FlightRecorder of_rank(int rank);

  void begin(Operation operation) noexcept {
    const std::uint64_t count = record_->count.load(std::memory_order_relaxed);
    FlightRecord::Entry& entry = record_->ring[count % FlightRecord::kept];
    entry.iteration.store(operation.iteration, std::memory_order_relaxed);
    entry.step.store(operation.step, std::memory_order_relaxed);
    record_->count.store(count + 1, std::memory_order_release);
  }
  void waits(bool waiting) noexcept { record_->waiting.store(waiting, std::memory_order_relaxed); }
  /// The first ending counts. Safe in signal handlers.
  void ends(Ending ending) noexcept;
  const FlightRecord& record() const { return *record_; }

 private:
  explicit FlightRecorder(std::shared_ptr<FlightRecord> record);

  std::shared_ptr<FlightRecord> record_;
};

}  // namespace stratplan
