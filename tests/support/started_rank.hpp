#pragma once
// A process that is started as a rank but runs a line of shell instead. It counts as a rank that
// has not begun, since it has no flight record.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace stratplan::test {

class StartedRank {
 public:
  /// `variable`: the variable by which a launcher tells the rank its number, for example
  /// "STRATPLAN_RANK=1".
  StartedRank(std::string variable, const std::string& script) : process_(fork()) {
    if (process_ != 0) return;
    char* const environment[] = {variable.data(), nullptr};
    execle("/bin/sh", "sh", "-c", script.c_str(), nullptr, environment);
    _exit(127);
  }
  StartedRank(const StartedRank&) = delete;
  StartedRank& operator=(const StartedRank&) = delete;
  ~StartedRank() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  int process() const { return process_; }

 private:
  pid_t process_;
};

}  // namespace stratplan::test
