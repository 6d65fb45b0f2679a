#pragma once
// What the cuda backend would do on a device that is not here: cuDNN makes its plans from a
// description alone.
#include <functional>
#include <optional>
#include <string>

#include "model/partition/program/kernel.hpp"

namespace stratplan {

struct OfflineDevice {
  std::string library;  ///< under which answers stay the same: "cuDNN 9.19.0"
  /// Scratch memory of the kernel that the backend would make where nothing was measured: of
  /// contractions, that of the first plan which cuDNN proposes and which needs no driver to be
  /// made. These take milliseconds, all others are answered at once. From any thread. Throws
  /// EnvironmentError if there is no plan.
  std::function<Bytes(const Kernel&)> workspace;
};

/// `name`: "h100" or "h200", as in machines/parts; nothing for others, and where the backend was
/// not built. `tf32`: tensor cores may round the factors of convolutions of floats (runtime/cuda,
/// or runtime/stub).
std::optional<OfflineDevice> offline_device(const std::string& name, bool tf32);

}  // namespace stratplan
