#pragma once
// Where the time of a plan's step goes, by layer and in total, and what would shorten the step.
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/json/json_fwd.hpp"
#include "model/cost/faster_machine.hpp"
#include "model/cost/memory.hpp"
#include "model/plan/plan.hpp"
#include "report/input_report.hpp"
#include "report/table.hpp"

namespace stratplan {

/// What a moment of a rank's step is spent on. Each moment counts for exactly one item. Messages
/// count only while no kernel runs beside them.
enum class Spent : int { Compute, MemoryBandwidth, Launches, Latency, Bandwidth, Input, Waiting };
inline constexpr int spent_count = static_cast<int>(Spent::Waiting) + 1;
/// Returns "compute", "memory bandwidth", ..., "input" or "waiting".
std::string_view name_of(Spent spent);

/// Times as means over the ranks.
struct TimeSpent {
  std::array<Seconds, spent_count> on{};  ///< indexed by Spent
  /// how much longer the kernels of the rank with most work take than the mean; other ranks wait
  /// for that rank, in this layer or later
  Seconds imbalance{};
  Seconds& operator[](Spent spent) { return on[static_cast<std::size_t>(spent)]; }
  Seconds operator[](Spent spent) const { return on[static_cast<std::size_t>(spent)]; }
  Seconds total() const;
};

/// Something that would shorten the step.
struct Remedy {
  std::string what;       ///< for example "compute twice as fast"
  Prediction whole;       ///< a step with the remedy; without ranges if it is a lower bound
  bool simulated = true;  ///< false: the step is a lower bound
};

struct Bottlenecks {
  /// one per layer of the network, then one for ops of no layer (the optimizer) and for the end of
  /// the step
  std::vector<TimeSpent> layers;
  TimeSpent whole;        ///< the sum of `layers`; its imbalance is that of the whole step
  Prediction prediction;  ///< the step and the memory, with their ranges
  MemoryUse memory;       ///< of the rank that needs most
  Bytes memory_size{};    ///< the memory of a rank's device; 0: unknown
  std::optional<InputFindings> input;
  std::vector<Remedy> remedies;  ///< the most helpful first
  Spent largest() const;         ///< the item that most of the step is spent on
};

/// Analyzes the simulated step. Above 16 ranks, only representative ranks are simulated
/// (planner/prediction.hpp).
Bottlenecks find_bottlenecks(const Plan& plan, const Network& network,
                             const MachineProfile& machine);

/// Two rows: the time of the whole step by item of Spent, and each time's share of the step.
Table step_table(const Bottlenecks& found);
/// One row per layer that takes any time. With `most`, only the `most` heaviest layers, else all in
/// the network's order.
Table bottleneck_table(const Network& network, const Bottlenecks& found,
                       std::optional<std::size_t> most = {});
Table remedy_table(const Bottlenecks& found);
/// Returns a text such as "bound by input (81.2 % of the step)".
std::string bound_text(const Bottlenecks& found);
/// Returns a text such as "memory: 12.1 GiB, 11.8-12.4, of 16.0 GiB per rank (76 %)".
std::string memory_size_text(const Bottlenecks& found);
Json to_json(const Network& network, const Bottlenecks& found);

}  // namespace stratplan
