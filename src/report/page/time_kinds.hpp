#pragma once
// The time of a step by what it is spent on: kernels, halos, redistributions, sums, waiting.
#include <array>
#include <string_view>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "model/partition/block.hpp"
#include "model/partition/program/program.hpp"
#include "report/layers.hpp"

namespace stratplan {

/// What an op does. A halo goes to a layer that is decomposed as its producer; a redistribution
/// brings a tensor to a layer that is decomposed otherwise.
enum class TimeKind : int { Compute, Halo, Redistribution, Reduction, Waiting };
inline constexpr int time_kind_count = static_cast<int>(TimeKind::Waiting) + 1;
/// Returns "compute", "halo", "redistribution", "reduction" or "waiting".
std::string_view name_of(TimeKind kind);
/// The colour of a kind in all figures.
const char* colour_of(TimeKind kind);
TimeKind kind_of(const Op& op, const LayerDecompositions& layers);

/// Seconds, indexed by TimeKind.
using KindTimes = std::array<Seconds, time_kind_count>;
Seconds sum(const KindTimes& times);

/// The mean over the ranks, by layer of the network; ops of no layer are last. What a transfer
/// takes beyond its own cost on `machine` is waiting; without a machine, it counts as transfer.
/// Where communication goes on beside kernels, the times add up to more than the step.
std::vector<KindTimes> times_by_kind(const std::vector<Program>& programs,
                                     const Durations& durations, const LayerDecompositions& layers,
                                     const MachineProfile* machine);

}  // namespace stratplan
