#pragma once
// The scratch memory that kernels of the cuda backend need on a device that this machine does not
// have. cuDNN makes its plans from the device's description alone.
#include <functional>
#include <optional>
#include <string>

#include "model/partition/program/kernel.hpp"

namespace stratplan {

struct OfflineDevice {
  /// for example "cuDNN 9.19.0"; sizes are the same for the same library
  std::string library;
  /// Returns the scratch memory of the implementation that the backend would choose without
  /// measurements. For contractions this is the first plan that cuDNN proposes and that can be made
  /// without a driver. A call takes milliseconds for a contraction, and no time for other kernels.
  /// May be called from any thread. Throws EnvironmentError if there is no plan.
  std::function<Bytes(const Kernel&)> workspace;
};

/// Returns the offline device `name`: "h100" or "h200", as in machines/parts. There is no value for
/// other names, or if the backend was not built (runtime/cuda, or runtime/stub). If `tf32`, tensor
/// cores may round the operands of convolutions of floats.
std::optional<OfflineDevice> offline_device(const std::string& name, bool tf32);

}  // namespace stratplan
