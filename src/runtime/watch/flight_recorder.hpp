#pragma once
// Records a rank's last operations in memory that outlives the rank. The memory is a ring of fixed
// size that the job's supervisor has mapped too (runtime/watch/job_watch.hpp). The supervisor can
// read it while the rank hangs, and after any kind of end. There is one writer. Recording an
// operation takes a few stores, without locks, clocks or allocation.
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace stratplan {

/// An op of a rank's program, or an activity between two iterations. Operations compare in order of
/// time.
struct Operation {
  // Values of `op` that are not indices of ops.
  static constexpr std::int64_t joining = -1,  ///< joining the other ranks (MPI_Init)
      between_steps = std::numeric_limits<std::int32_t>::max(), checkpoint = between_steps + 1,
                                verification = between_steps + 2;
  std::int64_t iteration = -1;      ///< counts from 0; -1 before the first iteration
  std::int64_t op = between_steps;  ///< index of the op, or one of the constants
  friend auto operator<=>(const Operation&, const Operation&) = default;
};

/// How a rank ended, if the rank could record its end. Told means that SIGTERM ended the rank
/// because another rank had ended.
enum class Ending : int { None, Finished, Failed, Told };

/// One rank's record in the shared memory. All bytes are zero until the rank begins.
struct FlightRecord {
  static constexpr std::size_t kept = 32;
  struct Entry {
    std::atomic<std::int64_t> iteration, op;
  };
  std::array<char, 64> host;
  std::atomic<std::int32_t> process;  ///< process id; set last when the rank begins
  std::atomic<Ending> ending;
  std::atomic<bool> waiting;         ///< the rank is in a call that waits for other ranks
  std::atomic<std::uint64_t> count;  ///< number of operations begun so far
  std::array<Entry, kept> ring;

  bool begun() const { return process.load(std::memory_order_acquire) != 0; }
  /// Whether the rank has joined the other ranks.
  bool joined() const { return begun() && now().op != Operation::joining; }
  /// Returns the last operations, at most `most`, in order of time. The last of them is the current
  /// operation.
  std::vector<Operation> last(std::size_t most) const;
  Operation now() const { return last(1).front(); }
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                  std::atomic<Ending>::is_always_lock_free,
              "atomics that processes share must be lock-free");

/// Returns the name of this machine.
std::string host_name();

/// The records of a job's ranks, in memory that all of the job's processes on this machine map. The
/// memory has no name in a file system, and is freed with the last process.
class FlightRecords {
 public:
  /// Makes records for this many ranks; no records if the machine cannot provide the memory.
  static FlightRecords make(int ranks);
  /// Maps the records that another process made; no records if that process has ended, or is on
  /// another machine.
  static FlightRecords open(const std::string& address);

  int ranks() const { return ranks_; }
  FlightRecord& operator[](int rank) const { return records_.get()[rank]; }
  std::span<const FlightRecord> all() const {
    return {records_.get(), static_cast<std::size_t>(ranks_)};
  }
  /// Returns the address of the records: "/proc/PID/fd/N:NAME". The name is unique, so a file at
  /// this path on another machine is not mistaken for the records.
  const std::string& address() const { return address_; }
  std::shared_ptr<FlightRecord> share(int rank) const { return {records_, records_.get() + rank}; }

 private:
  /// Takes ownership of the descriptor.
  FlightRecords(const std::string& address, int descriptor);
  FlightRecords() = default;

  std::string address_;
  int ranks_ = 0;
  std::shared_ptr<FlightRecord> records_;
};

/// The environment variable that gives the ranks of a job the address of their records.
inline constexpr const char* flight_records_variable = "STRATPLAN_FLIGHT_RECORDS";

/// Writes one rank's record. A copy writes to the same record.
class FlightRecorder {
 public:
  /// Makes a recorder with a private record, which no other process can read.
  FlightRecorder();
  /// Returns a recorder for the rank's record, at the address in flight_records_variable. Without
  /// such a record, returns a recorder with a private record.
  static FlightRecorder of_rank(int rank);

  void begin(Operation operation) noexcept {
    const std::uint64_t count = record_->count.load(std::memory_order_relaxed);
    FlightRecord::Entry& entry = record_->ring[count % FlightRecord::kept];
    entry.iteration.store(operation.iteration, std::memory_order_relaxed);
    entry.op.store(operation.op, std::memory_order_relaxed);
    record_->count.store(count + 1, std::memory_order_release);
  }
  void waits(bool waiting) noexcept { record_->waiting.store(waiting, std::memory_order_relaxed); }
  /// Records how the rank ends; only the first call counts. Safe in signal handlers.
  void ends(Ending ending) noexcept;
  const FlightRecord& record() const { return *record_; }

 private:
  explicit FlightRecorder(std::shared_ptr<FlightRecord> record);

  std::shared_ptr<FlightRecord> record_;
};

}  // namespace stratplan
