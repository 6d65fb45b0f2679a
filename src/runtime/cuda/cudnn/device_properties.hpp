#pragma once
// For which device plans are made. cuDNN needs no device to make them, only a description: so plans
// for GPU clusters can be made, and their workspaces known, on a machine that has none.
#include <string>

#include "model/base/units.hpp"
#include "runtime/cuda/cudnn/descriptor.hpp"

namespace stratplan::cudnn {

/// What tells one device of the Hopper generation from another; the rest is the same for all of
/// them.
struct DeviceProperties {
  std::string name;
  std::int64_t multiprocessors = 0;
  Bytes memory{};
  Bytes l2_cache{};
  std::int64_t clock_khz = 0;
  std::int64_t memory_clock_khz = 0;

  /// As cuDNN reads it.
  std::string json() const;
};

/// The devices with SXM sockets.
DeviceProperties h100();
DeviceProperties h200();

/// The device at hand, by its handle, or one that is only described.
class Target {
 public:
  explicit Target(cudnnHandle_t handle) : handle_(handle) {}
  explicit Target(const DeviceProperties& properties) : Target(properties.json()) {}
  /// `json`: of present_device_json() on another machine.
  explicit Target(const std::string& json);

  /// Says of an operation graph, a heuristic or a plan for which device it is.
  void aim_graph(Descriptor& graph) const;
  void aim_heuristic(Descriptor& heuristic) const;
  void aim_plan(Descriptor& plan) const;

 private:
  cudnnHandle_t handle_ = nullptr;
  std::optional<Descriptor> properties_{};
};

/// The description of a device that is there. Throws EnvironmentError if it is not.
std::string present_device_json(std::int32_t device);

}  // namespace stratplan::cudnn
