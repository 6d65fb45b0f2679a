#pragma once
// How a plan saves memory at the price of time, asked for by hand.
#include <CLI/CLI.hpp>

#include <string>

#include "model/network/network.hpp"
#include "model/partition/execution.hpp"

namespace stratplan {

/// --recompute.
struct ExecutionOptions {
  std::string recompute;

  void add(CLI::App& command);
  /// Throws UsageError: a layer that the network does not have, or that cannot be made again.
  Execution execution(const Network& network) const;
};

}  // namespace stratplan
