#pragma once
// From a kernel to the plans by which cuDNN can run it: a graph of one operation, the engines that
// the heuristics propose for it, each with its settings ("knobs"), and an execution plan for each.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/partition/program/kernel.hpp"
#include "runtime/cuda/cudnn/arithmetic.hpp"
#include "runtime/cuda/cudnn/device_properties.hpp"

namespace stratplan::cudnn {

/// By which a plan's variant pack names the tensors.
enum TensorId : std::int64_t { x_id = 1, weights_id = 2, y_id = 3 };

/// Of what are x's and y's addresses multiples, in bytes: at most 16, and less where rows have
/// other lengths. Buffers begin at multiples of 64, but slabs
/// (model/partition/lowering/overlapped_halo.hpp) at any row of their buffer or, where it has only
/// one, at any column.
std::int64_t address_alignment(const Shape& shape, Arithmetic arithmetic);

/// A convolution in any direction as cuDNN sees it. Requires a kernel that is Cropped. Throws
/// EnvironmentError if cuDNN finds it wrong.
Descriptor operation_graph(const Kernel& kernel, Arithmetic arithmetic, const Target& target);

/// An engine and its settings.
struct EngineConfig {
  std::string
      name;  ///< "eng22{k2=10,k14=3}", the same in each run: engine and knobs by cuDNN's numbers
  std::int64_t engine = 0;
  bool tensor_cores = false;
  bool compiled_at_run_time = false;  ///< by the driver, so not without one
  Descriptor descriptor;
};

/// What can be run.
struct Plan {
  EngineConfig config;
  Bytes workspace{};
  Descriptor descriptor;
};

/// Calls `visit` with each of those that the heuristics propose, that compute as `arithmetic` says
/// and whose sums come out equal each time; the best guess first, each once, until it returns true.
/// The heuristics are asked one after the other, as far as need be.
void visit_configs(const Descriptor& graph, Arithmetic arithmetic, const Target& target,
                   const std::function<bool(const EngineConfig&)>& visit);

/// Nothing if the engine turns out to be unable, or fails to make it: some are compiled only now.
std::optional<Plan> execution_plan(const EngineConfig& config, const Target& target);

/// The first plan that suits.
std::optional<Plan> first_plan(const Kernel& kernel, Arithmetic arithmetic, const Target& target,
                               const std::function<bool(const Plan&)>& suits);
/// The one of that name; nothing if there is none.
std::optional<Plan> plan_named(const std::string& name, const Kernel& kernel, Arithmetic arithmetic,
                               const Target& target);
/// All, but for those that are compiled at run time and proposed behind others: compiling takes
/// seconds for each kernel.
std::vector<Plan> execution_plans(const Kernel& kernel, Arithmetic arithmetic,
                                  const Target& target);

/// Whether a plan copies a whole tensor into another form before it computes, or out of one behind
/// it: then its workspace holds at least that tensor. A filter gradient that is summed up in parts
/// may need as much, so this may be true of a plan that copies nothing, never the reverse.
bool hidden_repack(const Plan& plan, const Kernel& kernel, Arithmetic arithmetic);

}  // namespace stratplan::cudnn
