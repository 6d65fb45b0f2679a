#pragma once
// Published measurements of networks and kernels on single devices, as the calibration uses them.
#include <map>
#include <string>
#include <vector>

#include "model/machine/machine_profile.hpp"
#include "model/partition/program/kernel.hpp"

namespace stratplan::calibration {

/// What part of a step was timed.
enum class Timed : int { Step, Forward, Backward, ForwardAndBackward, Inference };

/// One measurement of a whole network.
struct NetworkRow {
  std::string id;
  std::string device;   ///< as in machines/parts/devices.json
  std::string network;  ///< as published
  std::string source;   ///< a shipped network, or a file
  /// program and version that ran it, as far as rows of it have errors in common
  std::string software;
  bool fused = false;           ///< normalizations and activations are fused
  bool channels_first = false;  ///< tensors are stored as (N, C, H, W)
  Math math = Math::Fp32;       ///< Fp16: activations have 16 bits, too
  std::int64_t batch = 1;
  std::vector<std::int64_t> input_size;
  Timed timed = Timed::Step;
  int devices = 1;  ///< that shared the work; `batch` is that of one of them
  /// what rows with other numbers of devices have in common: source, program, batch and precision
  std::string setting;
  double seconds = 0;
  std::string excluded;  ///< the rule that leaves the row out of fits; empty: none
};

/// One measurement of a kernel.
struct KernelRow {
  std::string id;
  std::string device;
  std::string source;  ///< repository
  Math math = Math::Fp32;
  Kernel kernel;
  double seconds = 0;
};

struct Published {
  std::vector<NetworkRow> networks;  ///< on one device
  std::vector<NetworkRow> several;   ///< on several devices of one node
  std::vector<KernelRow> kernels;
  /// rows that are not usable, by table and reason
  std::map<std::string, std::map<std::string, int>> unusable;
};

/// Reads networks_train.csv, networks_infer.csv, kernels_conv.csv and kernels_gemm.csv of a folder
/// (its README says where the rows are from), and `networks`/index.json, which
/// tests/bench/calibration_networks.py writes. A row is usable if it states batch, input and
/// precision, was measured on devices of one node, and its network is in the index. Throws
/// InputError if a file is missing or malformed.
Published read_published(const std::string& folder, const std::string& networks);

}  // namespace stratplan::calibration
