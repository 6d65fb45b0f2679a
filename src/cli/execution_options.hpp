#pragma once
// Options for a plan's precision and for recomputation and sharding, which save memory at the price
// of time.
#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "cli/optimizer_options.hpp"
#include "model/network/network.hpp"
#include "model/partition/execution.hpp"
#include "planner/planner.hpp"

namespace stratplan {

void add_precision(CLI::App& command, std::string& precision);
/// Returns the precision called `name`, a value of --precision that CLI11 has checked.
Precision precision_of(const std::string& name);

/// The options --precision, --recompute and --sharding.
struct ExecutionOptions {
  std::string precision = "fp32";
  std::optional<std::string> recompute;
  std::optional<int> sharding;

  void add(CLI::App& command);
  /// Throws UsageError if the network lacks a named layer, if a named layer cannot be recomputed,
  /// or if the optimizer cannot work on shards.
  Execution execution(const Network& network) const;
  /// Returns the memory-saving options that the command line leaves to the planner: --accumulate,
  /// --sharding and --recompute are free unless they are given.
  FreeMemoryOptions free(const OptimizerOptions& optimizer) const;
};

}  // namespace stratplan
