#include "cli/execution_options.hpp"

#include <fmt/format.h>

#include <map>
#include <sstream>

#include "model/base/error.hpp"
#include "model/base/suggestion.hpp"
#include "model/partition/lowering/recompute.hpp"
#include "model/partition/sharding.hpp"

namespace stratplan {
namespace {

std::set<std::string> layers_of(const std::string& list, const Network& network) {
  std::set<std::string> layers;
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ',');) {
    const auto index = network.find(name);
    if (!index) {
      std::vector<std::string> known;
      for (const Layer& layer : network.layers) known.push_back(layer.name);
      throw UsageError(fmt::format("--recompute: {} has no layer \"{}\"{}", network.name, name,
                                   suggestion(name, known)));
    }
    if (const auto rejection = check_recompute(network, *index))
      throw UsageError("--recompute: " + rejection->reason);
    layers.insert(name);
  }
  return layers;
}

}  // namespace

void PrecisionOptions::add(CLI::App& command) {
  const std::vector<std::string> types{"fp32", "bf16", "fp16"};
  command
      .add_option("--precision", activations,
                  "type of stored activations: fp32, bf16 or fp16. With bf16 and fp16, gradients "
                  "of activations and the weights that convolutions read also have 16 bits; "
                  "parameters stay in fp32. With fp16 the loss is scaled")
      ->check(CLI::IsMember(types))
      ->capture_default_str();
  command
      .add_option("--gradient-sums", gradient_sums,
                  "type in which ranks add up gradients of parameters: fp32, bf16 or fp16. 16 bits "
                  "halve the bytes that move, and round each term and each partial sum. Default: "
                  "fp32, or as the software sums gradients of activations in 16 bits")
      ->check(CLI::IsMember(types));
}

Precision PrecisionOptions::precision() const {
  return {.activations = precision_types.at(activations),
          .gradient_sums = precision_types.at(gradient_sums.value_or("fp32"))};
}

void ExecutionOptions::add(CLI::App& command) {
  precision.add(command);
  command.add_option(
      "--recompute", recompute,
      "layers whose outputs are recomputed for the backward phase instead of being "
      "kept. NAME,...: these layers; all: all layers whose output only their own block of layers "
      "reads; none: no layer. Default: none, or as few layers as make the plan fit "
      "into memory");
  command
      .add_option("--sharding", sharding,
                  "what ranks with the same parameters divide among themselves (ZeRO stages). 0: "
                  "nothing; 1: the optimizer's state; 2: also gradients; 3: also parameters. "
                  "Default: 0, or the stage that makes the plan fit into memory")
      ->check(CLI::Range(0, sharding_stages - 1));
}

Execution ExecutionOptions::execution(const Network& network) const {
  Execution execution;
  execution.precision = precision.precision();
  if (recompute && *recompute != "none")
    execution.recompute =
        *recompute == "all" ? layers_to_recompute(network) : layers_of(*recompute, network);
  execution.sharding = sharding.value_or(0);
  if (const auto rejection = check_sharding(network.training, execution.sharding))
    throw UsageError("--sharding: " + rejection->reason);
  return execution;
}

FreeMemoryOptions ExecutionOptions::free(const OptimizerOptions& optimizer) const {
  return {
      .micro_batches = optimizer.accumulate == 0, .sharding = !sharding, .recompute = !recompute};
}

}  // namespace stratplan
