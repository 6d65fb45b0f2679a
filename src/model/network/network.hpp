#pragma once
// The directed acyclic graph of layers with inferred shapes, in topological order: producers before
// consumers.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/network/layer.hpp"
#include "model/network/training.hpp"

namespace stratplan {

struct Network {
  std::string name;
  std::int64_t batch = 1;  ///< samples per step over all ranks
  std::int64_t statistics_samples =
      32;  ///< samples in one batch-normalization set, 1 <= it <= batch (`all` reads as batch)
  /// Batch normalization in one set per rank, its own samples and positions: what most frameworks
  /// do. The numbers then depend on the plan.
  bool local_statistics = false;
  /// Weight of a step's statistics in the running means that batch normalization keeps for
  /// inference; 0: it keeps none.
  double running_momentum = 0;
  /// how a step is made of it; set by the plan or the command line, as the batch may be
  Training training;
  std::vector<Layer> layers;         ///< their shapes hold the samples of one micro-batch
  std::vector<std::string> notes{};  ///< what reading a foreign file decided, for people

  const Layer& layer(LayerIndex index) const { return layers[static_cast<std::size_t>(index)]; }
  /// Samples that pass through the layers at a time.
  std::int64_t micro_batch() const { return batch / training.micro_batches; }
  int size() const { return static_cast<int>(layers.size()); }
  /// Indices of the layers that read layer `index`, ascending, one entry per reading input.
  std::vector<LayerIndex> consumers(LayerIndex index) const;
  std::optional<LayerIndex> find(const std::string& layer_name) const;
  std::int64_t parameter_count() const;
  Flops forward_flops() const;
  /// Number of batch-normalization sets: consecutive runs of statistics_samples, the last one
  /// perhaps shorter.
  std::int64_t statistics_sets() const {
    return (batch + statistics_samples - 1) / statistics_samples;
  }
  /// 16 hexadecimal digits over everything that a plan depends on: layers, attributes, shapes,
  /// batch, statistics_samples.
  std::string fingerprint() const;
};

/// What the command line may replace in a network file.
struct NetworkOverrides {
  std::optional<std::int64_t> batch;
  std::vector<std::int64_t> input_size;  ///< [H, W] or [D, H, W]; empty: as in the file
  Training training{};                   ///< which no network file has
};

/// Orders layers topologically (stable: file order where free), checks them and infers every shape
/// from the inputs'. Throws InputError with `file` and the layer's JSON pointer (`pointers[i]` for
/// layers[i] as given) on a cycle, a window that does not fit, shapes that disagree, or an extent,
/// a tensor or a sum of tensors beyond the limits (limits.hpp); or if the batch does not divide
/// into its micro-batches, or batch normalization's sets do not fit into those.
Network finish_network(Network network, const std::string& file,
                       const std::vector<std::string>& pointers);

/// The same in so many micro-batches; nothing if the batch does not divide so, or if layers forbid
/// it.
std::optional<Network> with_micro_batches(const Network& network, std::int64_t micro_batches);

/// Reads `source`: a path to a network.json or (model/network/onnx.hpp) an .onnx file, or the bare
/// name of a shipped network ("resnet50"). Throws InputError.
Network read_network(const std::string& source, const NetworkOverrides& overrides = {});

}  // namespace stratplan
