#include "runtime/device/backend.hpp"

#include <fmt/format.h>

#include "model/base/assert.hpp"
#include "model/base/error.hpp"

namespace stratplan {

namespace {

constexpr std::string_view cuda_tf32 = "cuda:tf32";

}  // namespace

std::unique_ptr<CapturedWork> Backend::capture(const std::function<void()>&) {
  SP_ASSERT(captures(), "the {} backend cannot capture work", name());
  return nullptr;
}

void Backend::replay(CapturedWork&) {
  SP_ASSERT(captures(), "the {} backend cannot capture work", name());
}

void Backend::enqueue_traffic(Stream, const EmulatedTraffic&, void*, const void*, Bytes) {
  SP_ASSERT(emulates_traffic(), "the {} backend cannot emulate communication", name());
}

bool is_cuda(std::string_view name) { return name == "cuda" || name == cuda_tf32; }

void require_single_precision(const Kernel& kernel, const std::string& backend) {
  const bool scales = kernel.scaled() || kernel.kind == KernelKind::Unscale ||
                      kernel.kind == KernelKind::AdjustLossScale;
  const bool converts =
      kernel.kind == KernelKind::Convert || kernel.kind == KernelKind::Widen;  // gradients to sum
  if ((!is_narrow(kernel.type) || converts) && !scales) return;
  throw EnvironmentError(
      fmt::format("the {} backend computes in fp32 alone, not in {}: plan with --precision fp32, "
                  "or run with another --backend",
                  backend, scales || kernel.type == DataType::F16 ? "fp16" : "bf16"));
}

std::unique_ptr<Backend> make_backend(std::string_view name, int threads) {
  if (name == "reference") return make_reference_backend();
  if (name == "cpu") return make_cpu_backend(threads);
  if (is_cuda(name)) return make_cuda_backend(name == cuda_tf32);
  throw UsageError(
      fmt::format("unknown backend \"{}\", expected reference, cpu, cuda or {}", name, cuda_tf32));
}

std::string describe_backend(std::string_view name) {
  if (name == "cpu") return fmt::format("cpu, {}", cpu_part().description);
  if (is_cuda(name)) return fmt::format("{}, {}", name, cuda_part().description);
  return std::string(name);
}

}  // namespace stratplan
