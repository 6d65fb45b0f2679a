#include "runtime/cuda/cudnn/device_properties.hpp"

#include <algorithm>

#include "model/base/json/json.hpp"

namespace stratplan::cudnn {

// cuDNN 9.19 requires all of the keys below. The limits hold for compute capability 9.0 (CUDA C++
// Programming Guide, technical specifications).
std::string DeviceProperties::json() const {
  const Json properties{{"deviceName", name},
                        {"deviceVer", 900},
                        {"driverVer", 13000},
                        {"cudaDeviceId", 0},
                        {"pciDeviceId", 0},
                        {"isTccDriver", 0},
                        {"supportCoopLaunch", 1},
                        {"multiProcessorCount", multiprocessors},
                        {"totalGlobalMem", memory.value},
                        {"l2CacheSize", l2_cache.value},
                        {"smClockRateKHz", clock_khz},
                        {"memClockRateKHz", memory_clock_khz},
                        {"warpSize", 32},
                        {"maxGridSize", {2147483647, 65535, 65535}},
                        {"maxBlockSize", {1024, 1024, 64}},
                        {"maxThreadsPerBlock", 1024},
                        {"maxThreadsPerSM", 2048},
                        {"maxCtasPerSM", 32},
                        {"regsPerBlock", 65536},
                        {"maxRegistersPerSM", 65536},
                        {"maxSharedMemoryPerBlock", 49152},
                        {"maxSharedMemoryPerBlockOptin", 232448},
                        {"reservedSharedMemoryPerBlock", 1024}};
  return properties.dump();
}

// Memory, caches and clocks are the values that the CUDA runtime reports on these devices.
DeviceProperties h100() {
  return {.name = "NVIDIA H100 80GB HBM3",
          .multiprocessors = 132,
          .memory = {85028765696},
          .l2_cache = {52428800},
          .clock_khz = 1980000,
          .memory_clock_khz = 2619000};
}

DeviceProperties h200() {
  return {.name = "NVIDIA H200",
          .multiprocessors = 132,
          .memory = {150110011392},
          .l2_cache = {62914560},
          .clock_khz = 1980000,
          .memory_clock_khz = 3201000};
}

Target::Target(const std::string& json) {
  properties_.emplace(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "the device's description");
  properties_->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, json).finalize();
}

void Target::aim_graph(Descriptor& graph) const {
  if (handle_ != nullptr) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle_);
}

void Target::aim_heuristic(Descriptor& heuristic) const {
  if (properties_) heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *properties_);
}

void Target::aim_plan(Descriptor& plan) const {
  if (handle_ != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle_);
  if (properties_) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *properties_);
}

std::string present_device_json(std::int32_t device) {
  Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR,
                        "the description of an installed device");
  properties.set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, device).finalize();
  const std::vector<char> text = properties.list<char>(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
  return {text.begin(), std::find(text.begin(), text.end(), '\0')};
}

}  // namespace stratplan::cudnn
