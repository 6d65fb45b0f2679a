#pragma once
// What a plan's step is spent on, per layer and as a whole, and what would shorten it.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/json/json_fwd.hpp"
#include "model/cost/faster_machine.hpp"
#include "model/cost/memory.hpp"
#include "model/plan/plan.hpp"
#include "report/table.hpp"

namespace stratplan {

/// Each moment of a rank's step is spent on one of these. Messages count as far as no kernel runs
/// beside them.
enum class Spent : int { Compute, MemoryBandwidth, Launches, Latency, Bandwidth, Input, Waiting };
inline constexpr int spent_count = static_cast<int>(Spent::Waiting) + 1;
/// "compute", "memory bandwidth", ..., "input", "waiting"
std::string_view name_of(Spent spent);

/// The mean over the ranks.
struct TimeSpent {
  std::array<Seconds, spent_count> on{};
  /// what the kernels of the rank with most work take longer than the mean; others wait for it,
  /// here or further on
  Seconds imbalance{};
  Seconds& operator[](Spent spent) { return on[static_cast<std::size_t>(spent)]; }
  Seconds operator[](Spent spent) const { return on[static_cast<std::size_t>(spent)]; }
  Seconds total() const;
};

/// Something that would shorten the step.
struct Remedy {
  std::string what;       ///< "compute twice as fast"
  Seconds step{};         ///< with it
  bool simulated = true;  ///< else no more than this could be gained
};

struct Bottlenecks {
  /// per layer of the network, and one more for what belongs to none: the optimizer, and the end of
  /// the step
  std::vector<TimeSpent> layers;
  TimeSpent whole;  ///< their sum, but the imbalance: of the whole step
  Seconds step{};
  MemoryUse memory;              ///< of the worst rank
  Bytes memory_size{};           ///< that it has; 0: unknown
  std::vector<Remedy> remedies;  ///< the most helpful first
};

/// Of the simulated step; of many ranks those that stand for all.
Bottlenecks find_bottlenecks(const Plan& plan, const Network& network,
                             const MachineProfile& machine);

/// One row per layer that takes any time, and the whole with its shares.
Table bottleneck_table(const Network& network, const Bottlenecks& found);
Table remedy_table(const Bottlenecks& found);
/// "memory: 12.1 GiB of 16.0 GiB (76 %)"
std::string memory_size_text(const Bottlenecks& found);
Json to_json(const Network& network, const Bottlenecks& found);

}  // namespace stratplan
