#pragma once
// Messages and progress on standard error. The subcommands print data on standard output. Nothing
// is ever written in colour, so NO_COLOR has nothing to switch off.
#include <string>

#include "model/base/log.hpp"

namespace stratplan {

/// Prints "stratplan: MESSAGE" on standard error, if this process speaks for the job
/// (job/rank.hpp).
void note(const std::string& message);

/// Prints a long job's messages and its progress: one line that overwrites itself on a terminal,
/// one line per phase elsewhere. Prints nothing if this process does not speak for the job.
class Console final : public Log {
 public:
  Console();
  ~Console() override;
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  void note(const std::string& message) override;
  void phase(const std::string& text) override;
  /// Prints `detail` behind the phase, on terminals only.
  void update(const std::string& detail) override;

 private:
  void clear();
  bool terminal_;
  bool drawn_ = false;
  std::string phase_;
};

}  // namespace stratplan
