#pragma once
// A process that acts as a rank: it writes a flight record and runs a test's function.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>

#include "runtime/watch/flight_recorder.hpp"

namespace stratplan::test {

class ForkedRank {
 public:
  ForkedRank(const std::string& records, int rank, const std::function<void(FlightRecorder)>& body)
      : process_(fork()) {
    if (process_ != 0) return;
    setenv(flight_records_variable, records.c_str(), 1);
    body(FlightRecorder::of_rank(rank));
    _exit(0);
  }
  ForkedRank(const FlightRecords& records, int rank,
             const std::function<void(FlightRecorder)>& body)
      : ForkedRank(records.address(), rank, body) {}
  ForkedRank(const ForkedRank&) = delete;
  ForkedRank& operator=(const ForkedRank&) = delete;
  ~ForkedRank() {
    if (process_ > 0) kill(process_, SIGKILL);
    wait();
  }
  int process() const { return process_; }
  void wait() {
    if (process_ > 0) waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  pid_t process_;
};

}  // namespace stratplan::test
