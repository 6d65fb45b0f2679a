#include "runtime/backend.hpp"

#include <fmt/format.h>

#include "model/base/error.hpp"

namespace stratplan {

std::unique_ptr<Backend> make_backend(std::string_view name, int threads) {
  if (name == "reference") return make_reference_backend();
  if (name == "cpu") return make_cpu_backend(threads);
  if (name == "cuda") return make_cuda_backend();
  throw UsageError(fmt::format("unknown backend \"{}\": reference, cpu or cuda", name));
}

std::string describe_backend(std::string_view name) { return name == "cpu" ? fmt::format("cpu, {}", cpu_part().description) : std::string(name); }

}  // namespace stratplan
