#include "tuner/journal.hpp"

#include <fmt/format.h>

#include "model/base/json/json.hpp"
#include "model/base/system/output.hpp"

namespace stratplan {

Journal::Journal(const std::filesystem::path& file, EventSink events) : events_(std::move(events)) {
  check_writable(file);
  log_.open(file, std::ios::app);
}

void Journal::write(const std::string& kind, const std::string& text, const Json& details) {
  log_ << fmt::format("{:7.1f} s  {}\n", elapsed().value, text) << std::flush;
  if (!events_) return;
  Json event{{"event", kind}, {"after_seconds", elapsed().value}};
  event.update(details);
  events_(event.dump());
}

Seconds Journal::elapsed() const { return steady_time() - start_; }

}  // namespace stratplan
