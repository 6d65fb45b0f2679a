#include "planner/shared_statistics.hpp"

#include <algorithm>

#include "model/cost/simulator.hpp"

namespace stratplan {
namespace {

/// Whether the op sums up the statistics of a batch normalization, forward or backward.
bool sums_statistics(const Op& op, const Network& network) {
  const auto* collective = std::get_if<CollectiveOp>(&op.body);
  return collective && collective->op == Collective::AllReduce && op.stream != Stream::Gradient &&
         op.layer >= 0 && takes_batch_statistics(network.layer(op.layer).kind);
}

}  // namespace

std::optional<SharedStatistics> shared_statistics(std::vector<Program> programs,
                                                  const Network& network,
                                                  const MachineProfile& machine) {
  SharedStatistics shared{.samples = network.statistics_samples};
  const auto step = [&] { return simulate(programs, machine).total; };
  for (const Program& program : programs)
    for (const Op& op : program.ops)
      if (sums_statistics(op, network))
        shared.ranks =
            std::max(shared.ranks, static_cast<int>(std::get<CollectiveOp>(op.body).group.size()));
  if (shared.ranks == 0) return {};
  const Seconds with_sums = step();
  for (Program& program : programs)
    std::erase_if(program.ops, [&](const Op& op) { return sums_statistics(op, network); });
  shared.cost = std::max(Seconds{0}, with_sums - step());
  return shared;
}

}  // namespace stratplan
