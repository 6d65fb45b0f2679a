#pragma once
// Lets messages move while kernels run. MPI libraries move data only inside their calls, and the
// executor calls MPI only between kernels. Sockets hold a few hundred kibibytes, so without this
// thread a kernel of 30 ms hides as little of a large sum as a kernel of 1 ms does.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace stratplan {

class ProgressThread {
 public:
  /// Calls MPI for the messages under way. Returns false once none is. Called under the lock.
  using Progress = std::function<bool()>;

  explicit ProgressThread(Progress progress);
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  /// Returns the lock under which a thread calls MPI. MPI is started for one caller at a time
  /// (MPI_THREAD_SERIALIZED).
  std::unique_lock<std::mutex> lock() { return std::unique_lock(calls_); }
  /// Says that messages are under way. Called under the lock.
  void wake();

 private:
  /// The thread sleeps this long between two calls. A link of 4 Gbit/s moves 250 KB meanwhile,
  /// which a socket holds. A call takes some ten microseconds of the kernels' time.
  static constexpr std::chrono::microseconds interval{500};

  void run();

  Progress progress_;
  std::mutex calls_;
  std::condition_variable changed_;
  bool under_way_ = false;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace stratplan
