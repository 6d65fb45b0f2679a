#include "runtime/job_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <tuple>

namespace stratplan {
namespace {

constexpr JobWatch::Seconds look_interval{0.25};
constexpr std::size_t operations_told = 4;
constexpr int ranks_told = 8;

/// What /proc/PID/stat says.
struct ProcessState {
  char state = 'X';
  std::uint64_t processor_ticks = 0;  ///< of all its threads
  bool stopped() const { return state == 'T' || state == 't'; }
};

ProcessState state_of(int process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(
      std::min(text.size(), text.rfind(')') + 1)));  // the program's name may hold anything
  ProcessState found;
  std::string skipped;
  fields >> found.state;
  for (int i = 0; i < 10; ++i) fields >> skipped;
  std::uint64_t user = 0, system = 0;
  if (fields >> user >> system) found.processor_ticks = user + system;
  return found;
}

}  // namespace

std::string place_of(const Operation& operation,
                     const std::function<std::string(std::size_t step)>& step_text) {
  if (operation.step == Operation::verification) return "while verifying the first step";
  if (operation.iteration < 0) return "before the first step";
  const std::int64_t number = operation.iteration + 1;
  if (operation.step == Operation::checkpoint)
    return fmt::format("after step {} during a checkpoint", number);
  if (operation.step == Operation::between_steps) return fmt::format("after step {}", number);
  return fmt::format("in step {} during {}", number,
                     step_text(static_cast<std::size_t>(operation.step)));
}

JobWatch::JobWatch(int ranks, Seconds patience, StepText step_text)
    : records_(FlightRecords::make(ranks)),
      patience_(patience),
      step_text_(std::move(step_text)),
      looked_(std::chrono::steady_clock::now()) {
  if (records_.ranks() > 0) setenv(flight_records_variable, records_.file().c_str(), 1);
}

JobWatch::~JobWatch() { unsetenv(flight_records_variable); }

bool JobWatch::hangs() {
  const auto now = std::chrono::steady_clock::now();
  const Seconds elapsed = now - looked_;
  if (patience_.count() <= 0 || records_.ranks() == 0 || elapsed < look_interval ||
      !hang_text_.empty())
    return !hang_text_.empty();
  looked_ = now;
  auto seen = pulses();
  if (!seen || *seen != seen_) {
    still_ = Seconds{0};
    seen_ = seen.value_or(std::vector<Pulse>{});
    return false;
  }
  still_ += std::min(elapsed, 4 * look_interval);
  if (still_ < patience_) return false;
  hang_text_ = describe_hang();
  return true;
}

/// Nothing while a rank has not begun.
std::optional<std::vector<JobWatch::Pulse>> JobWatch::pulses() const {
  std::vector<Pulse> all;
  for (int rank = 0; rank < records_.ranks(); ++rank) {
    const FlightRecord& record = records_[rank];
    if (!record.begun()) return {};
    all.push_back({record.count, record.waiting ? 0 : state_of(record.process).processor_ticks,
                   record.ending});
  }
  return all;
}

/// A rank that is stopped, else one that waits for nobody, else the one furthest behind.
int JobWatch::to_blame() const {
  const auto innocence = [&](int rank) {
    const FlightRecord& record = records_[rank];
    return std::tuple(record.ending != Ending::None, !state_of(record.process).stopped(),
                      record.waiting.load(), record.now(), rank);
  };
  int found = 0;
  for (int rank = 1; rank < records_.ranks(); ++rank)
    if (innocence(rank) < innocence(found)) found = rank;
  return found;
}

std::string JobWatch::describe_hang() const {
  const int rank = to_blame();
  const FlightRecord& record = records_[rank];
  std::string text =
      fmt::format("{} hangs {}: the job has stood still for {:.0f} s{}", who(rank), where(rank),
                  patience_.count(),
                  state_of(record.process).stopped()
                      ? fmt::format(", and process {} is stopped", record.process.load())
                      : "");
  const auto operations = record.last(operations_told + 1);
  for (std::size_t i = 0; i + 1 < operations.size(); ++i)
    text += fmt::format(
        "\n  rank {} before that: {}", rank,
        place_of(operations[i], [&](std::size_t step) { return step_text_(rank, step); }));
  for (int other = 0; other < std::min(records_.ranks(), ranks_told); ++other)
    if (other != rank)
      text += fmt::format("\n  rank {} {} {}", other, records_[other].waiting ? "waits" : "is",
                          where(other));
  return text;
}

std::optional<int> JobWatch::silent() const {
  std::optional<int> found;
  for (int rank = 0; rank < records_.ranks(); ++rank) {
    const FlightRecord& record = records_[rank];
    if (!record.begun() || record.ending != Ending::None) continue;
    if (!found || record.now() < records_[*found].now()) found = rank;
  }
  return found;
}

bool JobWatch::any_failed() const {
  for (int rank = 0; rank < records_.ranks(); ++rank)
    if (records_[rank].ending == Ending::Failed) return true;
  return false;
}

std::string JobWatch::who(int rank) const {
  return fmt::format("rank {} on {}", rank, records_[rank].host.data());
}

std::string JobWatch::where(int rank) const {
  return place_of(records_[rank].now(), [&](std::size_t step) { return step_text_(rank, step); });
}

std::string JobWatch::killed_text(std::optional<int> rank, int signal) const {
  const std::string what = fmt::format("was killed by signal {} ({})", signal, strsignal(signal));
  if (!rank) return fmt::format("a rank {}", what);
  if (*rank >= records_.ranks() || !records_[*rank].begun())
    return fmt::format("rank {} {} before it began", *rank, what);
  return fmt::format("{} {} {}", who(*rank), what, where(*rank));
}

std::string JobWatch::ended_text(int rank) const {
  return fmt::format("{} has ended {}, without a word", who(rank), where(rank));
}

}  // namespace stratplan
