#pragma once
// Kernels and programs that measure the machine itself, independently of any network.
#include "model/machine/machine_profile.hpp"
#include "profile/measure/stopping_rule.hpp"
#include "profile/measure/team.hpp"
#include "runtime/device/backend.hpp"

namespace stratplan {

/// Returns a forward convolution over square images with as many filters as channels. `window` must
/// be odd. Padding keeps the image's size.
Kernel square_convolution(std::int64_t samples, std::int64_t channels, std::int64_t extent,
                          std::int64_t window);

/// Returns a copy kernel that reads `bytes` once and writes as many.
Kernel copy_of(Bytes bytes);

/// Runs the rank's program as training does, on all ranks at once. Steps are replayed where the
/// backend captures them. Returns the time of one iteration.
Measurement sample_program(const Program& program, Backend& backend, const Team& team,
                           const StoppingRule& rule);

}  // namespace stratplan
