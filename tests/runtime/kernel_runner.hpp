#pragma once
// Runs one kernel on one backend with given or random operands.
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "model/partition/program/kernel.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/float16.hpp"

namespace stratplan::test {

/// The contents of a buffer, as numbers of the buffer's type.
using Values = std::variant<std::vector<float>, std::vector<double>, std::vector<std::int32_t>,
                            std::vector<Float16>, std::vector<Bfloat16>>;

inline Values zeros(const Operand& operand) {
  const std::size_t count = static_cast<std::size_t>(operand.elements);
  switch (operand.type) {
    case DataType::F64: return std::vector<double>(count);
    case DataType::I32: return std::vector<std::int32_t>(count);
    case DataType::F16: return std::vector<Float16>(count);
    case DataType::BF16: return std::vector<Bfloat16>(count);
    default: return std::vector<float>(count);
  }
}

inline void* data_of(Values& values) {
  return std::visit([](auto& v) -> void* { return v.data(); }, values);
}
inline double at(const Values& values, std::size_t index) {
  return std::visit([&](const auto& v) { return static_cast<double>(v[index]); }, values);
}
inline std::size_t size_of(const Values& values) {
  return std::visit([](const auto& v) { return v.size(); }, values);
}
inline std::vector<float> floats(const Values& values) {
  return std::get<std::vector<float>>(values);
}
inline std::vector<double> doubles(const Values& values) {
  return std::get<std::vector<double>>(values);
}

/// Replaces each number by function(number).
template <class Function>
void map(Values& values, Function function) {
  std::visit(
      [&](auto& v) {
        for (auto& value : v)
          value = static_cast<std::decay_t<decltype(value)>>(
              static_cast<float>(function(static_cast<double>(value))));
      },
      values);
}

/// Returns the numbers of a step with learning rate 0.1 and Adam's usual coefficients.
inline StepNumbers numbers_of_step(std::int64_t step) {
  const auto updates = static_cast<double>(step + 1);
  return {step, 0.1, 1 - std::pow(0.9, updates), 1 - std::pow(0.999, updates)};
}

/// Returns a context whose region is the kernel's whole output, in the fourth step.
inline KernelContext whole_context(const Kernel& kernel) {
  static const StepNumbers fourth = numbers_of_step(3);
  KernelContext context;
  context.seed = 42;
  context.now = &fourth;
  context.layer = "layer";
  context.region = whole(kernel.y);
  context.global = kernel.y;
  context.momentum = 0.9;
  context.weight_decay = 0.01;
  return context;
}

/// Returns the outputs of the kernel. Outputs start as `before`, or as NaN or the like if that is
/// empty, so elements that the kernel leaves out show.
inline std::vector<Values> run(Backend& backend, const Kernel& kernel, std::vector<Values> reads,
                               const KernelContext& context, std::vector<Values> before = {},
                               const std::string& choice = {}) {
  std::vector<Values> writes = std::move(before);
  if (writes.empty()) {
    for (const Operand& operand : kernel.operands().writes) {
      writes.push_back(zeros(operand));
      std::memset(data_of(writes.back()), 0x7f, static_cast<std::size_t>(operand.bytes().value));
    }
  }
  const auto prepared = backend.prepare(kernel, choice);
  void* workspace = backend.allocate(prepared->workspace());
  std::memset(workspace, 0x7f, static_cast<std::size_t>(prepared->workspace().value));
  std::vector<const void*> from;
  std::vector<void*> to;
  for (Values& values : reads) from.push_back(data_of(values));
  for (Values& values : writes) to.push_back(data_of(values));
  backend.enqueue(Stream::Compute, *prepared, from, to, workspace, context);
  backend.synchronize(Stream::Compute);
  backend.release(workspace);
  return writes;
}

inline std::vector<Values> run(Backend& backend, const Kernel& kernel,
                               const std::vector<Values>& reads) {
  return run(backend, kernel, reads, whole_context(kernel));
}

/// Returns the outputs of the kernel on the reference backend.
inline std::vector<Values> run(const Kernel& kernel, const std::vector<Values>& reads) {
  return run(*make_reference_backend(), kernel, reads);
}

using Random = std::mt19937;
inline std::int64_t between(Random& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

/// Returns random numbers in [-1, 1], or integers in [0, bound).
inline Values random_values(const Operand& operand, Random& random, std::int64_t bound = 1) {
  Values values = zeros(operand);
  std::uniform_real_distribution<float> unit(-1, 1);
  std::visit(
      [&](auto& v) {
        for (auto& value : v) {
          using Number = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<Number, std::int32_t>)
            value = static_cast<std::int32_t>(between(random, 0, bound - 1));
          else
            value = static_cast<Number>(unit(random));
        }
      },
      values);
  return values;
}

}  // namespace stratplan::test
