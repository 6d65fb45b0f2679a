#pragma once
// Published times of whole networks on single devices, and the estimates for the same networks: the
// sum over the kernels of the lowered one-rank program. tests/bench/calibrate fits the shares of
// peak rates to many more measurements; some of these figures are among them.
#include <string>
#include <vector>

#include "model/machine/kernel_estimate.hpp"
#include "model/partition/lowering/lower.hpp"

namespace stratplan::test {

/// One published figure.
struct Figure {
  std::string source;
  std::string device;   ///< as in machines/parts/devices.json
  std::string network;  ///< a shipped network
  std::int64_t batch;
  double seconds;        ///< of one step
  bool training = true;  ///< false: only the forward pass
  Math math = Math::Fp32;
  DataType type = DataType::F32;  ///< of activations and of weights in contractions
  bool fused = false;             ///< false for frameworks that run each layer on its own
  /// time in which the framework's host issues all kernels; no step is shorter
  double issue_seconds = 0;
};

inline const std::vector<Figure>& published_figures() {
  static const std::string examples = "NVIDIA DeepLearningExamples, ResNet-50 v1.5, PyTorch 21.03";
  // Batches of 1, 2 and 4 take the same 10.4 ms, so the host limits them, not the device.
  constexpr double issue = 10.4e-3;
  const auto inference = [](std::int64_t batch, double images) {
    return Figure{examples, "v100-16",  "resnet50",    batch, static_cast<double>(batch) / images,
                  false,    Math::Fp32, DataType::F32, false, issue};
  };
  const auto training = [](const char* device, std::int64_t batch, double images, Math math,
                           DataType type) {
    return Figure{examples, device, "resnet50", batch, static_cast<double>(batch) / images,
                  true,     math,   type};
  };
  static const std::vector<Figure> figures{
      inference(1, 96),
      inference(2, 196),
      inference(4, 386),
      inference(8, 709),
      inference(16, 1023),
      inference(32, 1127),
      inference(64, 1200),
      inference(128, 1229),
      inference(256, 1261),
      training("v100-16", 128, 367, Math::Fp32, DataType::F32),
      {"ABCI, logs of ParaDL", "v100-16", "resnet50", 64, 0.183},
      {"ABCI, logs of ParaDL", "v100-16", "vgg16", 32, 0.261},
      training("a100-80", 256, 938, Math::Tf32, DataType::F32),
      training("v100-16", 256, 1200, Math::Fp32, DataType::F16),
      training("a100-80", 256, 2470, Math::Fp32, DataType::F16),
      {"MLPerf training 3.0, MXNet on 8 H100", "h100", "resnet50", 400, 400 / 7000.0, true,
       Math::Fp32, DataType::F16, true},
  };
  return figures;
}

/// Inference in 16 bits.
inline const std::vector<Figure>& half_inference_figures() {
  static const std::string examples = "NVIDIA DeepLearningExamples, ResNet-50 v1.5, PyTorch 21.03";
  const auto inference = [](std::int64_t batch, double images) {
    return Figure{examples, "v100-16",  "resnet50",   batch, static_cast<double>(batch) / images,
                  false,    Math::Fp32, DataType::F16};
  };
  static const std::vector<Figure> figures{inference(64, 2984), inference(128, 3249),
                                           inference(256, 3382)};
  return figures;
}

/// The kernels of a figure's step, on its device.
struct CalibrationCase {
  Figure figure;
  DeviceRates device;
  std::vector<Kernel> kernels;
};

/// Returns whether a kernel follows the precision. Optimizers and losses stay in fp32, and so does
/// the normalization of inference.
inline bool follows_precision(const Kernel& kernel) {
  return works_on_activations(kernel.kind) &&
         !kernel.has<LossAttributes, CrossEntropyAttributes, ElementLossAttributes,
                     DiceLossAttributes>() &&
         kernel.kind != KernelKind::BatchNormInference;
}

/// The program of one rank for a training step, or for the forward pass alone.
inline Program program_alone(const std::string& source, const NetworkOverrides& overrides,
                             const Execution& execution, bool training) {
  Network network = read_network(source, overrides);
  network.running_momentum = 0.1;
  const LayerDecompositions alone(static_cast<std::size_t>(network.size()));
  return training ? lower(network, alone, execution, 0)
                  : lower_inference(network, alone, execution, 0);
}

inline CalibrationCase calibration_case(const Figure& figure) {
  NetworkOverrides overrides;
  overrides.batch = figure.batch;
  Execution execution;
  execution.fuse = figure.fused;
  const Program program = program_alone(figure.network, overrides, execution, figure.training);
  CalibrationCase result{figure, {}, {}};
  result.device = read_device(figure.device);
  result.device.math = figure.math;
  for (const Op& op : program.ops) {
    const auto* compute = std::get_if<ComputeOp>(&op.body);
    if (!compute) continue;
    result.kernels.push_back(compute->kernel);
    if (follows_precision(compute->kernel)) result.kernels.back().type = figure.type;
  }
  return result;
}

inline double predicted_seconds(const CalibrationCase& step) {
  double sum = 0;
  for (const Kernel& kernel : step.kernels) sum += estimate_kernel(kernel, step.device).value;
  return std::max(sum, step.figure.issue_seconds);
}

}  // namespace stratplan::test
