#include "model/cost/kind_differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "model/base/assert.hpp"
#include "model/cost/collective_cost.hpp"
#include "model/cost/faster_machine.hpp"
#include "model/cost/simulator.hpp"
#include "model/partition/program/group_shape.hpp"

namespace stratplan {
namespace {

SpreadTime& operator+=(SpreadTime& a, const SpreadTime& b) {
  a.mean += b.mean;
  a.p10 += b.p10;
  a.p90 += b.p90;
  return a;
}

SpreadTime scaled(const SpreadTime& time, double factor) {
  return {time.mean * factor, time.p10 * factor, time.p90 * factor};
}

/// Whether both spreads have no time in common.
bool differ(const SpreadTime& a, const SpreadTime& b) { return a.p90 < b.p10 || b.p90 < a.p10; }

/// Returns the point whose size is nearest, in proportion. Requires a point.
const Measurement& nearest(const SizeTable& table, Bytes bytes) {
  const auto distance = [&](const auto& point) {
    const double a = static_cast<double>(std::max(point.first, Bytes{1}).value),
                 b = static_cast<double>(std::max(bytes, Bytes{1}).value);
    return std::max(a / b, b / a);
  };
  return std::ranges::min_element(table.points, {}, distance)->second;
}

/// The profile's measurement of one op alone, whose spread relative to its mean is that of the
/// op's time.
struct Profiled {
  const Program& program;
  const MachineProfile& machine;

  const Measurement* of(const ComputeOp& compute) const {
    const auto found = machine.kernels.find(compute.kernel.key());
    return found == machine.kernels.end() ? nullptr : &found->second;
  }
  const Measurement* of(const LoadOp&) const { return nullptr; }  // waits for its data
  const Measurement* of(const ExchangeOp& exchange) const {
    Bytes most{};
    for (const auto* messages : {&exchange.sends, &exchange.receives})
      for (const Message& message : *messages) most = std::max(most, message.bytes);
    const bool both = !exchange.sends.empty() && !exchange.receives.empty();
    const SizeTable& table = both ? machine.both_ways : machine.one_way;
    return table.points.empty() ? nullptr : &nearest(table, most);
  }
  const Measurement* of(const CollectiveOp& collective) const {
    const Topology placement = machine.placement(program.ranks);
    const auto table = machine.collectives.find(collective_key(
        collective.op, collective.type, shape_of(collective.group, placement), placement.size()));
    return table == machine.collectives.end() || table->second.points.empty()
               ? nullptr
               : &nearest(table->second, collective.bytes());
  }

  std::optional<SpreadTime> operator()(const Op& op) const {
    const Measurement* measured = std::visit([&](const auto& body) { return of(body); }, op.body);
    const OpCost cost = cost_of(op, program, machine);
    if (!measured || cost.tier >= Tier::Calibrated || measured->mean().value <= 0) return {};
    const bool kernel = !communicates(op);
    const bool uneven = kernel && machine.drift && !machine.drift->even;
    return SpreadTime{
        cost.seconds,
        cost.seconds * (measured->p10 / measured->mean()) * (uneven ? machine.drift->least : 1),
        cost.seconds * (measured->p90 / measured->mean()) * (uneven ? machine.drift->most : 1)};
  }
};

std::string kind_text(const Op& op) {
  if (const auto* compute = std::get_if<ComputeOp>(&op.body)) return compute->kernel.name();
  if (const auto* collective = std::get_if<CollectiveOp>(&op.body))
    return fmt::format("{} {}", name_of(collective->op), name_of(collective->type));
  return "exchange";
}

/// One op with both times.
struct Compared {
  std::size_t rank = 0;
  const Op* op = nullptr;
  bool beside_messages = false;
  bool other_implementation = false;
  Seconds simulated{};  ///< with waiting
  SpreadTime profiled, measured;
  Seconds difference() const { return measured.mean - profiled.mean; }
};

/// What the simulated step says of each op, by rank and op.
struct Simulated {
  std::vector<std::vector<Seconds>> durations;
  std::vector<std::vector<bool>> beside_messages;  ///< whether a message of the rank is on its way
};

Simulated simulated(const std::vector<Program>& programs, const MachineProfile& machine) {
  Simulated result;
  const Timeline timeline = simulate(programs, machine);
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    const std::vector<Op>& ops = programs[rank].ops;
    result.durations.emplace_back(ops.size());
    result.beside_messages.emplace_back(ops.size(), false);
    std::vector<Span> messages;
    for (const Span& span : timeline.ranks[rank])
      if (communicates(ops[static_cast<std::size_t>(span.op)])) messages.push_back(span);
    for (const Span& span : timeline.ranks[rank]) {
      const auto op = static_cast<std::size_t>(span.op);
      result.durations[rank][op] = span.end - span.start;
      result.beside_messages[rank][op] =
          !communicates(ops[op]) && std::ranges::any_of(messages, [&](const Span& message) {
            return message.start < span.end && span.start < message.end;
          });
    }
  }
  return result;
}

/// Whether the plan runs another implementation of the kernel than the profile has the time of.
bool runs_another(const Op& op, const Program& program, const MachineProfile& machine) {
  const auto* compute = std::get_if<ComputeOp>(&op.body);
  if (!compute) return false;
  const std::string key = compute->kernel.key();
  const auto measured = machine.kernels.find(key);
  if (measured == machine.kernels.end() || measured->second.choice.empty()) return false;
  const auto named = program.implementations.find(key);
  return named == program.implementations.end() || named->second != measured->second.choice;
}

/// The cause of a kind's difference.
class Diagnosis {
 public:
  /// `usual`: measured / profiled of other kinds of kernels.
  Diagnosis(const std::vector<Compared>& ops, double usual, const std::vector<Program>& programs,
            const MachineProfile& machine, Bytes cache)
      : ops_(ops), usual_(usual), programs_(programs), machine_(machine), cache_(cache) {}

