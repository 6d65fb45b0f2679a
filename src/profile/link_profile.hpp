#pragma once
// Measures messages and collectives by size. All ranks take part, neighbours with each other, as in
// a step; each buffer has just been written, as by the packing kernel before it, and the ranks run
// freely between rounds. So a sample's mean over the ranks is what one more such step adds to a
// program.
#include "profile/measure/sampler.hpp"
#include "profile/profile_request.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// Time of one operation of this size.
using MeasureSize = std::function<Measurement(Bytes bytes)>;
/// From `least` to `largest` (as far as slow_message allows) by factors of four, by two where the
/// time falls or more than follows the size: protocols change there.
SizeTable measure_by_size(Bytes least, Bytes largest, const MeasureSize& measure);

/// A table of messages as a level's two numbers.
void describe_link(Level& level, const SizeTable& one_way);

struct LinkProfile {
  SizeTable one_way, both_ways;                  ///< empty unless asked for
  std::map<std::string, SizeTable> collectives;  ///< by collective_key
  double foreign_load =
      0;  ///< worst share of the machine that others had during a table that was kept
};

using LinkProgress = std::function<void(const std::string& what)>;

/// What the request asks of messages and collectives; the same on all ranks. A link of 1 Gbit/s
/// takes about a minute.
LinkProfile profile_links(const ProfileRequest& request, Backend& backend, const Team& team,
                          const LinkProgress& progress);

}  // namespace stratplan
