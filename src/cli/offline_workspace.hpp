#pragma once
// The scratch memory of kernels on GPUs that are not in this machine. cuDNN works it out from a
// description of the GPU.
#include <filesystem>
#include <functional>

#include "model/machine/machine_profile.hpp"
#include "runtime/device/offline_device.hpp"

namespace stratplan {

/// Returns MachineProfile::unmeasured_workspace for `device`, or an empty function if
/// offline_device() does not describe the device. cuDNN is asked about contractions of floats in
/// the arithmetic that `device.math` names. Answers are kept in the cache folder.
std::function<Bytes(const Kernel&)> workspace_there(const DeviceRates& device);

/// Returns a function that asks `device` about each contraction only once, over several runs of the
/// program. Answers are read from `file` if its first line names the device's library. New answers
/// are written to `file` when the last copy of the function is destroyed. If the device has no
/// answer, the function returns 0, and prints a note the first time.
std::function<Bytes(const Kernel&)> remembering(OfflineDevice device,
                                                const std::filesystem::path& file);

}  // namespace stratplan
