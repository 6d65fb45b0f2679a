#include "runtime/cuda/cudnn/convolution_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace stratplan::cudnn {
namespace {

/// Whether the description for cuDNN has a depth axis. cuDNN requires two or three spatial axes.
/// Depth is left out if all extents along it are 1 and nothing is padded.
bool has_depth(const Kernel& kernel) {
  const Window& window = kernel.windows()[0];
  return kernel.x[Axis::D] != 1 || kernel.y[Axis::D] != 1 || window.kernel != 1 ||
         window.pad_before != 0 || window.pad_after != 0;
}

std::vector<Axis> axes(const Kernel& kernel) {
  return has_depth(kernel) ? std::vector(all_axes.begin(), all_axes.end())
                           : std::vector{Axis::N, Axis::C, Axis::H, Axis::W};
}

cudnnDataType_t data_type(Arithmetic arithmetic) {
  switch (storage(arithmetic)) {
    case DataType::F16: return CUDNN_DATA_HALF;
    case DataType::BF16: return CUDNN_DATA_BFLOAT16;
    default: return CUDNN_DATA_FLOAT;
  }
}

/// The widest load of a device, in bytes. Weights begin at multiples of this width
/// (parameter_buffers.hpp).
constexpr std::int64_t widest_load = 16;

/// Describes a dense tensor with channels last. `of`: the axes of the tensor. `aligned_to`:
/// alignment of its address in bytes.
Descriptor tensor(const char* what, TensorId id, const Shape& shape, const std::vector<Axis>& of,
                  Arithmetic arithmetic, std::int64_t aligned_to) {
  std::vector<std::int64_t> extents, strides;
  for (const Axis axis : of) extents.push_back(shape[axis]);
  const std::size_t rank = of.size();
  strides.resize(rank);
  strides[1] = 1;
  std::int64_t stride = extents[1];
  for (std::size_t i = rank - 1; i >= 2; --i) {
    strides[i] = stride;
    stride *= extents[i];
  }
  strides[0] = stride;
  Descriptor descriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, what);
  descriptor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, static_cast<std::int64_t>(id))
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, data_type(arithmetic))
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, aligned_to)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, extents)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .finalize();
  return descriptor;
}

Shape weights_shape(const Kernel& kernel) {
  const auto& w = kernel.windows();
  return {{kernel.y[Axis::C], kernel.x[Axis::C] / kernel.as<ConvolutionAttributes>().groups,
           w[0].kernel, w[1].kernel, w[2].kernel}};
}

Descriptor windows(const Kernel& kernel) {
  std::vector<std::int64_t> strides, dilations, before, after;
  for (std::size_t i = has_depth(kernel) ? 0 : 1; i < kernel.windows().size(); ++i) {
    const Window& window = kernel.windows()[i];
    strides.push_back(window.stride);
    dilations.push_back(window.dilation);
    before.push_back(window.pad_before);
    after.push_back(window.pad_after);
  }
  Descriptor descriptor(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "the windows");
  descriptor.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<std::int64_t>(strides.size()))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides)
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilations)
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, before)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, after)
      .finalize();
  return descriptor;
}

/// The names that cuDNN gives to one pass of a convolution and to the attributes of that pass.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, weights, y, windows, alpha, beta;
};

