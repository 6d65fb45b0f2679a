#include "runtime/backend.hpp"

#include <fmt/format.h>

#include "model/base/error.hpp"

namespace stratplan {

namespace {

constexpr std::string_view cuda_tf32 = "cuda:tf32";

}  // namespace

bool is_cuda(std::string_view name) { return name == "cuda" || name == cuda_tf32; }

std::unique_ptr<Backend> make_backend(std::string_view name, int threads) {
  if (name == "reference") return make_reference_backend();
  if (name == "cpu") return make_cpu_backend(threads);
  if (is_cuda(name)) return make_cuda_backend(name == cuda_tf32);
  throw UsageError(fmt::format("unknown backend \"{}\": reference, cpu, cuda or {}", name, cuda_tf32));
}

std::string describe_backend(std::string_view name) {
  if (name == "cpu") return fmt::format("cpu, {}", cpu_part().description);
  if (is_cuda(name)) return fmt::format("{}, {}", name, cuda_part().description);
  return std::string(name);
}

}  // namespace stratplan
