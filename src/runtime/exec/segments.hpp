#pragma once
// How the ops of a program hang together for whoever runs them: on which streams each waits, and
// which runs of them the host has no part in.
#include <cstddef>
#include <functional>
#include <vector>

#include "model/partition/program/program.hpp"

namespace stratplan {

/// By op: the streams on which something may be under way that it depends on; nothing where
/// communication does not go on beside the kernels. Waiting for a stream waits for all that is
/// under way on it, so later ops need not wait for that again.
std::vector<std::vector<Stream>> awaited_streams(const Program& program);

/// Ops [first, end).
struct Segment {
  std::size_t first = 0, end = 0;
  bool replays =
      false;  ///< the host has no part in them: they may be captured together, once, and replayed
  bool communicates = false;
  friend bool operator==(const Segment&, const Segment&) = default;
};

/// All ops, in order. Those that replay are as long as may be, and two ops at least, for one replay
/// is launched like one kernel. `captured`: of an op that communicates, whether its verb may be
/// (Communicator::captured); else the host communicates, and waits for it, between the segments.
/// Loads are no hindrance: the host fills their memory before.
///
///   program            kernel load kernel exchange kernel kernel all-reduce kernel exchange
///   captured           [replays                                                            ]
///   not captured       [replays          ][       ][replays     ][                         ]
std::vector<Segment> segments_of(const Program& program,
                                 const std::function<bool(const Op&)>& captured);

}  // namespace stratplan