  DifferenceCause cause() const {
    if (communicates(*ops_.front().op))
      return last_rank_agrees() || simulated_waiting_agrees() ? DifferenceCause::Waiting
                                                              : DifferenceCause::Unknown;
    if (mostly([](const Compared& one) { return one.other_implementation; }))
      return DifferenceCause::OtherImplementation;
    if (mostly([](const Compared& one) { return one.beside_messages; }) && others_agree())
      return DifferenceCause::MessagesBeside;
    if (differs_like_others()) return DifferenceCause::AllKernels;
    if (cache_.value == 0 || !mostly([&](const Compared& one) { return is_bound_by_memory(one); }))
      return DifferenceCause::Unknown;
    if (mostly([&](const Compared& one) { return fits(one); })) return DifferenceCause::CacheState;
    const int on_a_node = machine_.ranks_per_node(programs_.front().ranks);
    return machine_.measured_ranks != on_a_node &&
                   mostly([&](const Compared& one) { return !fits(one); })
               ? DifferenceCause::SharedBandwidth
               : DifferenceCause::Unknown;
  }

 private:
  /// Whether ops with a property make up most of the difference.
  template <class Property>
  bool mostly(const Property& property) const {
    constexpr double most = 0.8;
    double all = 0, with = 0;
    for (const Compared& one : ops_) {
      all += one.difference().value;
      if (property(one)) with += one.difference().value;
    }
    return with / all >= most;
  }

  bool others_agree() const {
    SpreadTime profiled, measured;
    for (const Compared& one : ops_) {
      if (one.beside_messages) continue;
      profiled += one.profiled;
      measured += one.measured;
    }
    return !differ(profiled, measured);
  }

  const Kernel& kernel_of(const Compared& one) const {
    return std::get<ComputeOp>(one.op->body).kernel;
  }
  bool is_bound_by_memory(const Compared& one) const {
    return bound_of(kernel_of(one), machine_.device) == Resource::MemoryBandwidth;
  }
  bool fits(const Compared& one) const { return kernel_of(one).bytes() <= cache_; }

  /// A rank that comes first waits in the op. Whether the op takes the profile's time on the rank
  /// that comes last, which is the rank on which it takes least. Ops of all ranks correspond by
  /// their order.
  bool last_rank_agrees() const {
    std::map<std::size_t, std::vector<const Compared*>> by_rank;
    for (const Compared& one : ops_) by_rank[one.rank].push_back(&one);
    const std::size_t count = by_rank.begin()->second.size();
    if (by_rank.size() != programs_.size() ||
        std::ranges::any_of(by_rank, [&](const auto& of) { return of.second.size() != count; }))
      return false;
    SpreadTime profiled, measured;
    for (std::size_t i = 0; i < count; ++i) {
      const Compared* last = nullptr;
      for (const auto& [rank, ops] : by_rank)
        if (!last || ops[i]->measured.mean < last->measured.mean) last = ops[i];
      profiled += last->profiled;
      measured += last->measured;
    }
    return !differ(profiled, measured);
  }

