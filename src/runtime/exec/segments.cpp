#include "runtime/exec/segments.hpp"

#include <algorithm>
#include <array>

namespace stratplan {
namespace {

/// Splits a program into runs. Either all ops of a run can be replayed, or none can. A new run also
/// begins where the host has to wait.
std::vector<Segment> runs_of(const Program& program,
                             const std::function<bool(const Op&)>& captured) {
  const std::vector<std::vector<Stream>> awaited = awaited_streams(program);
  const bool all_captured = std::ranges::all_of(
      program.ops, [&](const Op& op) { return !communicates(op) || captured(op); });
  std::vector<Segment> runs;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const bool communication = communicates(program.ops[i]),
               replays = !communication || captured(program.ops[i]);
    const bool host_waits = !all_captured && !awaited[i].empty();
    if (runs.empty() || host_waits || replays != runs.back().replays)
      runs.push_back({i, i, replays, false});
    runs.back().end = i + 1;
    runs.back().communicates = runs.back().communicates || communication;
  }
  return runs;
}

}  // namespace

std::vector<std::vector<Stream>> awaited_streams(const Program& program) {
  std::vector<std::vector<Stream>> awaited(program.ops.size());
  if (!program.concurrent_streams) return awaited;
  const std::vector<std::vector<int>> before = dependences(program);
  std::array<int, 3> finished{-1, -1, -1};  ///< by stream: the last op that a wait covers
  for (int i = 0; i < static_cast<int>(program.ops.size()); ++i) {
    for (const int earlier : before[static_cast<std::size_t>(i)]) {
      const Op& op = program.ops[static_cast<std::size_t>(earlier)];
      int& last = finished[static_cast<std::size_t>(op.stream)];
      if (!communicates(op) || earlier <= last) continue;
      last = i - 1;
      awaited[static_cast<std::size_t>(i)].push_back(op.stream);
    }
  }
  return awaited;
}

std::vector<Segment> segments_of(const Program& program,
                                 const std::function<bool(const Op&)>& captured) {
  std::vector<Segment> segments;
  for (Segment run : runs_of(program, captured)) {
    run.replays = run.replays && run.end - run.first > 1;
    if (!segments.empty() && !run.replays && !segments.back().replays) {
      segments.back().end = run.end;
      segments.back().communicates = segments.back().communicates || run.communicates;
    } else {
      segments.push_back(run);
    }
  }
  return segments;
}

}  // namespace stratplan
