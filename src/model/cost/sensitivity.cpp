#include "model/cost/sensitivity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "model/partition/program/group_shape.hpp"

namespace stratplan {
namespace {

using What = PathPart::What;

/// Adds up the errors of parts.
class Errors {
 public:
  Errors(const MachineProfile& machine, const ErrorModel& model, Seconds total)
      : machine_(machine), model_(model), total_(total), links_(machine.levels.size()) {}

  void add(const PathPart& part) {
    switch (part.what) {
      case What::Kernel: return add_kernel(part);
      case What::Exchange:
      case What::Collective: return add_transfer(part);
      case What::Host: return add_host(part.seconds);
      case What::Input: input_ += part.seconds; return;
      case What::Waiting: return;
    }
  }

  Sensitivity take() {
    for (const KernelSum& sum : kernels_) add_errors(sum);
    add(ErrorKind::Drift, machine_.name, drift_, model_.drift);
    add(ErrorKind::Device, device(), device_, device_deviation(model_, machine_));
    add(ErrorKind::Host, machine_.name, host_, model_.host);
    add(ErrorKind::Input, machine_.name, input_, model_.input);
    for (std::size_t family = 0; family < families_.size(); ++family)
      add(ErrorKind::Family, std::string(name_of(static_cast<KernelFamily>(family))),
          families_[family], model_.family[family]);
    for (std::size_t level = 0; level < links_.size(); ++level)
      add(ErrorKind::Link, fmt::format("{}, {}", machine_.name, machine_.levels[level].name),
          links_[level], model_.link);
    return std::move(errors_);
  }

 private:
  /// All parts of one kernel.
  struct KernelSum {
    PathPart part;
    Seconds seconds{};
  };

  void add(ErrorKind kind, std::string name, Seconds seconds, double deviation) {
    if (seconds.value == 0) return;
    ErrorShare& error = errors_[{kind, std::move(name)}];
    error.share += seconds / total_;
    error.deviation = deviation;
  }

  /// A path has many ops, but few distinct kernels. They keep the order in which they occur, so
  /// that sums are the same in every run.
  void add_kernel(const PathPart& part) {
    const auto [found, fresh] = part.kernel ? place_.try_emplace(part.kernel, kernels_.size())
                                            : std::pair(place_.end(), true);
    if (fresh) kernels_.push_back({part, {}});
    (fresh ? kernels_.back() : kernels_[found->second]).seconds += part.seconds;
  }

  std::string device() const {
    return fmt::format("{}, {}",
                       machine_.device.name.empty() ? machine_.name : machine_.device.name,
                       machine_.software.name);
  }

  void add_errors(const KernelSum& sum) {
    const auto* load = std::get_if<LoadOp>(&sum.part.op->body);
    load ? add_errors(load_kernel(*load), sum) : add_errors(*sum.part.kernel, sum);
  }

  void add_errors(const Kernel& kernel, const KernelSum& sum) {
    const auto family = static_cast<std::size_t>(family_of(kernel));
    // Estimates that measured kernels of the machine correct have their errors to themselves.
    const bool measured = sum.part.cost.tier <= Tier::Interpolated || sum.part.cost.doubt > 0;
    (measured ? drift_ : families_[family]) += sum.seconds;
    if (!measured || machine_.software.name != Software().name) device_ += sum.seconds;
    add(ErrorKind::Kernel, kernel.key(), sum.seconds,
        own_deviation(sum.part.cost, model_.kernel[family], model_.interpolated_kernel));
  }

  static double own_deviation(const OpCost& cost, double estimated, double interpolated) {
    if (cost.doubt > 0) return cost.doubt;
    if (cost.tier == Tier::Measured)
      return cost.seconds.value > 0 ? cost.deviation / cost.seconds : 0;
    return cost.tier == Tier::Interpolated ? interpolated : estimated;
  }

