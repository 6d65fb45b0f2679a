#include "model/network/micro_batches.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stratplan {

std::optional<BadMicroBatches> check_micro_batches(const Network& network) {
  const std::int64_t parts = network.training.micro_batches;
  if (parts < 1 || network.batch % parts != 0)
    return BadMicroBatches{
        "/batch", fmt::format("a batch of {} samples does not divide into {} micro-batches",
                              network.batch, parts)};
  const bool normalizes = std::ranges::any_of(
      network.layers, [](const Layer& layer) { return layer.kind == LayerKind::BatchNorm; });
  if (parts > 1 && normalizes && network.micro_batch() % network.statistics_samples != 0) {
    return BadMicroBatches{
        "/statistics_samples",
        network.local_statistics
            ? fmt::format("expected a number of samples, because {} micro-batches split the "
                          "samples of a rank, but \"local\" statistics need all of them at once",
                          parts)
            : fmt::format("batch normalization takes its statistics over {} samples, but the {} "
                          "samples of a micro-batch are no multiple of that (batch {} in {} parts)",
                          network.statistics_samples, network.micro_batch(), network.batch, parts)};
  }
  const auto whole_batch = std::ranges::find_if(network.layers, &Layer::sums_whole_batch);
  if (parts > 1 && whole_batch != network.layers.end())
    return BadMicroBatches{
        "/layers",
        fmt::format("the {} divides by sums over the whole batch, so the batch cannot be "
                    "divided into {} micro-batches",
                    name_of(whole_batch->type()), parts)};
  return {};
}

std::optional<Network> with_micro_batches(const Network& network, std::int64_t micro_batches) {
  Network changed = network;
  changed.training.micro_batches = micro_batches;
  if (check_micro_batches(changed)) return {};
  const std::string name = network.name;
  return finish_network(std::move(changed), name, std::vector<std::string>(network.layers.size()));
}

std::vector<std::int64_t> numbers_of_micro_batches(const Network& network) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t parts = 2; parts <= std::min(most_micro_batches, network.batch); ++parts)
    if (network.batch % parts == 0) numbers.push_back(parts);
  return numbers;
}

std::optional<std::string> why_no_micro_batches(const Network& network) {
  Network divided = network;
  std::optional<std::string> why;
  for (const std::int64_t parts : numbers_of_micro_batches(network)) {
    divided.training.micro_batches = parts;
    const auto bad = check_micro_batches(divided);
    if (!bad) return {};
    if (!why) why = bad->text;
  }
  return why;
}

}  // namespace stratplan
