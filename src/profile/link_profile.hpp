#pragma once
// Measures messages and collectives by size. All ranks take part at once, each with its neighbour,
// as in a step. Each send buffer has just been written, as a packing kernel does in a program.
// Ranks synchronize only between rounds of samples. So a sample's mean over the ranks is the time
// that one more such op adds to a program.
#include "profile/measure/sampler.hpp"
#include "profile/profile_request.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// Returns the time of one operation of this size.
using MeasureSize = std::function<Measurement(Bytes bytes)>;
/// Measures sizes from `least` to `largest`, by factors of four. Stops after the first size that
/// takes slow_message or longer. A communicator probably changes its protocol between two sizes if
/// the time falls from one to the next, or grows by more than 1.5 times the ratio of the sizes.
/// Twice the smaller size is then measured, too.
SizeTable measure_by_size(Bytes least, Bytes largest, const MeasureSize& measure);

struct LinkProfile {
  SizeTable one_way, both_ways;                  ///< empty unless requested
  std::map<std::string, SizeTable> collectives;  ///< by collective_key
  /// largest share of the machine that other processes used during the measurement of a table that
  /// was kept
  double foreign_load = 0;
};

using LinkProgress = std::function<void(const std::string& what)>;

/// Measures the requested messages and collectives. The result is the same on all ranks. Measuring
/// a link of 1 Gbit/s takes about a minute.
LinkProfile profile_links(const ProfileRequest& request, Backend& backend, const Team& team,
                          const LinkProgress& progress);

}  // namespace stratplan
