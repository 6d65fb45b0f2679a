#pragma once
// What goes to standard error: messages, and progress. Data goes to standard output and is printed
// by the subcommands. No colour is ever written, so NO_COLOR has nothing to switch off.
#include <string>

#include "model/base/log.hpp"

namespace stratplan {

/// "stratplan: MESSAGE" on standard error, of the process that speaks.
void note(const std::string& message);

/// A long job's messages, and its progress: one line that overwrites itself on a terminal, one line
/// per phase elsewhere, nothing from other ranks.
class Console final : public Log {
 public:
  Console();
  ~Console() override;
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;
  void note(const std::string& message) override;
  void phase(const std::string& text) override;
  /// Shown on terminals only.
  void update(const std::string& detail) override;

 private:
  void clear();
  bool terminal_;
  bool drawn_ = false;
  std::string phase_;
};

}  // namespace stratplan
