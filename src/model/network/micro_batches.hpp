#pragma once
#include <optional>
#include <string>
#include <vector>

#include "model/network/network.hpp"

namespace stratplan {

/// The most micro-batches that anything but the user chooses. Programs repeat all layers for each.
inline constexpr std::int64_t most_micro_batches = 1024;

/// The reason against a number of micro-batches, and the JSON pointer of the value that forbids it.
struct BadMicroBatches {
  std::string pointer, text;
};

/// Checks that the network's micro-batches divide the batch, and cut neither a statistics set of
/// batch normalization nor a loss over the whole batch. Returns nothing if all is well.
std::optional<BadMicroBatches> check_micro_batches(const Network& network);

/// Returns the network with another number of micro-batches. Returns nothing if the batch does not
/// divide into that many micro-batches, or if a layer forbids the division.
std::optional<Network> with_micro_batches(const Network& network, std::int64_t micro_batches);

/// Returns the divisors of the batch from 2 to most_micro_batches, ascending.
std::vector<std::int64_t> numbers_of_micro_batches(const Network& network);

/// Returns why the batch cannot be divided into micro-batches, for the fewest. Returns nothing if
/// some division is possible, or if the batch has no such divisor.
std::optional<std::string> why_no_micro_batches(const Network& network);

}  // namespace stratplan
