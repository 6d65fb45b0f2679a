#pragma once
// What a plan stores numbers in, and how it saves memory at the price of time, asked for by hand.
#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "cli/optimizer_options.hpp"
#include "model/network/network.hpp"
#include "model/partition/execution.hpp"
#include "planner/planner.hpp"

namespace stratplan {

void add_precision(CLI::App& command, std::string& precision);
/// Of one of its names, which CLI11 has checked.
Precision precision_of(const std::string& name);

/// --precision, --recompute, --sharding.
struct ExecutionOptions {
  std::string precision = "fp32";
  std::optional<std::string> recompute;
  std::optional<int> sharding;

  void add(CLI::App& command);
  /// Throws UsageError: a layer that the network does not have, or that cannot be made again; an
  /// optimizer that cannot work on shares.
  Execution execution(const Network& network) const;
  /// What was not said is for the planner to choose, micro-batches included.
  FreeMemoryOptions free(const OptimizerOptions& optimizer) const;
};

}  // namespace stratplan
