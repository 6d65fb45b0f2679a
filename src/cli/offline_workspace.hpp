#pragma once
// Scratch memory on machines that are only described.
#include <filesystem>
#include <functional>

#include "model/machine/machine_profile.hpp"
#include "runtime/device/offline_device.hpp"

namespace stratplan {

/// MachineProfile::unmeasured_workspace where the cuda backend can plan for the device without it;
/// empty for all others. Contractions compute as `device.math` says. Answers are remembered in the
/// cache folder.
std::function<Bytes(const Kernel&)> workspace_there(const DeviceRates& device);

/// Asks about each contraction once, also over several runs: answers are in `file`, which is
/// written when the last copy of the function goes, and is disregarded if it was written by another
/// library or is no such file. Where there is no answer, that is said once, and no memory is
/// counted.
std::function<Bytes(const Kernel&)> remembering(OfflineDevice device,
                                                const std::filesystem::path& file);

}  // namespace stratplan