  /// The simulation derives waiting from how much the profile's kernels vary.
  bool simulated_waiting_agrees() const {
    SpreadTime expected, measured;
    for (const Compared& one : ops_) {
      expected += scaled(one.profiled, one.simulated / one.profiled.mean);
      measured += one.measured;
    }
    return !differ(expected, measured);
  }

  bool differs_like_others() const {
    SpreadTime usual, measured;
    for (const Compared& one : ops_) {
      usual += scaled(one.profiled, usual_);
      measured += one.measured;
    }
    return !differ(usual, measured);
  }

  const std::vector<Compared>& ops_;
  double usual_;
  const std::vector<Program>& programs_;
  const MachineProfile& machine_;
  Bytes cache_;
};

}  // namespace

std::string_view name_of(DifferenceCause cause) {
  constexpr std::array<std::string_view, 7> names{"not told by the data",
                                                  "waiting for other ranks",
                                                  "another implementation than profiled",
                                                  "messages beside the kernels",
                                                  "as all kernels: drift, or a shared machine",
                                                  "state of the caches",
                                                  "bandwidth shared by another number of ranks"};
  return names[static_cast<std::size_t>(cause)];
}

namespace {

using OpsByKind = std::map<std::string, std::vector<Compared>>;

/// The median of measured / profiled over all kinds of kernels but one, weighted by their profiled
/// time; 1 if there are no others.
double usual_ratio(const std::string& besides, const OpsByKind& by_kind) {
  std::vector<std::pair<double, double>> kinds;  // ratio and weight
  double whole = 0;
  for (const auto& [kind, ops] : by_kind) {
    if (kind == besides || communicates(*ops.front().op)) continue;
    SpreadTime profiled, measured;
    for (const Compared& op : ops) {
      profiled += op.profiled;
      measured += op.measured;
    }
    kinds.emplace_back(measured.mean / profiled.mean, profiled.mean.value);
    whole += profiled.mean.value;
  }
  std::ranges::sort(kinds);
  double below = 0;
  for (const auto& [ratio, weight] : kinds)
    if ((below += weight) >= whole / 2) return ratio;
  return 1;
}

}  // namespace

KindDifferences kind_differences(const std::vector<Program>& programs, const Timing& timing,
                                 const MachineProfile& machine, Bytes cache) {
  SP_ASSERT(timing.op_medians.size() == programs.size(), "there are times of {} ranks for {}",
            timing.op_medians.size(), programs.size());
  KindDifferences result;
  OpsByKind by_kind;
  const Simulated expected = simulated(programs, machine);
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    const Profiled profiled{programs[rank], machine};
    for (std::size_t i = 0; i < programs[rank].ops.size(); ++i) {
      const Op& op = programs[rank].ops[i];
      const std::optional<SpreadTime> alone = profiled(op);
      ++(alone ? result.compared : result.unprofiled);
      if (!alone) continue;
      Measurement measured;
      measured.median = timing.op_medians[rank][i];
      measured.p10 = timing.op_p10.empty() ? measured.median : timing.op_p10[rank][i];
      measured.p90 = timing.op_p90.empty() ? measured.median : timing.op_p90[rank][i];
      by_kind[kind_text(op)].push_back({rank,
                                        &op,
                                        expected.beside_messages[rank][i],
                                        runs_another(op, programs[rank], machine),
                                        expected.durations[rank][i],
                                        *alone,
                                        {measured.mean(), measured.p10, measured.p90}});
    }
  }
  for (const auto& [kind, ops] : by_kind) {
    KindDifference one{
        .kind = kind, .ops = static_cast<int>(ops.size()), .profiled = {}, .measured = {}};
    for (const Compared& op : ops) {
      one.profiled += op.profiled;
      one.measured += op.measured;
    }
    if (!differ(one.profiled, one.measured)) continue;
    one.cause = Diagnosis(ops, usual_ratio(kind, by_kind), programs, machine, cache).cause();
    const double share = 1.0 / static_cast<double>(programs.size());
    one.profiled = scaled(one.profiled, share);
    one.measured = scaled(one.measured, share);
    result.kinds.push_back(std::move(one));
  }
  std::ranges::stable_sort(result.kinds, std::greater(), [](const KindDifference& one) {
    return std::abs(one.difference().value);
  });
  return result;
}

}  // namespace stratplan
