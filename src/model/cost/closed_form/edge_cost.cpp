#include "model/cost/closed_form/edge_cost.hpp"

#include <algorithm>
#include <utility>

#include "model/cost/collective_cost.hpp"
#include "model/partition/layers/local_kernel.hpp"
#include "model/partition/redistribution.hpp"
#include "model/partition/transfer.hpp"

namespace stratplan {

EdgeRates edge_rates(int ranks, const MachineProfile& machine, DataType type) {
  const Topology placement = machine.placement(ranks);
  std::size_t inner = placement.size() - 1, outer = 0;
  while (inner > 0 && placement[inner] == 1) --inner;
  while (outer < inner && placement[outer] == 1) ++outer;
  const auto rates = [&](std::size_t level) {
    const Bytes large{std::int64_t{1} << 30};
    const Seconds latency = estimate_exchange(level, {1, {0}, {0}}, placement, machine);
    return std::pair(
        latency.value,
        (estimate_exchange(level, {1, large, large}, placement, machine) - latency).value *
            static_cast<double>(size_of(type)) / static_cast<double>(large.value));
  };
  constexpr std::int64_t many = std::int64_t{1} << 28;
  const auto seconds_of = [&](std::int64_t elements) {
    const Region all = flat(elements);
    return cost_of(copy_kernel(all, all, all, all, type), machine).seconds.value;
  };
  const double start = seconds_of(1);
  const auto [far_message, far_element] = rates(outer);
  const auto [near_message, near_element] = rates(inner);
  const double copied = (seconds_of(many) - start) / static_cast<double>(many);
  // A rank copies its own data once, without packing and unpacking. If no data move, it copies
  // nothing.
  const auto single = [](double value) { return static_cast<float>(value); };
  return {single(far_message + 2 * start),
          single(far_element + 2 * copied),
          single(far_message - near_message),
          single(far_element - near_element),
          single(near_message + start),
          single(near_element + copied),
          machine.topology(ranks).back(),
          single(start),
          single(copied),
          ranks,
          type,
          &machine};
}

namespace {

/// The time of collectives, and of the copies that pack and unpack them.
double seconds_of(const std::vector<GroupMove>& moves, const EdgeRates& rates) {
  const Topology placement = rates.machine->placement(rates.ranks);
  double seconds = 0;
  for (const GroupMove& move : moves) {
    const std::int64_t elements = move.region.elements();
    seconds += collective_cost(move.op, rates.type, {elements * size_of(rates.type)},
                               shape_of(move.group, placement), placement, *rates.machine)
                   .seconds.value;
    if (!move.in_place())
      seconds += static_cast<double>(move.tiles().size()) * rates.copy +
                 static_cast<double>(elements) * rates.copied_element;
  }
  return seconds;
}

/// The cost of both directions. `moves`: by direction, the collectives that make its transfers;
/// empty if messages do.
Seconds cost_of(const EdgeRates& rates, Distribution home, Needed needed,
                const std::array<std::vector<GroupMove>, 2>& moves) {
  home.grid = home.grid.in_groups_of(rates.innermost);
  needed.iteration.grid = needed.iteration.grid.in_groups_of(rates.innermost);
  double sum = 0;
  for (const bool adjoint : {false, true}) {
    if (!moves[adjoint].empty()) {
      sum += seconds_of(moves[adjoint], rates);
      continue;
    }
    ArrivalCounts counts(home, needed, adjoint);
    double longest = 0;
    for (int rank = 0; rank < home.grid.ranks(); ++rank) {
      const std::span<const Arrivals> within = counts.within(rank);
      const Arrivals &all = within.front(), &near = within[within.size() - 2], &own = within.back();
      if (all == own) continue;
      const auto price = [](const Arrivals& of, float message, float element) {
        return static_cast<double>(of.messages) * message +
               static_cast<double>(of.elements) * element;
      };
      longest = std::max(longest, price(all, rates.message, rates.element) -
                                      price(near, rates.near_message, rates.near_element) -
                                      price(own, rates.own_message, rates.own_element));
    }
    sum += longest;
  }
  return {sum};
}

}  // namespace

Seconds edge_cost(const EdgeRates& rates, Distribution home, Needed needed) {
  const int first = home.ranks.of_job(0);  // its blocks are the longest
  const std::array moves{collectives(home, needed, first),
                         collectives_adjoint(home, needed, first)};
  return cost_of(rates, std::move(home), std::move(needed), moves);
}

Seconds edge_cost_in_messages(const EdgeRates& rates, Distribution home, Needed needed) {
  return cost_of(rates, std::move(home), std::move(needed), {});
}

}  // namespace stratplan
