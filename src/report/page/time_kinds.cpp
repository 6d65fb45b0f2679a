#include "report/page/time_kinds.hpp"

#include <algorithm>
#include <numeric>

#include "model/cost/op_cost.hpp"
#include "report/page/markup.hpp"

namespace stratplan {

std::string_view name_of(TimeKind kind) {
  constexpr std::array<std::string_view, time_kind_count> names{"compute", "halo", "redistribution",
                                                                "reduction", "waiting"};
  return names[static_cast<std::size_t>(kind)];
}

const char* colour_of(TimeKind kind) {
  constexpr std::array<std::size_t, time_kind_count> places{0, 4, 3, 2, 6};
  return distinct_colours[places[static_cast<std::size_t>(kind)]];
}

TimeKind kind_of(const Op& op, const LayerDecompositions& layers) {
  if (!communicates(op)) return TimeKind::Compute;
  if (op.producer < 0 || op.layer < 0)
    return std::holds_alternative<CollectiveOp>(op.body) ? TimeKind::Reduction
                                                         : TimeKind::Redistribution;
  const Decomposition &from = layers[static_cast<std::size_t>(op.producer)],
                      &to = layers[static_cast<std::size_t>(op.layer)];
  return std::holds_alternative<ExchangeOp>(op.body) && from.grid == to.grid &&
                 from.ranks == to.ranks
             ? TimeKind::Halo
             : TimeKind::Redistribution;
}

Seconds sum(const KindTimes& times) {
  return std::accumulate(times.begin(), times.end(), Seconds{});
}

std::vector<KindTimes> times_by_kind(const std::vector<Program>& programs,
                                     const Durations& durations, const LayerDecompositions& layers,
                                     const MachineProfile* machine) {
  std::vector<KindTimes> times(layers.size() + 1);
  const double share = 1.0 / static_cast<double>(programs.size());
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    for (std::size_t i = 0; i < programs[rank].ops.size(); ++i) {
      const Op& op = programs[rank].ops[i];
      KindTimes& here = op.layer < 0 ? times.back() : times[static_cast<std::size_t>(op.layer)];
      const Seconds whole = durations[rank][i];
      const Seconds own = machine && communicates(op)
                              ? std::min(whole, cost_of(op, programs[rank], *machine).seconds)
                              : whole;
      here[static_cast<std::size_t>(kind_of(op, layers))] += own * share;
      here[static_cast<std::size_t>(TimeKind::Waiting)] += (whole - own) * share;
    }
  }
  return times;
}

}  // namespace stratplan
