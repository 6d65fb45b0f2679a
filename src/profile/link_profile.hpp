#pragma once
// Measures messages and collectives by size. All ranks take part, neighbours with each other, as in
// a step. Each send buffer has just been written, as a packing kernel does in a program. Ranks
// synchronize only between rounds of samples. So a sample's mean over the ranks is the time that
// one more such op adds to a program.
#include "profile/measure/sampler.hpp"
#include "profile/profile_request.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// Time of one operation of this size.
using MeasureSize = std::function<Measurement(Bytes bytes)>;
/// Measures sizes from `least` to `largest`, by factors of four. Stops after the first size that
/// takes slow_message or longer. Protocols change where the time falls from one size to the next,
/// or grows by more than 1.5 times the factor between them. There twice the smaller size is
/// measured, too.
SizeTable measure_by_size(Bytes least, Bytes largest, const MeasureSize& measure);

/// Sets a level's latency and bandwidth from a table of messages one way.
void describe_link(Level& level, const SizeTable& one_way);

struct LinkProfile {
  SizeTable one_way, both_ways;                  ///< empty unless requested
  std::map<std::string, SizeTable> collectives;  ///< by collective_key
  /// largest share of the machine that other processes used during a table that was kept
  double foreign_load = 0;
};

using LinkProgress = std::function<void(const std::string& what)>;

/// Measures the requested messages and collectives; the result is the same on all ranks. A link of
/// 1 Gbit/s takes about a minute.
LinkProfile profile_links(const ProfileRequest& request, Backend& backend, const Team& team,
                          const LinkProgress& progress);

}  // namespace stratplan
