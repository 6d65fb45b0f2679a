#pragma once
// Steps of plans in the Trace Event Format, which ui.perfetto.dev and chrome://tracing read. Source
// of the format: N. Duca and D. Sinclair, Trace Event Format, 2016.
//
//   process   a rank of one step, predicted or measured; and one process for the parts of a run
//   thread    a stream of the rank
//   slice     an op, from its arrival to its end; an exchange or a collective includes its wait
//   flow      a message, from its sender's exchange to its receiver's
//   counter   the rank's memory by class of tensors, while each op runs
#include <string>
#include <vector>

#include "model/base/system/provenance.hpp"
#include "model/cost/memory.hpp"
#include "model/plan/timeline.hpp"

namespace stratplan {

/// A step of one plan, predicted or measured.
struct TracedStep {
  std::string name;  ///< behind the rank's number: "predicted", "measured"
  const Network* network = nullptr;
  const std::vector<Program>* programs = nullptr;  ///< ascending by rank
  std::vector<std::vector<Span>> spans;            ///< by program
  Seconds start{};                                 ///< of the step in the trace
  /// by program, by op: live bytes (memory_over_step)
  std::vector<std::vector<BytesByClass>> memory;
  std::vector<Seconds> clock_errors{};  ///< by program, if the step was measured
};

/// The parts of one run. Its steps begin where TracedStep::start says.
struct TracedRun {
  std::string name;
  std::vector<RunPart> parts;
};

/// Returns the trace as JSON, one event per line. Times are in microseconds. A slice's argument
/// `seconds` is the op's time as timings.json or the simulation states it. The slice itself begins
/// later than the op if its stream was still busy with an earlier op.
std::string to_trace(const std::vector<TracedStep>& steps, const std::vector<TracedRun>& runs,
                     const Provenance& provenance);

}  // namespace stratplan
