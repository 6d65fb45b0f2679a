#pragma once
// What measurements of the machine itself, not of anybody's network, are made with.
#include "model/machine/machine_profile.hpp"
#include "profile/measure/stopping_rule.hpp"
#include "profile/measure/team.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// Forward, over a square image, as many filters as channels; the window is odd and padded to keep
/// the image's size.
Kernel square_convolution(std::int64_t samples, std::int64_t channels, std::int64_t extent,
                          std::int64_t window);

/// Of so many bytes, which are read and written once.
Kernel copy_of(Bytes bytes);

/// Runs the rank's program as training does, on all ranks at once, with steps replayed where the
/// backend captures them; the time of one iteration.
Measurement sample_program(const Program& program, Backend& backend, const Team& team,
                           const StoppingRule& rule);

}  // namespace stratplan
