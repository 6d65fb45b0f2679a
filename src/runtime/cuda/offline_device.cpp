#include "runtime/device/offline_device.hpp"

#include <memory>
#include <mutex>

#include "model/partition/program/contraction.hpp"
#include "runtime/cuda/cudnn/convolution.hpp"
#include "runtime/cuda/library_version.hpp"

namespace stratplan {
namespace {

std::optional<cudnn::DeviceProperties> properties_of(const std::string& name) {
  if (name == "h100") return cudnn::h100();
  if (name == "h200") return cudnn::h200();
  return {};
}

/// Finds the workspaces of kernels on an offline device. The target is made on the first request,
/// because loading cuDNN takes a tenth of a second.
class Workspaces {
 public:
  Workspaces(cudnn::DeviceProperties properties, cudnn::Arithmetic floats)
      : properties_(std::move(properties)), floats_(floats) {}

  Bytes of(const Kernel& kernel) {
    if (!is_contraction(kernel.kind)) return make_own_kernel(kernel)->workspace();
    const std::lock_guard lock(one_at_a_time_);
    if (!target_) target_.emplace(properties_);
    return cudnn::make_convolution(kernel, "", cudnn::arithmetic_of(kernel.type, floats_), *target_)
        ->workspace();
  }

 private:
  cudnn::DeviceProperties properties_;
  cudnn::Arithmetic floats_;
  std::mutex one_at_a_time_;
  std::optional<cudnn::Target> target_;
};

}  // namespace

std::optional<OfflineDevice> offline_device(const std::string& name, bool tf32) {
  const std::optional<cudnn::DeviceProperties> properties = properties_of(name);
  if (!properties) return {};
  const auto workspaces = std::make_shared<Workspaces>(
      *properties, tf32 ? cudnn::Arithmetic::TF32 : cudnn::Arithmetic::F32);
  return OfflineDevice{"cuDNN " + library_version(cudnnGetVersion()),
                       [workspaces](const Kernel& kernel) { return workspaces->of(kernel); }};
}

}  // namespace stratplan
