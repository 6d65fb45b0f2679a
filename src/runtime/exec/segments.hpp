#pragma once
// How the executor orders a program's ops: the streams that each op waits for, and the runs of ops
// that a device can replay without the host.
#include <cstddef>
#include <functional>
#include <vector>

#include "model/partition/program/program.hpp"

namespace stratplan {

/// Returns, for each op, the streams to wait for before the op. They are the streams with
/// communication under way on which the op depends. A wait for a stream covers everything under way
/// on the stream, so later ops do not wait for the same communication again. All lists are empty if
/// the program has no concurrent streams.
std::vector<std::vector<Stream>> awaited_streams(const Program& program);

/// The ops [first, end) of a program.
struct Segment {
  std::size_t first = 0, end = 0;
  /// whether the ops are captured together once and then replayed
  bool replays = false;
  bool communicates = false;
  friend bool operator==(const Segment&, const Segment&) = default;
};

/// Splits a program into segments, in order. Segments that can be replayed are as long as possible.
/// They have at least two ops, because launching a replay costs as much as launching one kernel.
/// `captured` returns whether the call of an op that communicates can be captured
/// (Communicator::captured). If it cannot, the host makes the call outside the replayed segments,
/// and waits for its end. Loads can be replayed, because the host fills their staging memory before
/// a replay.
///
///   program            kernel load kernel exchange kernel kernel all-reduce kernel exchange
///   captured           [replays                                                            ]
///   not captured       [replays          ][       ][replays     ][                         ]
std::vector<Segment> segments_of(const Program& program,
                                 const std::function<bool(const Op&)>& captured);

}  // namespace stratplan
