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

/// What activations are stored in, by the names of machines' arithmetic.
const std::map<std::string, DataType> precisions{
    {"fp32", DataType::F32}, {"bf16", DataType::BF16}, {"fp16", DataType::F16}};

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

void add_precision(CLI::App& command, std::string& precision) {
  command
      .add_option("--precision", precision,
                  "fp32; bf16 or fp16: activations, their gradients and what convolutions read of "
                  "weights in 16 bits, parameters and sums in fp32, with "
                  "fp16 a scaled loss")
      ->check(CLI::IsMember(std::vector<std::string>{"fp32", "bf16", "fp16"}))
      ->capture_default_str();
}

Precision precision_of(const std::string& name) { return {.activations = precisions.at(name)}; }

void ExecutionOptions::add(CLI::App& command) {
  add_precision(command, precision);
  command.add_option("--recompute", recompute,
                     "layers whose outputs are recomputed for the backward phase instead of being "
                     "kept: names, separated by commas; all: in each "
                     "block what only the block itself reads; none; default: none, or as few as "
                     "make the plan fit");
  command
      .add_option("--sharding", sharding,
                  "ranks that hold the same parameters keep a share each: 0 of nothing, 1 of the "
                  "optimizer's state, 2 also of gradients, 3 also of "
                  "parameters; default: 0, or what makes the plan fit")
      ->check(CLI::Range(0, sharding_stages - 1));
}

Execution ExecutionOptions::execution(const Network& network) const {
  Execution execution;
  execution.precision = precision_of(precision);
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