OperationNames names_of(KernelKind kind) {
  switch (kind) {
    case KernelKind::ConvolutionForward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case KernelKind::ConvolutionBackwardData:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
}

template <class Note>
bool contains(const std::vector<Note>& notes, Note note) {
  return std::find(notes.begin(), notes.end(), note) != notes.end();
}

using NumericalNotes = std::vector<cudnnBackendNumericalNote_t>;

/// Whether an engine with these notes computes as `arithmetic` says, and gives the same sums each
/// time. With such engines runs are repeatable, whichever engine is the fastest.
bool computes_as(Arithmetic arithmetic, const NumericalNotes& notes) {
  if (contains(notes, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) ||
      contains(notes, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC))
    return false;
  if (arithmetic != Arithmetic::F32) return true;
  return !contains(notes, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) &&
         !contains(notes, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
}

std::map<int, std::int64_t> knobs_of(const Descriptor& config) {
  std::map<int, std::int64_t> knobs;
  for (const Descriptor& knob :
       config.descriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                          "a knob", CUDNN_KNOB_TYPE_COUNTS))
    knobs.emplace(knob.get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE),
                  knob.get<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  return knobs;
}

std::string name_of_config(std::int64_t engine, const std::map<int, std::int64_t>& knobs) {
  std::string text;
  for (const auto& [type, value] : knobs)
    text += fmt::format("{}k{}={}", text.empty() ? "" : ",", type, value);
  return fmt::format("eng{}{{{}}}", engine, text);
}

/// Returns nothing if the engine does not compute as `arithmetic` says.
std::optional<EngineConfig> read_config(const Descriptor& config, Arithmetic arithmetic) {
  const Descriptor engine =
      config.descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "an engine")
          .at(0);
  const NumericalNotes notes =
      engine.list<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
  if (!computes_as(arithmetic, notes)) return std::nullopt;
  const auto behavior = engine.list<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE);
  const std::int64_t number = engine.get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  const std::map<int, std::int64_t> knobs = knobs_of(config);
  return EngineConfig{
      .name = name_of_config(number, knobs),
      .engine = number,
      .knobs = knobs,
      .tensor_cores = contains(notes, CUDNN_NUMERICAL_NOTE_TENSOR_CORE),
      .compiled_at_run_time = contains(behavior, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION),
      .descriptor = config};
}

/// Whether the engine divides a long sum into parts, and adds the parts up at the end.
bool splits_sums(const EngineConfig& config) {
  return std::ranges::any_of(std::array{CUDNN_KNOB_TYPE_SPLIT_K, CUDNN_KNOB_TYPE_SPLIT_K_BUF},
                             [&](cudnnBackendKnobType_t type) {
                               const auto knob = config.knobs.find(type);
                               return knob != config.knobs.end() && knob->second > 1;
                             });
}

/// Whether the engine gives wrong numbers for this kernel, or numbers that are off by more than the
/// rounding of plain sums. Found with cuDNN 9.19 on an H200 by
/// tests/runtime/cuda/device_kernels_test.cpp, which compares each engine with the reference.
bool miscomputes(const EngineConfig& config, const Kernel& kernel, Arithmetic arithmetic) {
  // Engines 1, 18 and 50 pad both ends of a dimension alike. Engines 2, 47 and 61 round partial
  // sums to 16 bits, but have no note of it. Engine 17 is off by up to twice the rounding of plain
  // sums.
  const bool uneven = std::ranges::any_of(
      kernel.windows(), [](const Window& window) { return window.pad_before != window.pad_after; });
  const bool narrow = is_narrow(storage(arithmetic));
  const auto engine_in = [&](std::initializer_list<std::int64_t> engines) {
    return std::ranges::find(engines, config.engine) != engines.end();
  };
  switch (kernel.kind) {
    case KernelKind::ConvolutionBackwardFilter:
      return engine_in({17}) || (engine_in({1, 18}) && uneven) ||
             (engine_in({47, 61}) && narrow && splits_sums(config));
    case KernelKind::ConvolutionBackwardData:
      return (engine_in({50}) && uneven) || (engine_in({2}) && narrow);
    default: return false;
  }
}

/// Whether cuDNN's heuristics end the process (SIGSEGV) when they are asked for this kernel in this
/// mode. They do in mode B if the filter does not fit into x padded at both ends as at the front.
/// Found with cuDNN 9.19 on an H200; the answer for a described device does not show it.
bool ends_the_process(cudnnBackendHeurMode_t mode, const Kernel& kernel) {
  if (mode != CUDNN_HEUR_MODE_B || kernel.kind != KernelKind::ConvolutionBackwardFilter)
    return false;
  for (std::size_t i = 0; i < spatial_axes.size(); ++i) {
    Window even = kernel.windows()[i];
    even.pad_after = even.pad_before;
    if (even.output_extent(kernel.x[spatial_axes[i]]) == 0) return true;
  }
  return false;
}

}  // namespace

