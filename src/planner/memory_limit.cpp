#include "planner/memory_limit.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "model/network/micro_batches.hpp"
#include "planner/memory_saving.hpp"

namespace stratplan {

Bytes least_conceivable_memory(const Network& network, std::int64_t ranks,
                               const Execution& execution, const FreeMemoryOptions& free) {
  const std::int64_t samples =
      free.micro_batches && !why_no_micro_batches(network) ? 1 : network.micro_batch();
  std::int64_t largest = 0;
  for (const Layer& layer : network.layers)
    if (is_contraction(layer.kind))
      largest = std::max(largest, layer.output.elements() / layer.output[Axis::N]);
  const std::int64_t parameters = network.parameter_count(Learning::Trained) *
                                      (2 + optimizer_states(network.training.optimizer)) +
                                  network.parameter_count(Learning::Frozen);
  const auto share = [&](std::int64_t elements, DataType type) {
    return Bytes{(elements + ranks - 1) / ranks * size_of(type)};
  };
  return share(parameters, DataType::F32) +
         share(largest * samples, execution.precision.activations);
}

MemoryLimit::MemoryLimit(const Network& network, int ranks, const MachineProfile& machine,
                         const PlanningOptions& options)
    : network_(network),
      ranks_(ranks),
      machine_(machine),
      options_(options),
      value_(options.memory_limit) {
  if (!value_ && machine.device.memory.value > 0) value_ = machine.device.memory;
  if (value_) value_ = *value_ - std::min(*value_, options.reserve);
}

void MemoryLimit::refuse_if_impossible() const {
  const Bytes here = lower_bound_on(ranks_);
  if (fits(here)) return;
  const std::int64_t all = machine_.capacity();
  const Bytes on_all = lower_bound_on(std::max<std::int64_t>(all, ranks_));
  throw OutOfMemoryError(fmt::format(
      "{}: every plan needs at least {}, an even share of parameters, gradients, optimizer state "
      "and the largest output of a convolution or fully connected layer{}{}",
      does_not_fit_text(), readable(here),
      all <= ranks_ || fits(on_all)
          ? ""
          : fmt::format("; on all {} ranks of {}, every plan needs at least {}", all, machine_.name,
                        readable(on_all)),
      undivided_text()));
}

std::string MemoryLimit::exceeded_text(Bytes memory) const {
  return fmt::format("needs {} per rank, but the limit is {}", mebibytes(memory),
                     limit_text(*value_, options_.reserve));
}

std::string MemoryLimit::nothing_fits_text(Bytes least) const {
  return fmt::format("{}: the leanest plan found needs {}{}{}", does_not_fit_text(),
                     mebibytes(least), enough_ranks_text(), undivided_text());
}

std::string MemoryLimit::does_not_fit_text() const {
  return fmt::format("{} with batch {} does not fit into {} per rank on {}", network_.name,
                     network_.batch, limit_text(*value_, options_.reserve),
                     counted(ranks_, "rank"));
}

std::string MemoryLimit::undivided_text() const {
  const auto why = options_.free.micro_batches ? why_no_micro_batches(network_) : std::nullopt;
  return why ? "; there are no micro-batches: " + *why : "";
}

std::string MemoryLimit::enough_ranks_text() const {
  constexpr std::int64_t times = 64, many = 16384;
  const std::int64_t most = std::min({many, times * ranks_, machine_.capacity()});
  int more = ranks_;
  while (2 * more <= most) {
    more *= 2;
    if (fits(lower_bound_on(more)) && fits(least_memory_on(more)))
      return fmt::format("; {} ranks would be enough", more);
  }
  if (more > ranks_) return fmt::format("; doubling the ranks up to {} does not help", more);
  return machine_.capacity() < 2 * ranks_
             ? fmt::format("; twice as many ranks would exceed the {} ranks of {}",
                           machine_.capacity(), machine_.name)
             : fmt::format("; the planner tries no more than {} ranks", many);
}

Bytes MemoryLimit::lower_bound_on(std::int64_t ranks) const {
  return least_conceivable_memory(network_, ranks, options_.execution, options_.free);
}

Bytes MemoryLimit::least_memory_on(int ranks) const {
  return MemoryChoices(network_, ranks, machine_, options_.execution, options_.free).least_memory();
}

}  // namespace stratplan
