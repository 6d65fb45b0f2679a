#include "runtime/watch/job_watch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <tuple>

#include "runtime/comm/mpi.hpp"

namespace stratplan {
namespace {

constexpr JobWatch::Seconds look_interval{0.25};
constexpr std::size_t operations_told = 4;
constexpr std::size_t ranks_told = 8;

}  // namespace

std::string place_of(const Operation& operation,
                     const std::function<std::string(std::size_t op)>& op_text) {
  if (operation.op == Operation::verification) return "while verifying the first step";
  if (operation.op == Operation::joining) return "while joining the other ranks";
  if (operation.iteration < 0) return "before the first step";
  const std::int64_t number = operation.iteration + 1;
  if (operation.op == Operation::checkpoint)
    return fmt::format("after step {} during a checkpoint", number);
  if (operation.op == Operation::between_steps) return fmt::format("after step {}", number);
  return fmt::format("in step {} during {}", number,
                     op_text(static_cast<std::size_t>(operation.op)));
}

JobWatch::JobWatch(int ranks, Seconds patience, OpText op_text, Seconds to_join, Clock clock)
    : records_(FlightRecords::make(ranks)),
      patience_(patience),
      to_join_(std::max(patience, to_join)),
      op_text_(std::move(op_text)),
      clock_(std::move(clock)),
      looked_(clock_()) {
  if (records_.ranks() > 0) setenv(flight_records_variable, records_.address().c_str(), 1);
}

JobWatch::~JobWatch() { unsetenv(flight_records_variable); }

bool JobWatch::hangs() {
  const auto now = clock_();
  const Seconds elapsed = now - looked_;
  if (patience_.count() <= 0 || records_.ranks() == 0 || elapsed < look_interval ||
      !hang_text_.empty())
    return !hang_text_.empty();
  looked_ = now;
  if (moves()) {
    still_ = Seconds{0};
    return false;
  }
  still_ += std::min(elapsed, 4 * look_interval);
  if (still_ < patience_) return false;
  const Processes processes = descendants_of(getpid());
  const auto most = limit(processes);
  if (!most || still_ < *most) return false;
  hang_text_ = describe_hang(processes, *most);
  return true;
}

/// Returns the signs of progress, by rank; zeros for ranks that have not begun.
std::vector<JobWatch::Pulse> JobWatch::pulses() const {
  std::vector<Pulse> all;
  for (int rank = 0; rank < records_.ranks(); ++rank) {
    const FlightRecord& record = records_[rank];
    const bool works = record.begun() && !record.waiting;
    all.push_back({record.count, works ? state_of_process(record.process).processor_ticks : 0,
                   record.ending});
  }
  return all;
}

/// Returns the ranks that run on this machine but have not begun, and the processor ticks of each.
std::map<int, std::uint64_t> JobWatch::beginners(const Processes& processes) const {
  std::map<int, std::uint64_t> found;
  for (const ProcessState& process : processes) {
    const int rank = process.ended() ? -1 : launched_rank_of(process.process);
    if (rank >= 0 && rank < records_.ranks() && !records_[rank].begun())
      found.emplace(rank, process.processor_ticks);
  }
  return found;
}

/// Whether any rank has moved since the previous call. The processes are searched only if the
/// records show no progress.
bool JobWatch::moves() {
  if (auto seen = pulses(); seen != seen_) {
    seen_ = std::move(seen);
    return true;
  }
  if (std::ranges::all_of(records_.all(), &FlightRecord::begun)) return false;
  auto seen = beginners(descendants_of(getpid()));
  const bool moved = seen != beginners_seen_;
  beginners_seen_ = std::move(seen);
  return moved;
}

/// Returns the time without progress after which the job counts as hanging; no value if there is no
/// limit.
std::optional<JobWatch::Seconds> JobWatch::limit(const Processes& processes) const {
  if (std::ranges::any_of(processes, &ProcessState::stopped)) return patience_;
  const std::map<int, std::uint64_t> beginning = beginners(processes);
  for (int rank = 0; rank < records_.ranks(); ++rank)
    if (!records_[rank].begun() && !beginning.contains(rank)) return {};
  return std::ranges::all_of(records_.all(), &FlightRecord::joined) ? patience_ : to_join_;
}

/// Returns the ranks that have not begun. Once some ranks have joined, ranks that are not found on
/// this machine are on other machines, and are left out.
std::vector<int> JobWatch::missing(const Processes& processes) const {
  const bool met = std::ranges::any_of(records_.all(), &FlightRecord::joined);
  const std::map<int, std::uint64_t> beginning = beginners(processes);
  std::vector<int> found;
  for (int rank = 0; rank < records_.ranks(); ++rank)
    if (!records_[rank].begun() && (!met || beginning.contains(rank))) found.push_back(rank);
  return found;
}

/// Returns the rank to blame, among the ranks that have begun: a stopped rank, else a rank that is
/// not waiting, else the rank furthest behind.
int JobWatch::to_blame() const {
  const auto innocence = [&](int rank) {
    const FlightRecord& record = records_[rank];
    return std::tuple(record.ending != Ending::None, !state_of_process(record.process).stopped(),
                      record.waiting.load(), record.now(), rank);
  };
  int found = -1;
  for (int rank = 0; rank < records_.ranks(); ++rank)
    if (records_[rank].begun() && (found < 0 || innocence(rank) < innocence(found))) found = rank;
  return found;
}

/// Lists the stopped processes, with the names of their programs if they are not ranks.
std::string JobWatch::stopped_text(const Processes& processes) const {
  std::string text;
  for (const ProcessState& process : processes) {
    if (!process.stopped()) continue;
    const bool rank = launched_rank_of(process.process) >= 0;
    text += fmt::format(", and process {} {}is stopped", process.process,
                        rank ? "" : fmt::format("({}) ", process.name));
  }
  return text;
}

std::string JobWatch::history(int rank) const {
  std::string text;
  const auto operations = records_[rank].last(operations_told + 1);
  for (std::size_t i = 0; i + 1 < operations.size(); ++i)
    text +=
        fmt::format("\n  rank {} before that: {}", rank,
                    place_of(operations[i], [&](std::size_t op) { return op_text_(rank, op); }));
  return text;
}

std::string JobWatch::describe_hang(const Processes& processes, Seconds still) const {
  const std::vector<int> missing = this->missing(processes);
  const int blamed = missing.empty() ? to_blame() : -1;
  std::string text =
      blamed >= 0 ? fmt::format("{} hangs {}", who(blamed), where(blamed))
      : missing.size() == 1
          ? fmt::format("rank {} has not begun", missing.front())
          : fmt::format("{} ranks have not begun ({})", missing.size(),
                        fmt::join(missing.begin(),
                                  missing.begin() + std::min(missing.size(), ranks_told), ", "));
  text += fmt::format(": the job has stood still for {:.0f} s{}", still.count(),
                      stopped_text(processes));
  if (blamed >= 0) text += history(blamed);
  for (int other = 0; other < std::min(records_.ranks(), static_cast<int>(ranks_told)); ++other)
    if (other != blamed && records_[other].begun())
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
  return place_of(records_[rank].now(), [&](std::size_t op) { return op_text_(rank, op); });
}

std::string JobWatch::killed_text(std::optional<int> rank, int signal) const {
  const std::string what = fmt::format("was killed by signal {} ({})", signal, strsignal(signal));
  if (!rank) return fmt::format("a rank {}", what);
  if (*rank >= records_.ranks() || !records_[*rank].begun())
    return fmt::format("rank {} {} before it began", *rank, what);
  return fmt::format("{} {} {}", who(*rank), what, where(*rank));
}

std::string JobWatch::ended_text(int rank) const {
  return fmt::format("{} ended {}, without an error message", who(rank), where(rank));
}

}  // namespace stratplan