std::int64_t address_alignment(const Shape& shape, Arithmetic arithmetic) {
  const std::int64_t columns = shape[Axis::D] > 1 || shape[Axis::H] > 1 ? shape[Axis::W] : 1;
  return std::gcd(widest_load, columns * shape[Axis::C] * size_of(storage(arithmetic)));
}

Descriptor operation_graph(const Kernel& kernel, Arithmetic arithmetic, const Target& target) {
  const std::vector<Axis> of = axes(kernel);
  const OperationNames names = names_of(kernel.kind);
  Descriptor operation(names.type, kernel.key());
  operation
      .set(names.x, tensor("the tensor x", x_id, kernel.x, of, arithmetic,
                           address_alignment(kernel.x, arithmetic)))
      .set(names.weights,
           tensor("the weights", weights_id, weights_shape(kernel), of, arithmetic, widest_load))
      .set(names.y, tensor("the tensor y", y_id, kernel.y, of, arithmetic,
                           address_alignment(kernel.y, arithmetic)))
      .set(names.windows, windows(kernel))
      .set(names.alpha, 1.0F)
      .set(names.beta, 0.0F)
      .finalize();
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "the graph of " + kernel.key());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  target.aim_graph(graph);
  graph.finalize();
  return graph;
}

void visit_configs(const Kernel& kernel, Arithmetic arithmetic, const Target& target,
                   const std::function<bool(const EngineConfig&)>& visit) {
  const Descriptor graph = operation_graph(kernel, arithmetic, target);
  std::set<std::string> known;
  for (const cudnnBackendHeurMode_t mode :
       {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
    if (ends_the_process(mode, kernel)) continue;
    Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "a heuristic");
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
        .set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
    target.aim_heuristic(heuristic);
    if (heuristic.finalize_if_supported()) continue;
    for (const Descriptor& proposed :
         heuristic.descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                               "an engine's settings")) {
      const std::optional<EngineConfig> config = read_config(proposed, arithmetic);
      if (!config || miscomputes(*config, kernel, arithmetic)) continue;
      if (known.insert(config->name).second && visit(*config)) return;
    }
  }
}

std::optional<Plan> execution_plan(const EngineConfig& config, const Target& target) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, config.name);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config.descriptor);
  target.aim_plan(plan);
  if (plan.finalize_if_able()) return std::nullopt;
  return Plan{config, {plan.get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)}, plan};
}

std::optional<Plan> first_plan(const Kernel& kernel, Arithmetic arithmetic, const Target& target,
                               const std::function<bool(const Plan&)>& suits) {
  std::optional<Plan> plan;
  visit_configs(kernel, arithmetic, target, [&](const EngineConfig& config) {
    plan = execution_plan(config, target);
    if (plan && !suits(*plan)) plan.reset();
    return plan.has_value();
  });
  return plan;
}

std::optional<Plan> plan_named(const std::string& name, const Kernel& kernel, Arithmetic arithmetic,
                               const Target& target) {
  std::optional<Plan> plan;
  visit_configs(kernel, arithmetic, target, [&](const EngineConfig& config) {
    if (config.name != name) return false;
    plan = execution_plan(config, target);
    return true;
  });
  return plan;
}

std::vector<Plan> execution_plans(const Kernel& kernel, Arithmetic arithmetic,
                                  const Target& target) {
  std::vector<Plan> plans;
  visit_configs(kernel, arithmetic, target, [&](const EngineConfig& config) {
    if (config.compiled_at_run_time && !plans.empty()) return false;
    if (std::optional<Plan> plan = execution_plan(config, target))
      plans.push_back(std::move(*plan));
    return false;
  });
  return plans;
}

bool hidden_repack(const Plan& plan, const Kernel& kernel, Arithmetic arithmetic) {
  return plan.workspace.value >=
         std::min(kernel.x.elements(), kernel.y.elements()) * size_of(storage(arithmetic));
}

}  // namespace stratplan::cudnn
