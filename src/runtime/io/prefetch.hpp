#pragma once
// Reads ahead: while a step computes, a thread loads the next step's data.
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/io/data.hpp"

namespace stratplan {

/// Provides the contents of `source`, which from now on only this object's thread calls. The thread
/// reads the first step's data at once. It begins to read the next step's data when the current
/// step calls load() for the first time, so that reading overlaps the step. Errors of reading are
/// thrown by the load() that asks for the data.
class PrefetchedData final : public DataSource {
 public:
  /// `source` must outlive this object. `loads` are all loads of the program (loads_of).
  PrefetchedData(DataSource& source, std::vector<LoadOp> loads, std::int64_t first_step = 0);
  ~PrefetchedData() override;

  /// Any step may be loaded, but only the step after the previous step has been read ahead. `load`
  /// must be among the loads that the constructor got.
  std::span<const std::byte> load(const LoadOp& load, std::int64_t step) override;
  /// Waits until the thread has finished reading. It stays idle until the next load.
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
  Batch current_;  ///< the data that load() returns
  Batch next_;     ///< only the thread uses this batch while `busy_`
  bool busy_ = false;
  bool ends_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::jthread thread_;  ///< the last member, so that it is joined before the others end
};

}  // namespace stratplan
