#pragma once
// Scratch memory of kernels on offline devices, as cuDNN plans it without the GPU.
#include <filesystem>
#include <functional>

#include "model/machine/machine_profile.hpp"
#include "runtime/device/offline_device.hpp"

namespace stratplan {

/// Returns MachineProfile::unmeasured_workspace for `device`, or an empty function if the cuda
/// backend cannot plan for it as an offline device. Contractions of floats are planned in the type
/// that `device.math` names. Answers are kept in the cache folder.
std::function<Bytes(const Kernel&)> workspace_there(const DeviceRates& device);

/// Returns a function that asks `device` about each contraction only once, over several runs of the
/// program. Answers are read from `file`, unless another version of the library wrote it or it is
/// no such file. New answers are written to `file` when the last copy of the function is destroyed.
/// If the device has no answer, the function prints a note, only the first time, and returns 0.
std::function<Bytes(const Kernel&)> remembering(OfflineDevice device,
                                                const std::filesystem::path& file);

}  // namespace stratplan