  void add_transfer(const PathPart& part) {
    const auto* collective = std::get_if<CollectiveOp>(&part.op->body);
    const auto [level, name] = collective
                                   ? describe(*collective, *part.program)
                                   : describe(std::get<ExchangeOp>(part.op->body), *part.program);
    (part.cost.tier <= Tier::Interpolated ? drift_ : links_[level]) += part.seconds;
    add(ErrorKind::Transfer, name, part.seconds,
        own_deviation(part.cost, model_.transfer, model_.interpolated_transfer));
  }

  /// The level that a transfer crosses, and its kind and size.
  struct Described {
    std::size_t level = 0;
    std::string name;
  };

  Described describe(const CollectiveOp& op, const Program& program) {
    const Topology& placement = placement_of(program.ranks);
    const GroupShape shape = shape_of(op.group, placement);
    std::size_t level = 0;
    while (level + 1 < placement.size() && shape.members[level] == 1) ++level;
    return {level, fmt::format("{} {}", collective_key(op.op, op.type, shape, placement.size()),
                               op.bytes().value)};
  }

  Described describe(const ExchangeOp& op, const Program& program) {
    std::vector<int> ranks{program.rank};
    Bytes bytes{};
    for (const auto* messages : {&op.sends, &op.receives})
      for (const Message& message : *messages) {
        ranks.push_back(message.peer);
        bytes += message.bytes;
      }
    const std::size_t level =
        machine_.levels.size() == 1 ? 0 : machine_.meeting_level(ranks, program.ranks);
    return {level, fmt::format("exchange {} {} {}", level, op.sends.size(), bytes.value)};
  }

  const Topology& placement_of(int ranks) {
    if (!placement_) placement_ = machine_.placement(ranks);
    return *placement_;
  }

  void add_host(Seconds seconds) {
    const bool measured = !machine_.assumed && machine_.step_overhead.samples > 0;
    (measured ? drift_ : host_) += seconds;
  }

  const MachineProfile& machine_;
  const ErrorModel& model_;
  Seconds total_;
  Sensitivity errors_;
  Seconds drift_{}, device_{}, host_{}, input_{};  ///< what each of these errors multiplies
  std::array<Seconds, kernel_family_count> families_{};
  std::vector<Seconds> links_;  ///< by level
  std::vector<KernelSum> kernels_;
  std::unordered_map<const Kernel*, std::size_t> place_;  ///< in kernels_
  std::optional<Topology> placement_;
};

Seconds total_of(const CriticalPath& parts) {
  Seconds total{};
  for (const PathPart& part : parts) total += part.seconds;
  return total;
}

}  // namespace

Sensitivity sensitivity_of(const CriticalPath& parts, const MachineProfile& machine,
                           const ErrorModel& errors) {
  const Seconds total = total_of(parts);
  if (total.value <= 0) return {};
  Errors sums(machine, errors, total);
  for (const PathPart& part : parts) sums.add(part);
  return sums.take();
}

Tier tier_of(const CriticalPath& parts, const MachineProfile& machine) {
  constexpr double counts = 0.05;
  std::array<Seconds, tier_count> by_tier{};
  for (const PathPart& part : parts) {
    if (part.what == What::Waiting) continue;
    const Tier tier = part.op && part.what != What::Input ? part.cost.tier
                      : part.what == What::Host && machine.step_overhead.samples > 0
                          ? Tier::Measured
                          : machine.estimate_tier();
    by_tier[static_cast<std::size_t>(tier)] += part.seconds;
  }
  const Seconds total = total_of(parts);
  for (std::size_t tier = tier_count; tier-- > 0;)
    if (by_tier[tier].value > 0 && by_tier[tier] >= total * counts) return static_cast<Tier>(tier);
  return Tier::Measured;
}

PathPart part_of(const Op& op, const Program& program, const MachineProfile& machine) {
  const OpCost cost = cost_of(op, program, machine);
  const auto* compute = std::get_if<ComputeOp>(&op.body);
  const What what = std::holds_alternative<ExchangeOp>(op.body)     ? What::Exchange
                    : std::holds_alternative<CollectiveOp>(op.body) ? What::Collective
                                                                    : What::Kernel;
  return {what, cost.seconds, cost, &program, &op, compute ? &compute->kernel : nullptr};
}

}  // namespace stratplan
