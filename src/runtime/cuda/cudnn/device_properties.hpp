#pragma once
// Descriptions of GPUs. cuDNN makes its execution plans from a description, without the GPU. So the
// scratch memory of a cluster's kernels is known on a machine without a GPU.
#include <string>

#include "model/base/units.hpp"
#include "runtime/cuda/cudnn/descriptor.hpp"

namespace stratplan::cudnn {

/// The properties in which devices of the Hopper generation differ. All other properties are equal.
struct DeviceProperties {
  std::string name;
  std::int64_t multiprocessors = 0;
  Bytes memory{};
  Bytes l2_cache{};
  std::int64_t clock_khz = 0;
  std::int64_t memory_clock_khz = 0;

  /// Returns the description in the format that cuDNN reads.
  std::string json() const;
};

/// The H100 and the H200 in the variants with SXM sockets.
DeviceProperties h100();
DeviceProperties h200();

/// The device for which plans are made. The current device is given by its handle, and an offline
/// device by its description.
class Target {
 public:
  explicit Target(cudnnHandle_t handle) : handle_(handle) {}
  explicit Target(const DeviceProperties& properties) : Target(properties.json()) {}
  /// `json`: the result of present_device_json(), possibly on another machine.
  explicit Target(const std::string& json);

  /// Sets the target device of an operation graph, a heuristic or a plan.
  void aim_graph(Descriptor& graph) const;
  void aim_heuristic(Descriptor& heuristic) const;
  void aim_plan(Descriptor& plan) const;

 private:
  cudnnHandle_t handle_ = nullptr;
  std::optional<Descriptor> properties_{};
};

/// Returns the description of an installed device in cuDNN's format. Throws EnvironmentError if
/// there is no such device.
std::string present_device_json(std::int32_t device);

}  // namespace stratplan::cudnn
