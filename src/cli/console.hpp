#pragma once
// What goes to standard error: messages, and progress. Data goes to standard output and is printed by the subcommands. No colour is
// ever written, so NO_COLOR has nothing to switch off.
#include <string>

namespace stratplan {

/// Whether this process speaks for the job: rank 0, or not a rank at all.
bool speaks();
/// "stratplan: MESSAGE" on standard error, of the process that speaks.
void note(const std::string& message);

/// Progress of a long job: one line that overwrites itself on a terminal, one line per phase elsewhere, nothing from other ranks.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// A phase begins: "measuring kernels".
  void phase(const std::string& text);
  /// How far it is: "37 of 120". Shown on terminals only.
  void update(const std::string& detail);

 private:
  void clear();
  bool terminal_;
  bool drawn_ = false;
  std::string phase_;
};

}  // namespace stratplan
