#pragma once
// The sink of a long job's messages. The command line passes the sink down, so that no other folder
// writes to a terminal.
#include <string>

namespace stratplan {

/// Messages for people. They may come from any rank, and from several threads at once if ranks are
/// threads. The sink decides which messages to show.
class Log {
 public:
  virtual ~Log() = default;
  /// Tells the user something, in one line.
  virtual void note(const std::string& message) = 0;
  /// Says that a phase of the work begins: "measuring kernels".
  virtual void phase(const std::string& text) = 0;
  /// Says how far the current phase is: "37 of 120".
  virtual void update(const std::string& detail) = 0;
};

/// Drops all messages.
class SilentLog final : public Log {
 public:
  void note(const std::string&) override {}
  void phase(const std::string&) override {}
  void update(const std::string&) override {}
};

}  // namespace stratplan
