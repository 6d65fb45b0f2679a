#pragma once
// Reading ahead: while a step computes, a thread brings the next step's data.
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/io/data.hpp"

namespace stratplan {

/// The same contents as `source` gives, which only the thread of this object calls from now on. It
/// starts with the first step's data at once, and with the next step's as soon as a step's first
/// load has taken its own: what is then left of reading hides behind the step. What goes wrong
/// while reading is thrown by the load that asks for it.
class PrefetchedData final : public DataSource {
 public:
  /// `source` must outlive this; `loads` are all that will be asked for, as in Program.
  PrefetchedData(DataSource& source, std::vector<LoadOp> loads, std::int64_t first_step = 0);
  ~PrefetchedData() override;

  /// Any step may be asked for; the one after the last is there soonest. A load that was not
  /// announced is a bug.
  std::span<const std::byte> load(const LoadOp& load, std::int64_t step) override;
  /// Waits for what is being read: nothing is read in the background until the next load.
  void wait();

 private:
  struct Batch {
    std::int64_t step = -1;
    std::vector<std::vector<std::byte>> contents;  ///< one per load
    std::exception_ptr failure;
  };
  void work();
  void read(Batch& batch);
  void request(std::int64_t step);

  DataSource& source_;
  std::vector<LoadOp> loads_;
  Batch current_;  ///< of the consumer
  Batch next_;     ///< of the thread while `busy_`
  bool busy_ = false;
  bool ends_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::jthread thread_;  ///< last: ends before the rest goes
};

}  // namespace stratplan
