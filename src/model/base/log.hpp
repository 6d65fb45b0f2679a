#pragma once
// Where a long job's messages go. Given from above, so that no layer below the command line writes
// to a terminal.
#include <string>

namespace stratplan {

/// Messages for people. They may come from any rank and from threads that are ranks; who is heard
/// is the sink's business.
class Log {
 public:
  virtual ~Log() = default;
  /// Something that the user should know: one line.
  virtual void note(const std::string& message) = 0;
  /// A phase of the work begins: "measuring kernels".
  virtual void phase(const std::string& text) = 0;
  /// How far the phase is: "37 of 120".
  virtual void update(const std::string& detail) = 0;
};

/// Says nothing.
class SilentLog final : public Log {
 public:
  void note(const std::string&) override {}
  void phase(const std::string&) override {}
  void update(const std::string&) override {}
};

}  // namespace stratplan
