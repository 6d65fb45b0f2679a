#include "report/kind_differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "model/base/assert.hpp"
#include "model/base/json/json.hpp"
#include "model/base/text.hpp"
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
    if (!measured || cost.tier == Tier::Estimated || measured->mean().value <= 0) return {};
    const bool kernel = !communicates(op);
    const bool uneven = kernel && machine.drift && !machine.drift->even;
    return SpreadTime{
        cost.seconds,
        cost.seconds * (measured->p10 / measured->mean()) * (uneven ? machine.drift->least : 1),
        cost.seconds * (measured->p90 / measured->mean()) * (uneven ? machine.drift->most : 1)};
  }
};

std::string kind_of(const Op& op) {
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
  SpreadTime profiled, measured;
  Seconds difference() const { return measured.mean - profiled.mean; }
};

/// By rank and op, whether a kernel runs while a message of its rank is on its way, in the
/// simulated step.
std::vector<std::vector<bool>> beside_messages(const std::vector<Program>& programs,
                                               const MachineProfile& machine) {
  std::vector<std::vector<bool>> beside;
  for (const Program& program : programs) beside.emplace_back(program.ops.size(), false);
  if (std::ranges::none_of(programs, &Program::concurrent_streams)) return beside;
  const Timeline timeline = simulate(programs, machine);
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    std::vector<Span> messages, kernels;
    for (const Span& span : timeline.ranks[rank])
      (communicates(programs[rank].ops[static_cast<std::size_t>(span.op)]) ? messages : kernels)
          .push_back(span);
    for (const Span& kernel : kernels)
      beside[rank][static_cast<std::size_t>(kernel.op)] =
          std::ranges::any_of(messages, [&](const Span& message) {
            return message.start < kernel.end && kernel.start < message.end;
          });
  }
  return beside;
}

/// The cause of a kind's difference.
class Diagnosis {
 public:
  Diagnosis(const std::vector<Compared>& ops, const std::vector<Program>& programs,
            const MachineProfile& machine, Bytes cache)
      : ops_(ops), programs_(programs), machine_(machine), cache_(cache) {}

  DifferenceCause cause() const {
    if (communicates(*ops_.front().op))
      return last_rank_agrees() ? DifferenceCause::Waiting : DifferenceCause::Unknown;
    if (mostly([](const Compared& one) { return one.beside_messages; }) && others_agree())
      return DifferenceCause::MessagesBeside;
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

  const std::vector<Compared>& ops_;
  const std::vector<Program>& programs_;
  const MachineProfile& machine_;
  Bytes cache_;
};

}  // namespace

std::string_view name_of(DifferenceCause cause) {
  constexpr std::array<std::string_view, 5> names{
      "not told by the data", "waiting for other ranks", "messages beside the kernels",
      "state of the caches", "bandwidth shared by another number of ranks"};
  return names[static_cast<std::size_t>(cause)];
}

KindDifferences kind_differences(const std::vector<Program>& programs, const Timing& timing,
                                 const MachineProfile& machine, Bytes cache) {
  SP_ASSERT(timing.op_medians.size() == programs.size(), "there are times of {} ranks for {}",
            timing.op_medians.size(), programs.size());
  KindDifferences result;
  std::map<std::string, std::vector<Compared>> by_kind;
  const auto beside = beside_messages(programs, machine);
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
      by_kind[kind_of(op)].push_back(
          {rank, &op, beside[rank][i], *alone, {measured.mean(), measured.p10, measured.p90}});
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
    one.cause = Diagnosis(ops, programs, machine, cache).cause();
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

Table kind_difference_table(const KindDifferences& differences) {
  using enum Table::Align;
  Table table{{{"kind", Left},
               {"ops"},
               {"profile ms"},
               {"p10 .. p90"},
               {"training ms"},
               {"p10 .. p90"},
               {"difference"},
               {"likely cause", Left}},
              {}};
  const auto spread = [](const SpreadTime& time) {
    return milliseconds(time.p10) + " .. " + milliseconds(time.p90);
  };
  for (const KindDifference& one : differences.kinds)
    table.rows.push_back({one.kind, std::to_string(one.ops), milliseconds(one.profiled.mean),
                          spread(one.profiled), milliseconds(one.measured.mean),
                          spread(one.measured), milliseconds(one.difference()),
                          std::string(name_of(one.cause))});
  return table;
}

Json to_json(const KindDifferences& differences) {
  const auto spread = [](const SpreadTime& time) {
    return Json{{"mean_seconds", time.mean.value},
                {"p10_seconds", time.p10.value},
                {"p90_seconds", time.p90.value}};
  };
  Json kinds = Json::array();
  for (const KindDifference& one : differences.kinds)
    kinds.push_back({{"kind", one.kind},
                     {"ops", one.ops},
                     {"profile", spread(one.profiled)},
                     {"training", spread(one.measured)},
                     {"cause", name_of(one.cause)}});
  return kinds;
}

}  // namespace stratplan
