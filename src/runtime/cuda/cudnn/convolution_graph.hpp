#pragma once
// Finds the execution plans with which cuDNN can run a convolution. The kernel becomes a graph of
// one operation. cuDNN's heuristics propose engines for the graph, each with settings ("knobs").
// Each engine with its settings gives an execution plan.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/partition/program/kernel.hpp"
#include "runtime/cuda/cudnn/arithmetic.hpp"
#include "runtime/cuda/cudnn/device_properties.hpp"

namespace stratplan::cudnn {

/// The ids of the tensors in a plan's variant pack.
enum TensorId : std::int64_t { x_id = 1, weights_id = 2, y_id = 3 };

/// Returns the alignment in bytes of the addresses of x and y: at most 16, and less if the length
/// of a row is not a multiple of 16 bytes. Buffers begin at multiples of 64 bytes. A piece of an
/// interior/boundary split (model/partition/lowering/overlapped_halo.hpp) begins at any row of its
/// buffer, or at any column if the buffer has only one row.
std::int64_t address_alignment(const Shape& shape, Arithmetic arithmetic);

/// Returns cuDNN's graph of one pass of a convolution. Requires a kernel that cropped() returned.
/// Throws EnvironmentError if cuDNN rejects the description.
Descriptor operation_graph(const Kernel& kernel, Arithmetic arithmetic, const Target& target);

/// An engine and its settings.
struct EngineConfig {
  /// engine and knobs by cuDNN's numbers, which are the same in each run, for example
  /// "eng22{k2=10,k14=3}"
  std::string name;
  std::int64_t engine = 0;
  std::map<int, std::int64_t> knobs;  ///< values by cudnnBackendKnobType_t
  bool tensor_cores = false;
  bool compiled_at_run_time = false;  ///< by the driver, so the engine needs a driver
  Descriptor descriptor;
};

/// An execution plan that is ready to run.
struct Plan {
  EngineConfig config;
  Bytes workspace{};
  Descriptor descriptor;
};

/// Calls `visit` with the engines and settings that the heuristics propose, until `visit` returns
/// true. Each engine with its settings is visited once, the best guess first. Leaves out engines
/// that do not compute as `arithmetic` says, engines whose sums are not repeatable, and engines
/// known to give wrong numbers for this kernel. Asks the heuristics one after the other, and only
/// as many as needed.
void visit_configs(const Kernel& kernel, Arithmetic arithmetic, const Target& target,
                   const std::function<bool(const EngineConfig&)>& visit);

/// Returns the plan of an engine. Returns nothing if the engine does not support the operation or
/// fails to make the plan. Some engines are compiled only in this call.
std::optional<Plan> execution_plan(const EngineConfig& config, const Target& target);

/// Returns the first plan for which `suits` returns true, or nothing if there is no such plan.
std::optional<Plan> first_plan(const Kernel& kernel, Arithmetic arithmetic, const Target& target,
                               const std::function<bool(const Plan&)>& suits);
/// Returns the plan whose EngineConfig::name is `name`, or nothing if there is no such plan.
std::optional<Plan> plan_named(const std::string& name, const Kernel& kernel, Arithmetic arithmetic,
                               const Target& target);
/// Returns all plans, except the plans of engines that are compiled at run time and proposed after
/// others. Compiling takes seconds for each kernel.
std::vector<Plan> execution_plans(const Kernel& kernel, Arithmetic arithmetic,
                                  const Target& target);

/// Whether the plan converts a whole tensor into another layout before or after the convolution.
/// The workspace of such a plan holds at least that tensor. A filter gradient that is summed in
/// parts may need as much workspace. So the result may be true for a plan that converts nothing,
/// but is never false for a plan that converts.
bool hidden_repack(const Plan& plan, const Kernel& kernel, Arithmetic arithmetic);

}  // namespace stratplan::cudnn
