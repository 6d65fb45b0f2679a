#pragma once
// A discrete-event simulation of one training iteration over all ranks. Each rank has a host that
// issues ops in program order, and compute, halo and gradient streams that run them. An op starts
// when the host has issued it, its stream is free, its dependences are done and, if it
// communicates, its partners have arrived. Without concurrent streams each op follows the previous
// one. With concurrent streams a rank's messages still leave one after the other, since all streams
// share one link. MachineProfile::hidden is the share of a gradient sum that kernels can hide. The
// rest of the sum delays the next kernel. Kernels wait for collectives that block the rank
// (runs_beside_kernels() in collective_cost.hpp).
//
//   exchange    ends on a rank when that rank's partners have arrived and its own bytes have moved
//   collective  starts when the last member has arrived, and ends on all members at once
//
// Ranks with equal work do not arrive together. Kernel times vary from one run to the next, and all
// ranks wait for the slowest. So a rank's clock has a mean and a variance. The variance is that of
// the rank's kernels since its last exchange or collective. Ranks that communicate continue at the
// expected maximum of their clocks. Source: C. E. Clark, The greatest of a finite set of random
// variables, Operations Research 9(2), 1961.
//
// On machines with published rates, kernels have no measured spread. There the step is longer by
// the expected wait for the slowest rank (MachineProfile::scaling).
//
// With MachineProfile::input, the first load of each rank waits for its data (input_cost.hpp).
#include <vector>

#include "model/cost/op_cost.hpp"
#include "model/plan/timeline.hpp"

namespace stratplan {

/// A part of the time of a simulated step, on its critical path.
struct PathPart {
  enum class What {
    Kernel,      ///< a kernel, or the copy of a load
    Exchange,    ///< messages
    Collective,  ///< a collective, or what it takes from the kernel beside it
    Host,        ///< issuing ops
    Input,       ///< waiting for samples
    Waiting      ///< the expected wait for others, because times vary
  };
  What what = What::Waiting;
  Seconds seconds{};
  OpCost cost{};                     ///< of the op alone; its `seconds` may differ from the part's
  const Program* program = nullptr;  ///< of the op; null if the part is of no op
  const Op* op = nullptr;
  /// of a Kernel: the same object for all equal kernels of one simulation
  const Kernel* kernel = nullptr;
};
/// From the end of a step to its beginning: each op started when the next part's op had ended. The
/// parts add up to Timeline::total. Pointers lead into the simulated programs.
using CriticalPath = std::vector<PathPart>;

/// Returns the timeline of one iteration that starts on all ranks at once, in the steady state if
/// the samples are read ahead. Its total is the
/// expected end of the slowest rank. `programs`: the results of lower(), ascending by rank, for all
/// ranks or for representative ranks. Partners outside `programs` never make a rank wait. The
/// simulation takes time in proportion to the number of ops. A deadlock is a bug in lowering, so
/// the simulator then aborts and names the blocked ops. `path`: if given, gets the critical path.
Timeline simulate(const std::vector<Program>& programs, const MachineProfile& machine,
                  CriticalPath* path = nullptr);

/// A duration or a point in time, in seconds, with its variance.
struct Uncertain {
  double mean = 0;
  double variance = 0;
};
/// Mean and variance of the maximum of two independent normal variables.
Uncertain greater_of(Uncertain a, Uncertain b);

}  // namespace stratplan
