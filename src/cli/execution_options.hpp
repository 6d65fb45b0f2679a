#pragma once
// How a plan saves memory at the price of time, asked for by hand.
#include <CLI/CLI.hpp>

#include <string>

#include "model/network/network.hpp"
#include "model/partition/execution.hpp"

namespace stratplan {

/// --recompute, --sharding.
struct ExecutionOptions {
  std::string recompute;
  int sharding = 0;

  void add(CLI::App& command);
  /// Throws UsageError: a layer that the network does not have, or that cannot be made again; an optimizer that cannot work on shares.
  Execution execution(const Network& network) const;
};

}  // namespace stratplan
