#include "cli/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "job/rank.hpp"
#include "model/base/message.hpp"

namespace stratplan {
namespace {

/// Environment variable that the launching process sets for its ranks if standard error is a
/// terminal. Ranks under mpirun write to a pipe, so they cannot find out themselves.
constexpr const char* terminal_variable = "STRATPLAN_TERMINAL";

/// Erases a progress line that another rank or the launcher may have left. note() prints it before
/// every message on a terminal.
constexpr const char* erase_line = "\r\033[K";

bool terminal() {
  if (std::getenv(terminal_variable)) return true;
  const char* kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) && kind && std::string_view(kind) != "dumb" && !std::getenv("CI");
}

}  // namespace

void note(const std::string& message) {
  if (speaks())
    write_message(fmt::format("{}stratplan: {}\n", terminal() ? erase_line : "", message));
}

Console::Console() : terminal_(terminal()) {
  if (terminal_) setenv(terminal_variable, "1", 1);
}
Console::~Console() { clear(); }

void Console::note(const std::string& message) { stratplan::note(message); }

void Console::clear() {
  if (drawn_) write_message(erase_line);
  drawn_ = false;
}

void Console::phase(const std::string& text) {
  if (!speaks()) return;
  phase_ = text;
  if (terminal_) return update("");
  write_message(text + "\n");
}

void Console::update(const std::string& detail) {
  if (!terminal_ || !speaks()) return;
  write_message(fmt::format("{}{}{}{}", erase_line, phase_, detail.empty() ? "" : ": ", detail));
  drawn_ = true;
}

}  // namespace stratplan
