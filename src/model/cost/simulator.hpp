#pragma once
// One training iteration as discrete events over all ranks. Each rank has a host that issues ops in
// program order, and compute, halo and gradient streams that run them. An op starts when the host
// has issued it, its stream is free, what it depends on is done and, if it communicates, its
// partners have come. Without concurrent streams each op simply follows the one before. With them a
// rank's messages still leave one after the other, whatever stream they are on: they share its way
// out. And what a processor has to do itself for a sum of gradients, MachineProfile::hidden says
// how much that is, it does at the expense of the kernel behind.
//
//   exchange    ends on a rank when the partners of that rank have come and its own bytes have
//               moved
//   collective  starts when the last member has come, and ends on all at once
//
// Ranks that do equal work do not arrive together: kernel times vary from one run to the next, and
// whoever waits, waits for the slowest. So a rank's clock has a mean and a variance (that of its
// kernels since it last met others), and the time of a meeting is the expected maximum. Source: C.
// E. Clark, The greatest of a finite set of random variables, Operations Research 9(2), 1961.
#include <vector>

#include "model/cost/op_cost.hpp"
#include "model/plan/timeline.hpp"

namespace stratplan {

/// The total is the expected end of the slowest rank; an iteration starts on all at once.
/// `programs`: as lower() makes them, ascending by rank, of all ranks or of some that stand for
/// all: then partners that are not among them are ready when the rank is. Takes time in proportion
/// to the number of ops. Ranks that wait for each other for ever are a bug: the ops are named, and
/// that is the end.
Timeline simulate(const std::vector<Program>& programs, const MachineProfile& machine);

/// A duration or a point in time that varies.
struct Uncertain {
  double mean = 0;
  double variance = 0;
};
/// Mean and variance of the greater of two independent normal variables.
Uncertain greater_of(Uncertain a, Uncertain b);

}  // namespace stratplan
