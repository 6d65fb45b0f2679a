#pragma once
#include <optional>
#include <string>
#include <vector>

#include "model/network/network.hpp"

namespace stratplan {

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

/// Returns the divisors of the batch from 1 to `most`, ascending.
std::vector<std::int64_t> divisors_of_batch(const Network& network, std::int64_t most);

/// Returns why the batch cannot be divided into micro-batches, for the fewest of more than one.
/// Returns nothing if some division is possible, or if the batch is one sample.
std::optional<std::string> why_no_micro_batches(const Network& network);

}  // namespace stratplan
