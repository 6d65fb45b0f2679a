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

/// The options --precision and --gradient-sums.
struct PrecisionOptions {
  std::string activations = "fp32";
  std::optional<std::string> gradient_sums;  ///< default: fp32, or as the software says

  void add(CLI::App& command);
  Precision precision() const;
};

/// The options of PrecisionOptions, --recompute and --sharding.
struct ExecutionOptions {
  PrecisionOptions precision;
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
