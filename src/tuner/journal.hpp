#pragma once
// What autotune does and why, as it happens: lines for people in the results folder's `log`, and
// events for programs, one JSON object a line (--events).
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "model/base/json/json_fwd.hpp"
#include "model/base/system/cpu_time.hpp"
#include "model/base/units.hpp"

namespace stratplan {

/// Takes one line of an event, without its end.
using EventSink = std::function<void(const std::string&)>;

class Journal {
 public:
  /// Appends to `file`. `events` may be empty. Throws EnvironmentError if the file cannot be
  /// written.
  Journal(const std::filesystem::path& file, EventSink events);

  /// Writes `text` to the log. The event has the keys of `details`, "event": `kind`, and
  /// "after_seconds", which is elapsed().
  void write(const std::string& kind, const std::string& text, const Json& details);
  Seconds elapsed() const;

 private:
  Seconds start_ = steady_time();
  std::ofstream log_;
  EventSink events_;
};

}  // namespace stratplan
